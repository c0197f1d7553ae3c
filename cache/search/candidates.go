package search

import (
	"iter"
	"slices"
)

// candidates are the values that may have what is looked for: the rarest of its
// whole words is in them or, if it is but the beginning of one, a word that
// begins so.
func (s *state) candidates(sought string) iter.Seq[valueID] {
	parts := slices.Collect(words(sought))
	whole := parts
	if isWord(sought[len(sought)-1]) { // the last word may go on
		whole = parts[:len(parts)-1]
	}
	if len(whole) == 0 {
		return s.beginning(parts[0])
	}
	var rarest []valueID
	for i, w := range whole {
		list, ok := s.tokens.Get(w)
		if !ok {
			return func(func(valueID) bool) {}
		}
		if i == 0 || len(*list) < len(rarest) {
			rarest = *list
		}
	}
	return slices.Values(rarest)
}

// beginning visits the values with a word that begins so.
func (s *state) beginning(prefix string) iter.Seq[valueID] {
	return func(yield func(valueID) bool) {
		s.tokens.Ascend(prefix, func(word string, list *[]valueID) bool {
			if len(word) < len(prefix) || word[:len(prefix)] != prefix {
				return false
			}
			for _, v := range *list {
				if !yield(v) {
					return false
				}
			}
			return true
		})
	}
}
