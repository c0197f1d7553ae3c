package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Value is a part of an answer in JSON, as it was written. It is read by walking through it:
// of 20,000 rows encoding/json takes longer than informerd does to find and write them. What
// is walked past is not checked beyond its quotes and brackets. What is read of a Value need
// not be passed once more to find what follows it, so that most of an answer is read once.
// The zero Value is none. Values of one answer are for one goroutine. What Text and Decode make
// of it is a copy; Raw is not.
type Value struct {
	in *answer
	at int // where it begins
}

// answer is the text that Values are parts of.
type answer struct {
	text       []byte
	begin, end int  // of the value that was read last
	plain      bool // nothing is escaped in the string that was passed last
}

// NewValue is the JSON in text.
func NewValue(text []byte) Value {
	a := &answer{text: text, begin: -1}
	return Value{a, a.space(0)}
}

var (
	errJSON = errors.New("it is not JSON")
	errCut  = errors.New("it ends within a value")
)

// IsZero reports whether it is none.
func (v Value) IsZero() bool { return v.in == nil }

// Kind is the first byte of how it is written, 0 if it is cut off before that.
func (v Value) Kind() byte {
	if v.at >= len(v.in.text) {
		return 0
	}
	return v.in.text[v.at]
}

// Raw is how it is written; of the zero Value nothing.
func (v Value) Raw() ([]byte, error) {
	if v.IsZero() {
		return nil, nil
	}
	end, err := v.end()
	if err != nil {
		return nil, err
	}
	return v.in.text[v.at:end], nil
}

// Is reports whether it is written so.
func (v Value) Is(raw string) bool {
	got, err := v.Raw()
	return err == nil && string(got) == raw
}

// Equal reports whether both are written in the same way, or both are none.
func (v Value) Equal(other Value) bool {
	a, err := v.Raw()
	b, errOther := other.Raw()
	return err == nil && errOther == nil && string(a) == string(b)
}

// end is where what follows it begins.
func (v Value) end() (int, error) {
	if v.in.begin == v.at {
		return v.in.end, nil
	}
	end, err := v.in.skip(v.at)
	if err == nil {
		v.in.begin, v.in.end = v.at, end
	}
	return end, err
}

// Members calls each with the members of an object. A name is valid until each returns.
func (v Value) Members(each func(name []byte, value Value) error) error {
	in := v.in
	return v.walk('{', '}', func(i int) (part Value, err error) {
		if i >= len(in.text) || in.text[i] != '"' {
			return part, fmt.Errorf("%w at byte %d: a name should be there", errJSON, i)
		}
		end, plain := quote(in.text, i)
		if end < 0 {
			return part, errCut
		}
		name := in.text[i+1 : end-1]
		if !plain {
			name = []byte(textOf(in.text[i:end]))
		}
		if i = in.space(end); i >= len(in.text) || in.text[i] != ':' {
			return part, fmt.Errorf("%w at byte %d: a colon should be there", errJSON, i)
		}
		part = Value{in, in.space(i + 1)}
		return part, each(name, part)
	})
}

// Elements calls each with the elements of an array. null has none.
func (v Value) Elements(each func(Value) error) error {
	if v.Kind() == 'n' && v.Is("null") {
		return nil
	}
	return v.walk('[', ']', func(i int) (Value, error) {
		part := Value{v.in, i}
		return part, each(part)
	})
}

// walk calls next with where each part begins, for the value that ends it.
func (v Value) walk(first, last byte, next func(i int) (Value, error)) error {
	in, i := v.in, v.at
	if i >= len(in.text) || in.text[i] != first {
		return fmt.Errorf("%w at byte %d: %c should be there", errJSON, i, first)
	}
	if i = in.space(i + 1); i < len(in.text) && in.text[i] == last {
		in.begin, in.end = v.at, i+1
		return nil
	}
	for {
		part, err := next(i)
		if err != nil {
			return err
		}
		end, err := part.end()
		if err != nil {
			return err
		}
		i = in.space(end)
		switch {
		case i < len(in.text) && in.text[i] == ',':
			i = in.space(i + 1)
		case i < len(in.text) && in.text[i] == last:
			in.begin, in.end = v.at, i+1
			return nil
		default:
			return fmt.Errorf("%w at byte %d: a comma or %c should be there", errJSON, i, last)
		}
	}
}

