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

// nested goes on in a string, object or array from p[i]. Objects and arrays are read in
// words of eight bytes.
func (b *boundary) nested(p []byte, i int) (int, bool) {
	if b.mode == inNested {
		var done bool
		if i, done = b.words(p, i); done {
			return i, true
		}
	}
	return b.steps(p, i, len(p))
}

// steps looks at p[i:end], and at what is escaped after it.
func (b *boundary) steps(p []byte, i, end int) (int, bool) {
	for ; i < end || b.escaped && i < len(p); i++ {
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

// words goes on in an object or array for as long as p has whole words. Most have none of its
// brackets: of them only the quotes are counted, since an odd number of them begins or ends a
// string.
func (b *boundary) words(p []byte, i int) (end int, done bool) {
	if i, done = b.steps(p, i, i); done { // what the last piece has escaped
		return i, true
	}
	open, closing := ones*uint64(b.open), ones*uint64(b.open+2)
	from, to := ones*(0x80-uint64(b.open)), ones*(0x7f-uint64(b.open+2))
	var uncounted uint64 // has a bit for each quote since b.quoted, less those that two words have in one place
	for i+8 <= len(p) {
		w := binary.LittleEndian.Uint64(p[i : i+8])
		quotes := zeroBytes(w ^ ones*'"')
		slashes := zeroBytes(w ^ ones*'\\')
		t := w &^ highs
		if (t+from)&^(t+to)&^w&highs|slashes == 0 { // no byte from open to closing
			uncounted ^= quotes
			i += 8
			continue
		}
		b.quoted, uncounted = b.quoted != odd(uncounted), 0
		before := slashes&-slashes - 1 // the first of them; all bits if there is none
		inside := b.strings(quotes & before)
		n, done := b.brackets(zeroBytes(w^open)&before&^inside, zeroBytes(w^closing)&before&^inside)
		if done {
			return i + n, true
		}
		if i += 8; slashes != 0 {
			i = b.escapes(p, i-8+bits.TrailingZeros64(slashes)>>3)
		}
	}
	b.quoted = b.quoted != odd(uncounted)
	return i, false
}

// zeroBytes marks, with their high bits, the bytes of w that are zero.
func zeroBytes(w uint64) uint64 {
	const lows = ^uint64(highs)
	return highs &^ (w&lows + lows | w)
}

// strings marks which bytes of a word are inside strings, opening quotes included, and
// remembers whether the next word begins in one.
func (b *boundary) strings(quotes uint64) uint64 {
	before := uint64(0)
	if b.quoted {
		before = ones
	}
	counts := quotes>>7*ones + before // in each byte those up to it, nine at most
	b.quoted = counts>>56&1 != 0
	return counts << 7 & highs
}

func odd(marks uint64) bool { return bits.OnesCount64(marks)&1 != 0 }

// brackets counts those of a word. It returns how many of its bytes belong to the value if
// it ends there.
func (b *boundary) brackets(opens, closes uint64) (n int, done bool) {
	if n := bits.OnesCount64(closes); n < b.depth {
		b.depth += bits.OnesCount64(opens) - n
		return 0, false
	}
	for ; closes != 0; closes &= closes - 1 {
		at := bits.TrailingZeros64(closes)
		before := uint64(1)<<at - 1
		b.depth += bits.OnesCount64(opens&before) - 1
		if b.depth == 0 {
			return at>>3 + 1, true
		}
		opens &^= before
	}
	b.depth += bits.OnesCount64(opens)
	return 0, false
}

// escapes goes on from the backslash at i to the end of its string, or to where p has no
// whole word any more: JSON inside of a string has a backslash in nearly every word.
func (b *boundary) escapes(p []byte, i int) int {
	for {
		b.step(p[i])
		if i++; b.escaped && i < len(p) {
			b.step(p[i])
			i++
		}
		stops := uint64(0)
		for ; stops == 0; i += 8 {
			if !b.quoted || i+8 > len(p) {
				return i
			}
			stops = stringStops(binary.LittleEndian.Uint64(p[i : i+8]))
		}
		i += bits.TrailingZeros64(stops)>>3 - 8
	}
}
