package rawjson

// boundary finds where a JSON value ends, in bytes that come in pieces. It
// follows strings and one kind of bracket and leaves validation to whoever
// reads the value. The zero boundary is ready for one value.
type boundary struct {
	mode    boundaryMode
	open    byte // the bracket the value starts with; its partner is open+2
	depth   int
	quoted  bool // inside a string
	escaped bool // after a backslash
}

type boundaryMode uint8

const (
	atStart  boundaryMode = iota // src starts with the value's first byte
	inNested                     // object or array
	inString
	inWord // number, true, false, null
)

// feed looks at the next piece of the value. It returns how much of p belongs
// to the value, and whether the value ends there. A number or word ends only
// before a byte that cannot belong to it.
func (b *boundary) feed(p []byte) (n int, done bool) {
	i := 0
	if b.mode == atStart {
		if len(p) == 0 {
			return 0, false
		}
		switch p[0] {
		case '{', '[':
			b.mode, b.open, b.depth = inNested, p[0], 1
			i = 1
		case '"':
			b.mode, b.quoted = inString, true
			i = 1
		default:
			b.mode = inWord
		}
	}
	if b.mode == inWord {
		for i < len(p) && isWordByte(p[i]) {
			i++
		}
		return i, i < len(p)
	}
	return b.nested(p, i)
}

func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '-' || c == '+' || c == '.'
}

// nested goes on in a string, object or array from p[i].
func (b *boundary) nested(p []byte, i int) (int, bool) {
	for ; i < len(p); i++ {
		c := p[i]
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted:
			if c == '\\' {
				b.escaped = true
			} else if c == '"' {
				b.quoted = false
				if b.mode == inString {
					return i + 1, true
				}
			}
		case c == '"':
			b.quoted = true
		case c == b.open:
			b.depth++
		case c == b.open+2:
			b.depth--
			if b.depth == 0 {
				return i + 1, true
			}
		}
	}
	return i, false
}
