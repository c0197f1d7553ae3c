package rawjson

import (
	"encoding/binary"
	"math/bits"
)

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

// nested goes on in a string, object or array from p[i]. Objects and arrays are
// read in blocks of 64 bytes without a branch per byte.
func (b *boundary) nested(p []byte, i int) (int, bool) {
	if b.mode == inNested {
		for ; i+64 <= len(p); i += 64 {
			if end := b.block((*[64]byte)(p[i:])); end > 0 {
				return i + end, true
			}
		}
	}
	for ; i < len(p); i++ {
		if b.step(p[i]) {
			return i + 1, true
		}
	}
	return i, false
}

// step looks at one byte and reports whether it ends the value.
func (b *boundary) step(c byte) bool {
	switch {
	case b.escaped:
		b.escaped = false
	case b.quoted && c == '\\':
		b.escaped = true
	case c == '"':
		b.quoted = !b.quoted
		return b.mode == inString && !b.quoted
	case b.quoted:
	case c == b.open:
		b.depth++
	case c == b.open+2:
		b.depth--
		return b.depth == 0
	}
	return false
}

// block looks at 64 bytes. It returns how many of them belong to the value if
// it ends there, else 0. Each byte becomes a bit of a word; see Langdale and
// Lemire, "Parsing Gigabytes of JSON per Second", for how strings are found.
func (b *boundary) block(p *[64]byte) int {
	var quotes, slash, opens, closes uint64
	open, closing := ones*uint64(b.open), ones*uint64(b.open+2)
	for k := 0; k < 64; k += 8 {
		w := binary.LittleEndian.Uint64(p[k : k+8])
		quotes = quotes>>8 | zeroBytes(w^ones*'"')
		opens = opens>>8 | zeroBytes(w^open)
		closes = closes>>8 | zeroBytes(w^closing)
		w ^= ones * '\\'
		slash |= (w - ones) &^ w // not which, only whether
	}
	if slash&highs != 0 || b.escaped {
		quotes &^= b.escapes(backslashes(p))
	}
	inside := b.strings(quotes)
	opens &^= inside
	closes &^= inside
	if n := bits.OnesCount64(closes); n < b.depth {
		b.depth += bits.OnesCount64(opens) - n
		return 0
	}
	for ; closes != 0; closes &= closes - 1 {
		at := bits.TrailingZeros64(closes)
		before := uint64(1)<<at - 1
		b.depth += bits.OnesCount64(opens&before) - 1
		if b.depth == 0 {
			return at + 1
		}
		opens &^= before
	}
	b.depth += bits.OnesCount64(opens)
	return 0
}

func backslashes(p *[64]byte) (slashes uint64) {
	for k := 0; k < 64; k += 8 {
		slashes = slashes>>8 | zeroBytes(binary.LittleEndian.Uint64(p[k:k+8])^ones*'\\')
	}
	return slashes
}

// zeroBytes returns, in its highest byte, one bit for each zero byte of w.
func zeroBytes(w uint64) uint64 {
	const lows = ^uint64(highs)
	z := highs &^ (w&lows + lows | w) // 0x80 for each zero byte
	return z * 0x0002040810204081 & (0xff << 56)
}

// escapes returns which bytes are escaped by an odd number of backslashes
// before them, also by one at the end of the last block.
func (b *boundary) escapes(slashes uint64) uint64 {
	const even = 0x5555555555555555
	var carry uint64
	if b.escaped {
		carry = 1
	}
	slashes &^= carry
	after := slashes<<1 | carry
	oddStarts := slashes &^ (even | after)
	sum, over := bits.Add64(oddStarts, slashes, 0)
	b.escaped = over != 0
	return (even ^ sum<<1) & after
}

// strings returns which bytes are inside strings, opening quotes included.
func (b *boundary) strings(quotes uint64) uint64 {
	x := quotes
	x ^= x << 1
	x ^= x << 2
	x ^= x << 4
	x ^= x << 8
	x ^= x << 16
	x ^= x << 32
	if b.quoted {
		x = ^x
	}
	b.quoted = int64(x) < 0
	return x
}
