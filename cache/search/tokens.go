package search

import (
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/informerd/informerd/cache/internal/rows"
)

// tokens are the words of all texts, in order, with the values they are in. Most words are in
// one alone, the name of an object, and cost little more than their place.
type tokens struct {
	byWord btree.Map[string, found]
	lists  rows.Rows[rows.Set] // of words in several values
}

// found is the value that a word is in, or the list of them.
type found uint32

const several found = 1 << 31 // the rest is a number in lists

// add enters the words of a text, which is in memory of its own.
func (t *tokens) add(text string, id valueID) {
	for w := range words(text) {
		at, ok := t.byWord.Get(w)
		switch {
		case !ok:
			t.byWord.Set(w, found(id)) // a part of the text, for as long as this is the only one
		case at&several != 0:
			t.lists.At(uint32(at &^ several)).Add(uint32(id))
		case at != found(id): // the word may be in a text twice
			list := rows.Set{}
			list.Add(uint32(at))
			list.Add(uint32(id))
			t.byWord.Set(strings.Clone(w), several|found(t.lists.Add(list))) // outlives the text
		}
	}
}

// remove takes out the words of a text.
func (t *tokens) remove(text string, id valueID) {
	for w := range words(text) {
		at, ok := t.byWord.Get(w)
		switch {
		case !ok: // it was in the text twice
		case at&several == 0:
			t.byWord.Delete(w)
		default:
			number := uint32(at &^ several)
			list := t.lists.At(number)
			if list.Remove(uint32(id)); list.Len() == 0 {
				t.lists.Remove(number)
				t.byWord.Delete(w)
			}
		}
	}
}

// in are the values that a word is in.
func (t *tokens) in(word string) []uint32 {
	at, ok := t.byWord.Get(word)
	if !ok {
		return nil
	}
	return t.all(at, new([1]uint32))
}

// all are the values of a word; one alone is put into the memory given.
func (t *tokens) all(at found, one *[1]uint32) []uint32 {
	if at&several == 0 {
		one[0] = uint32(at)
		return one[:]
	}
	return t.lists.At(uint32(at &^ several)).List(one)
}

// candidates are the values that may have what is looked for: the rarest of its
// whole words is in them or, if it is but the beginning of one, a word that
// begins so.
func (t *tokens) candidates(sought string) iter.Seq[uint32] {
	parts := slices.Collect(words(sought))
	whole := parts
	if isWord(sought[len(sought)-1]) { // the last word may go on
		whole = parts[:len(parts)-1]
	}
	if len(whole) == 0 {
		return t.beginning(parts[0])
	}
	var rarest []uint32
	for i, w := range whole {
		if values := t.in(w); i == 0 || len(values) < len(rarest) {
			rarest = values
		}
	}
	return slices.Values(rarest)
}

// beginning visits the values with a word that begins so.
func (t *tokens) beginning(prefix string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var one [1]uint32
		t.byWord.Ascend(prefix, func(word string, at found) bool {
			if !strings.HasPrefix(word, prefix) {
				return false
			}
			for _, v := range t.all(at, &one) {
				if !yield(v) {
					return false
				}
			}
			return true
		})
	}
}
