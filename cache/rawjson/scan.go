package rawjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// maxDepth is how many arrays and objects may be open at once, as in
// encoding/json.
const maxDepth = 10000

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringStops marks, with the high bit of each byte, where in a word a JSON
// string ends or needs care: a quote, a backslash, a control character. Only
// the lowest mark is exact: a borrow may set false ones above a true one.
func stringStops(w uint64) uint64 {
	q := w ^ ones*'"'
	b := w ^ ones*'\\'
	return ((q-ones)&^q | (b-ones)&^b | (w-ones*' ')&^w) & highs
}

// skipString returns the index after the string whose opening quote is before i.
func skipString(src []byte, i int) int {
	for i >= 0 {
		if i+8 <= len(src) {
			m := stringStops(binary.LittleEndian.Uint64(src[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		} else {
			for i < len(src) && !stopsString(src[i]) {
				i++
			}
			if i >= len(src) {
				return fail(badSyntax, i)
			}
		}
		if src[i] == '"' {
			return i + 1
		}
		i = skipEscape(src, i)
	}
	return i
}

// skipText is skipString that also reports whether the string is surely its own
// text: ASCII without escapes.
func skipText(src []byte, i int) (end int, plain bool) {
	start := i
	var seen uint64
	for i+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:])
		m := stringStops(w)
		if m == 0 {
			seen |= w
			i += 8
			continue
		}
		seen |= w & (m&-m - 1)
		i += bits.TrailingZeros64(m) >> 3
		if src[i] == '"' {
			return i + 1, seen&highs == 0
		}
		break
	}
	return skipString(src, start), false
}

func stopsString(c byte) bool { return c == '"' || c == '\\' || c < ' ' }

// skipEscape passes the escape at i; a control character is a failure.
func skipEscape(src []byte, i int) int {
	if src[i] != '\\' {
		return fail(badSyntax, i)
	}
	i++
	if i >= len(src) {
		return fail(badSyntax, i)
	}
	switch src[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for k := 1; k <= 4; k++ {
			if i+k >= len(src) || hexDigit(src[i+k]) < 0 {
				return fail(badSyntax, min(i+k, len(src)))
			}
		}
		return i + 5
	}
	return fail(badSyntax, i)
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipSpace returns the index of the first byte from i on that is not white
// space. Machine-made JSON has none, so the common case must inline.
func skipSpace(src []byte, i int) int {
	if i < len(src) && src[i] <= ' ' {
		return skipSpaces(src, i)
	}
	return i
}

func skipSpaces(src []byte, i int) int {
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	return i
}

// skipValue validates the value that starts at i and returns the index after
// it. depth values are open around it. One word remembers the kinds of up to 64
// open containers; deeper ones are left to a nested call.
func skipValue(src []byte, i, depth int) int {
	var objects uint64 // the lowest bit is the innermost container: 1 for an object
	open := 0
	for {
		if i >= len(src) {
			return fail(badSyntax, i)
		}
		switch c := src[i]; c {
		case '"':
			i = skipString(src, i+1)
		case '{', '[':
			if depth+open >= maxDepth {
				return fail(badDepth, i)
			}
			if open == 64 {
				i = skipValue(src, i, depth+open)
				break
			}
			i = skipSpace(src, i+1)
			if i >= len(src) {
				return fail(badSyntax, i)
			}
			if src[i] == c+2 { // '}' is '{'+2, ']' is '['+2
				i++
				break
			}
			objects <<= 1
			open++
			if c == '{' {
				objects |= 1
				if i = skipKey(src, i); i < 0 {
					return i
				}
			}
			continue
		case 't':
			i = skipWord(src, i, "true")
		case 'f':
			i = skipWord(src, i, "false")
		case 'n':
			i = skipWord(src, i, "null")
		default:
			i = skipNumber(src, i)
		}
		if i < 0 {
			return i
		}
		for {
			if open == 0 {
				return i
			}
			i = skipSpace(src, i)
			if i >= len(src) {
				return fail(badSyntax, i)
			}
			c := src[i]
			if c == ',' {
				break
			}
			if c != ']'+byte(objects&1)*('}'-']') {
				return fail(badSyntax, i)
			}
			objects >>= 1
			open--
			i++
		}
		i = skipSpace(src, i+1)
		if objects&1 == 1 {
			if i = skipKey(src, i); i < 0 {
				return i
			}
		}
	}
}

// skipKey passes the key at i and its colon, up to the value.
func skipKey(src []byte, i int) int {
	if i >= len(src) || src[i] != '"' {
		return fail(badSyntax, i)
	}
	if i = skipString(src, i+1); i < 0 {
		return i
	}
	return skipColon(src, i)
}

// skipColon passes the colon due at i and the white space around it.
func skipColon(src []byte, i int) int {
	i = skipSpace(src, i)
	if i >= len(src) || src[i] != ':' {
		return fail(badSyntax, i)
	}
	return skipSpace(src, i+1)
}

func skipWord(src []byte, i int, word string) int {
	if len(src)-i >= len(word) && string(src[i:i+len(word)]) == word {
		return i + len(word)
	}
	for k := 0; k < len(word) && i < len(src) && src[i] == word[k]; k++ {
		i++
	}
	return fail(badSyntax, i)
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skipDigits passes the digits at i, of which there must be one.
func skipDigits(src []byte, i int) int {
	if i >= len(src) || !isDigit(src[i]) {
		return fail(badSyntax, i)
	}
	for i < len(src) && isDigit(src[i]) {
		i++
	}
	return i
}

// skipNumber passes the number at i. Like the decoder, it refuses one beyond
// float64.
func skipNumber(src []byte, i int) int {
	end, exponent := numberEnd(src, i)
	// 200 digits and an exponent of two digits stay below 1e308.
	if end-i > 200 || end-exponent > 3 {
		if _, err := strconv.ParseFloat(string(src[i:end]), 64); err != nil {
			return fail(badNumber, i)
		}
	}
	return end
}

// numberEnd returns where the number at i ends and where its exponent starts.
func numberEnd(src []byte, i int) (end, exponent int) {
	if src[i] == '-' {
		i++
	}
	if i < len(src) && src[i] == '0' {
		i++
	} else if i = skipDigits(src, i); i < 0 {
		return i, i
	}
	if i < len(src) && src[i] == '.' {
		if i = skipDigits(src, i+1); i < 0 {
			return i, i
		}
	}
	exponent = i
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if i = skipDigits(src, i); i < 0 {
			return i, i
		}
	}
	return i, exponent
}
