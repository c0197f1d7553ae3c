package search

import (
	"iter"
	"strings"
)

// A text is made of words: runs of letters and digits in lower case. Whatever is
// not ASCII counts as a letter.

func isWord(c byte) bool {
	return c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// words says where the words of a text in lower case begin and end.
func words(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for i := 0; i < len(text); {
			if !isWord(text[i]) {
				i++
				continue
			}
			start := i
			for i < len(text) && isWord(text[i]) {
				i++
			}
			if !yield(start, i) {
				return
			}
		}
	}
}

// has reports whether what is looked for occurs in text from the beginning of a
// word on. It may end within a word: whoever types is not done.
func has(text, sought string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], sought)
		if i < 0 {
			return false
		}
		at := from + i
		if at == 0 || !isWord(text[at-1]) {
			return true
		}
		from = at + 1
	}
}
