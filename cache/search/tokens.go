package search

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/informerd/informerd/cache/internal/rows"
)

// tokens are the words of all texts, in order, with the values they are in. Most words are in
// one alone, the name of an object: such a word is no more than where it is in that text.
type tokens struct {
	values *rows.Rows[value]
	blocks []block // in order; none is empty
	lists  rows.Rows[list]
}

// block is some tokens, in order.
type block struct {
	first string // not after the first word, and after all of the block before
	words []token
}

// blockMost is how many tokens a block has at most.
const blockMost = 512

// token is a word.
type token struct {
	letters    uint64 // its first ones, by which it mostly is told from others
	in         uint32 // the value that it is in, or listed and the number of the list of them
	start, end uint16 // where in the text of the value
}

const listed = 1 << 31

// list is a word in several values, or one that lies too far within its text for a token.
type list struct {
	word string
	in   rows.Set
}

// word is what a token stands for.
func (t *tokens) word(w token) string {
	if w.in&listed != 0 {
		return t.lists.At(w.in &^ listed).word
	}
	return t.values.At(w.in).text[w.start:w.end]
}

// lettersOf are the first bytes of a word, in the order of words: none of them is 0.
func lettersOf(word string) uint64 {
	var first [8]byte
	copy(first[:], word)
	return binary.BigEndian.Uint64(first[:])
}

// compare orders tokens and words; letters are those of the word.
func (t *tokens) compare(w token, word string, letters uint64) int {
	if w.letters != letters {
		return cmp.Compare(w.letters, letters)
	}
	if letters&0xff == 0 {
		return 0 // that is all of either
	}
	return strings.Compare(t.word(w), word)
}

// find returns the place of a word, or that where it would be.
func (t *tokens) find(word string) (at, i int, found bool) {
	at = max(0, sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].first > word })-1)
	if at == len(t.blocks) {
		return at, 0, false
	}
	letters := lettersOf(word)
	i, found = slices.BinarySearchFunc(t.blocks[at].words, word, func(w token, word string) int { return t.compare(w, word, letters) })
	return at, i, found
}

// add enters the words of a value.
func (t *tokens) add(id valueID) {
	text := t.values.At(uint32(id)).text
	for start, end := range words(text) {
		word := text[start:end]
		at, i, found := t.find(word)
		if !found {
			w := token{lettersOf(word), uint32(id), uint16(start), uint16(end)}
			if end > math.MaxUint16 {
				w = t.list(word)
				t.lists.At(w.in &^ listed).in.Add(uint32(id))
			}
			t.insert(at, i, w, word)
			continue
		}
		w := &t.blocks[at].words[i]
		if w.in == uint32(id) {
			continue // the word is in the text twice
		}
		if w.in&listed == 0 {
			one := w.in
			*w = t.list(word)
			t.lists.At(w.in &^ listed).in.Add(one)
		}
		t.lists.At(w.in &^ listed).in.Add(uint32(id))
	}
}

// list makes an empty list of a word, which outlives the text that it is from.
func (t *tokens) list(word string) token {
	return token{letters: lettersOf(word), in: listed | t.lists.Add(list{word: strings.Clone(word)})}
}

func (t *tokens) insert(at, i int, w token, word string) {
	if at == len(t.blocks) {
		t.blocks = append(t.blocks, block{})
	}
	b := &t.blocks[at]
	if i == 0 {
		b.first = strings.Clone(word)
	}
	if b.words = slices.Insert(b.words, i, w); len(b.words) <= blockMost {
		return
	}
	half := len(b.words) / 2
	next := block{strings.Clone(t.word(b.words[half])), slices.Clone(b.words[half:])}
	b.words = slices.Clone(b.words[:half]) // what comes in order leaves it as it is
	t.blocks = slices.Insert(t.blocks, at+1, next)
}

// remove takes out the words of a value that is still there.
func (t *tokens) remove(id valueID) {
	text := t.values.At(uint32(id)).text
	for start, end := range words(text) {
		at, i, found := t.find(text[start:end])
		if !found {
			continue // it was in the text twice
		}
		w := t.blocks[at].words[i]
		if w.in&listed != 0 {
			number := w.in &^ listed
			in := &t.lists.At(number).in
			if in.Remove(uint32(id)); in.Len() > 0 {
				continue
			}
			t.delete(at, i)
			t.lists.Remove(number)
		} else {
			t.delete(at, i)
		}
	}
}

// delete takes out a token, and puts a block that has few left together with its neighbour.
func (t *tokens) delete(at, i int) {
	b := &t.blocks[at]
	b.words = slices.Delete(b.words, i, i+1)
	switch {
	case len(b.words) == 0:
		t.blocks = slices.Delete(t.blocks, at, at+1)
	case at+1 < len(t.blocks) && len(b.words)+len(t.blocks[at+1].words) <= blockMost/2:
		b.words = slices.Concat(b.words, t.blocks[at+1].words)
		t.blocks = slices.Delete(t.blocks, at+1, at+2)
	}
}

// all are the values of a word; one alone is put into the memory given.
func (t *tokens) all(w token, one *[1]uint32) []uint32 {
	if w.in&listed != 0 {
		return t.lists.At(w.in &^ listed).in.List(one)
	}
	one[0] = w.in
	return one[:]
}

// candidates are the values that may have what is looked for: the rarest of its
// whole words is in them or, if it is but the beginning of one, a word that
// begins so.
func (t *tokens) candidates(sought string) iter.Seq[uint32] {
	var whole []string
	for start, end := range words(sought) {
		if word := sought[start:end]; end < len(sought) {
			whole = append(whole, word)
		} else if len(whole) == 0 { // the last word may go on
			return t.beginning(word)
		}
	}
	var rarest []uint32
	for i, w := range whole {
		var values []uint32
		if at, i, found := t.find(w); found {
			values = t.all(t.blocks[at].words[i], new([1]uint32))
		}
		if i == 0 || len(values) < len(rarest) {
			rarest = values
		}
	}
	return slices.Values(rarest)
}

// beginning visits the values with a word that begins so.
func (t *tokens) beginning(prefix string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var one [1]uint32
		at, i, _ := t.find(prefix)
		for ; at < len(t.blocks); at, i = at+1, 0 {
			for _, w := range t.blocks[at].words[i:] {
				if !strings.HasPrefix(t.word(w), prefix) {
					return
				}
				for _, v := range t.all(w, &one) {
					if !yield(v) {
						return
					}
				}
			}
		}
	}
}

// len is how many words there are.
func (t *tokens) len() (n int) {
	for _, b := range t.blocks {
		n += len(b.words)
	}
	return n
}
