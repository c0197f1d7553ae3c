package rawjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// plainText reports whether the body of a valid JSON string, quotes off, is its
// own text: no escapes, no invalid UTF-8.
func plainText(raw []byte) bool {
	return bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw)
}

// appendText appends the text that the body of a valid JSON string stands for.
// Half a surrogate pair and invalid UTF-8 become U+FFFD, as in encoding/json.
func appendText(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case c == '\\':
			dst, i = appendEscape(dst, raw, i+1)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// appendEscape appends what the escape stands for whose backslash is before i,
// and returns the index after it.
func appendEscape(dst, raw []byte, i int) ([]byte, int) {
	switch c := raw[i]; c {
	case 'b':
		c = '\b'
		return append(dst, c), i + 1
	case 'f':
		return append(dst, '\f'), i + 1
	case 'n':
		return append(dst, '\n'), i + 1
	case 'r':
		return append(dst, '\r'), i + 1
	case 't':
		return append(dst, '\t'), i + 1
	case 'u':
		r := hexRune(raw[i:])
		i += 5
		if utf16.IsSurrogate(r) {
			pair := utf8.RuneError
			if i < len(raw) && raw[i] == '\\' {
				pair = utf16.DecodeRune(r, hexRune(raw[i+1:]))
			}
			r = pair
			if pair != utf8.RuneError {
				i += 6
			}
		}
		return utf8.AppendRune(dst, r), i
	default: // a quote, a backslash, a slash
		return append(dst, c), i + 1
	}
}

// hexRune reads uXXXX, or returns -1.
func hexRune(raw []byte) rune {
	if len(raw) < 5 || raw[0] != 'u' {
		return -1
	}
	var r rune
	for _, c := range raw[1:5] {
		r = r<<4 | hexDigit(c)
	}
	return r
}

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // an invalid byte reads as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
