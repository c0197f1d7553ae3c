package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	begin, end int // of the value that was read last
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
		end, err := in.skip(i)
		if err != nil {
			return part, err
		}
		name := in.text[i:end]
		if i = in.space(end); i >= len(in.text) || in.text[i] != ':' {
			return part, fmt.Errorf("%w at byte %d: a colon should be there", errJSON, i)
		}
		part = Value{in, in.space(i + 1)}
		return part, each(nameOf(name), part)
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
	if err == nil && len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
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

func nameOf(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return []byte(textOf(raw))
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
	for i < len(a.text) && (a.text[i] == ' ' || a.text[i] == '\n' || a.text[i] == '\t' || a.text[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value at i ends.
func (a *answer) skip(i int) (int, error) {
	v := a.text
	depth := 0
	for begin := i; i < len(v); {
		switch v[i] {
		case '"':
			end := quote(v, i)
			if end < 0 {
				return 0, errCut
			}
			i = end
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return 0, fmt.Errorf("%w at byte %d: a value should be there", errJSON, begin)
			}
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return 0, fmt.Errorf("%w at byte %d: a value should be there", errJSON, begin)
			}
			i++
			continue
		default:
			for i < len(v) && strings.IndexByte(",:]} \n\t\r", v[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i, nil
		}
	}
	return 0, errCut
}

// quote is where the string that begins at i ends, -1 if it does not.
func quote(v []byte, i int) int {
	for from := i + 1; ; {
		n := bytes.IndexByte(v[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		slashes := 0
		for end-1-slashes > i && v[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}
