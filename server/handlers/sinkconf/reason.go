package sinkconf

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxReason is the longest reason that a sink's answer becomes.
const maxReason = 1 << 10

// Printable is what can be shown of text that others wrote: one line of at most 1 KiB
// without control characters.
func Printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return Short(strings.Join(strings.Fields(text), " "))
}

// Short cuts text at 1 KiB.
func Short(text string) string {
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason - len("...")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