// Text is what a string says, and of other values how they are written. It is empty where a
// value is cut off, which who walks on is told.
func (v Value) Text() string {
	raw, err := v.Raw()
	if err != nil {
		return ""
	}
	return textOf(raw)
}

// AppendText appends Text to dst.
func (v Value) AppendText(dst []byte) []byte {
	raw, err := v.Raw()
	if err == nil && len(raw) >= 2 && raw[0] == '"' && v.in.plain {
		return append(dst, raw[1:len(raw)-1]...)
	}
	return append(dst, v.Text()...)
}

// TextAs is Text. Where that is before, it is not copied: much of a row is as in the one
// before it.
func (v Value) TextAs(before string) string {
	raw, err := v.Raw()
	if err == nil && len(raw) == len(before)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == before && strings.IndexByte(before, '\\') < 0 {
		return before
	}
	return v.Text()
}

func textOf(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return string(raw)
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// Decode reads it as encoding/json does.
func (v Value) Decode(into any) error {
	raw, err := v.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (a *answer) space(i int) int {
	if i < len(a.text) && a.text[i] > ' ' {
		return i
	}
	for i < len(a.text) && (a.text[i] == ' ' || a.text[i] == '\n' || a.text[i] == '\t' || a.text[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value at i ends.
func (a *answer) skip(i int) (int, error) {
	v := a.text
	if i >= len(v) {
		return 0, errCut
	}
	switch v[i] {
	case '"':
		end, plain := quote(v, i)
		if end < 0 {
			return 0, errCut
		}
		a.plain = plain
		return end, nil
	case '{', '[':
		return nested(v, i)
	}
	begin := i
	for i < len(v) && strings.IndexByte(",:]} \n\t\r", v[i]) < 0 {
		i++
	}
	if i == begin {
		return 0, fmt.Errorf("%w at byte %d: a value should be there", errJSON, begin)
	}
	return i, nil
}

// nested is where the object or array at i ends. It is read in words of eight bytes, of which
// most have neither a bracket nor a backslash: of them only the quotes are counted, since an odd
// number of them begins or ends a string.
func nested(v []byte, i int) (int, error) {
	depth, quoted := 0, false
	for i < len(v) {
		if i+8 <= len(v) {
			if w := binary.LittleEndian.Uint64(v[i:]); careful(w) == 0 {
				quoted = quoted != (bits.OnesCount64(zeroBytes(w^ones*'"'))&1 != 0)
				i += 8
				continue
			}
		}
		for end := min(i+8, len(v)); i < end; i++ {
			switch c := v[i]; {
			case c == '"':
				quoted = !quoted
			case quoted && c == '\\':
				i++
			case quoted:
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				if depth--; depth == 0 {
					return i + 1, nil
				}
			}
		}
	}
	return 0, errCut
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// careful marks the bytes of a word that are brackets or backslashes, or |, which shares their
// bits but for 0x20.
func careful(w uint64) uint64 {
	t := w&^highs | ones*0x20
	return (t + ones*(0x80-'{')) &^ (t + ones*(0x7f-'}')) &^ w & highs
}

// zeroBytes marks, with their high bits, the bytes of w that are zero.
func zeroBytes(w uint64) uint64 {
	const lows = ^uint64(highs)
	return highs &^ (w&lows + lows | w)
}

// quote is where the string that begins at i ends, -1 if it does not. plain says that nothing
// of it is escaped. It is read in words of eight bytes.
func quote(v []byte, i int) (end int, plain bool) {
	plain = true
	for i++; ; {
		for i+8 <= len(v) {
			stops := stringStops(binary.LittleEndian.Uint64(v[i:]))
			if stops != 0 {
				i += bits.TrailingZeros64(stops) >> 3
				break
			}
			i += 8
		}
		for i < len(v) && v[i] != '"' && v[i] != '\\' {
			i++
		}
		switch {
		case i >= len(v):
			return -1, false
		case v[i] == '"':
			return i + 1, plain
		}
		plain = false
		i += 2
	}
}

// stringStops marks, with their high bits, the bytes of a word that are quotes or backslashes.
// Of those behind the first one it may mark others, too.
func stringStops(w uint64) uint64 {
	q, b := w^ones*'"', w^ones*'\\'
	return ((q-ones)&^q | (b-ones)&^b) & highs
}
