package persist

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// What stands for bytes that text of a database cannot have.
const (
	replacement        = "\uFFFD"
	escapedReplacement = `\ufffd`
)

// sqlText is a text as a database takes it: without zero bytes, and valid UTF-8.
func sqlText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", replacement)
	}
	return strings.ToValidUTF8(s, replacement)
}

// sqlObject is the JSON of an object as jsonb takes it, and what was altered for that.
func sqlObject(data []byte) (text, altered string) {
	out := sqlJSON(data)
	if !bytes.Equal(out, data) {
		altered = `\u0000, half a surrogate pair or bytes that are no UTF-8 stand as U+FFFD`
	}
	return string(out), altered
}

// sqlJSON is JSON as jsonb takes it. Text of a database holds neither U+0000 nor half a
// surrogate pair, which JSON can write as escapes.
func sqlJSON(data []byte) []byte {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte(replacement))
	}
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	var out []byte
	kept := 0 // up to where data is in out, if there is out
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			i++
			continue
		}
		unit, n := escapedUnit(data[i:])
		bad := n == 6 && (unit == 0 || isSurrogate(unit))
		if n == 6 && isHigh(unit) {
			if low, m := escapedUnit(data[i+n:]); m == 6 && isLow(low) {
				n, bad = 12, false
			}
		}
		if bad {
			out = append(append(out, data[kept:i]...), escapedReplacement...)
			kept = i + n
		}
		i += n
	}
	if kept == 0 {
		return data
	}
	return append(out, data[kept:]...)
}

// escapedUnit is the UTF-16 unit of an escape that data begins with, and how long the escape
// is: 6 of a unit, else what is to be passed over.
func escapedUnit(data []byte) (unit, n int) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, min(2, len(data))
	}
	for _, c := range data[2:6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | int(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | int(c|0x20-'a'+10)
		default:
			return 0, 2
		}
	}
	return unit, 6
}

func isSurrogate(unit int) bool { return unit >= 0xD800 && unit < 0xE000 }
func isHigh(unit int) bool      { return unit >= 0xD800 && unit < 0xDC00 }
func isLow(unit int) bool       { return unit >= 0xDC00 && unit < 0xE000 }
