package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Span is a piece of a document that is in an excerpt of it as it stands: Len bytes, which begin
// at At in the excerpt and at From in the document.
type Span struct{ At, From, Len int }

// tracing notes the spans of an excerpt of a document.
type tracing struct {
	before int // how much was there before the excerpt
	size   int // of the document
	spans  []Span
}

// note is called before raw, with which v begins, is appended to dst.
func (t *tracing) note(dst []byte, v Lazy, raw []byte) {
	if t != nil {
		t.spans = append(t.spans, Span{len(dst) - t.before, t.size - len(v), len(raw)})
	}
}

// Trace is Append, and appends to spans where each value of the excerpt is from, in their order,
// which is that of the document, too. What is between them, keys and punctuation, depends on the
// keys and on the kinds of values alone.
func (e *Excerpt) Trace(dst []byte, spans []Span, src []byte) ([]byte, []Span) {
	t := tracing{len(dst), len(src), spans}
	dst = e.append(dst, src, &t)
	return dst, t.spans
}

// maxInsides is how long a document may be for Insides.
const maxInsides = 1<<16 - 1

// Insides tells, for the place before each byte of a valid document, where the string or number ends
// that the place is in: at the closing quote, or at the byte after the last digit. A place after an
// opening quote is in the string, and so is that before a closing one; likewise those around the
// digits of a number. 0: it is in neither. Keys, places in the middle of an escape, and numbers that
// are not digits alone, or with which the document begins or ends, are left out.
//
// The answer is in dst if that has room; nil: the document is too long.
func Insides(dst []uint16, src []byte) []uint16 { return insides(dst, src, nil) }

// insides is Insides with the keys that are within some extents, which are in their order.
func insides(dst []uint16, src []byte, within []extent) []uint16 {
	if len(src) > maxInsides {
		return nil
	}
	if cap(dst) < len(src) {
		dst = make([]uint16, len(src))
	}
	dst = dst[:len(src)]
	clear(dst)
	for i := 0; i < len(src); {
		switch {
		case src[i] == '"':
			end := skipString(src, i+1)
			if end < 0 {
				return nil
			}
			for len(within) > 0 && within[0].end <= i {
				within = within[1:]
			}
			if next := skipSpace(src, end); next == len(src) || src[next] != ':' || len(within) > 0 && within[0].start <= i {
				for k := i + 1; k < end; k = skipCharacter(src, k) {
					dst[k] = uint16(end - 1)
				}
			}
			i = end
		case isWordByte(src[i]):
			end := i
			for end < len(src) && isWordByte(src[end]) {
				end++
			}
			if i > 0 && end < len(src) && areDigits(src[i:end]) {
				for k := i; k <= end; k++ {
					dst[k] = uint16(end)
				}
			}
			i = end
		default:
			i++
		}
	}
	return dst
}

// extent is a piece of a document.
type extent struct{ start, end int }

// skipCharacter passes what is at i of a valid string: a byte or an escape.
func skipCharacter(src []byte, i int) int {
	if src[i] == '\\' {
		return skipEscape(src, i)
	}
	return i + 1
}

// PassText is the first place from i on where there is what cannot be in a string as it stands: a
// quote, a backslash or a control character.
func PassText(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if m := stringStops(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(src) && !stopsString(src[i]) {
		i++
	}
	return i
}

// areDigits reports whether text has nothing but digits.
func areDigits(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
