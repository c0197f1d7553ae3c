package delta

import (
	"encoding/binary"
	"math/bits"
)

// The text of a delta is coded by how frequent a byte is in what siblings differ in: mostly
// digits of UIDs, hashes, addresses and times. The code is the same for all deltas: a table of
// its own, as zstd has for each object, takes as much room as it saves, and longer to read.
//
// lengths are how many bits the bytes of each class take. All codes together are complete:
// every row of bits means something, up to the escape, which is followed by the byte itself.
var classes = []struct {
	bits  int
	bytes string
}{
	{4, "0123456789"},
	{5, "abcdef"},
	{7, "ghijklmnopqrstuvwxyz"},
	{9, "-.:TZ/_ \"{}[],="},
}

const (
	escapeBits = 9
	longest    = 9
	// pairBits is how many bits are looked at for two bytes at once, as two digits take.
	pairBits = 10
)

// code is of one byte: its bits, the first one in the lowest place.
type code struct {
	bits   uint16
	length uint8 // 0: escaped
}

// meaning is what the next bits mean.
type meaning struct {
	byte    byte
	length  uint8 // in bits; 0: nothing
	escaped bool
}

// pair is what the next bits mean where they are of two bytes that are not escaped.
type pair struct {
	bytes  [2]byte
	length uint8 // in bits; 0: they are not
}

var (
	codes    [256]code
	meanings [1 << longest]meaning
	pairs    [1 << pairBits]pair
	escape   code
)

func init() {
	next := uint32(0) // of longest bits, the first one in the highest place
	add := func(length int, m meaning) code {
		first := next >> (longest - length)
		c := code{uint16(bits.Reverse32(first) >> (32 - length)), uint8(length)}
		m.length = uint8(length)
		for rest := range 1 << (longest - length) {
			meanings[int(c.bits)|rest<<length] = m
		}
		next += 1 << (longest - length)
		return c
	}
	for _, class := range classes {
		for _, b := range []byte(class.bytes) {
			codes[b] = add(class.bits, meaning{byte: b})
		}
	}
	escape = add(escapeBits, meaning{escaped: true})
	if next > 1<<longest {
		panic("delta: the codes do not fit")
	}
	for held := range pairs {
		first := meanings[held&(1<<longest-1)]
		second := meanings[held>>first.length&(1<<longest-1)]
		if length := first.length + second.length; !first.escaped && !second.escaped && length <= pairBits {
			pairs[held] = pair{[2]byte{first.byte, second.byte}, length}
		}
	}
}

// writer appends bits.
type writer struct {
	out  []byte
	held uint64
	n    uint8
}

func (w *writer) write(text []byte) {
	for _, b := range text {
		c := codes[b]
		if c.length == 0 {
			w.add(uint64(escape.bits)|uint64(b)<<escape.length, escape.length+8)
			continue
		}
		w.add(uint64(c.bits), c.length)
	}
}

func (w *writer) add(bits uint64, n uint8) {
	w.held |= bits << w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.out = append(w.out, byte(w.held))
		w.held >>= 8
	}
}

// end appends what is left, with zeros after it.
func (w *writer) end() []byte {
	if w.n > 0 {
		w.out = append(w.out, byte(w.held))
	}
	return w.out
}

// reader reads what a writer wrote.
type reader struct {
	in   []byte
	held uint64
	n    uint8
}

// read fills text, and reports whether there was so much.
func (r *reader) read(text []byte) bool {
	in, held, n := r.in, r.held, r.n // in registers, as this is most of what unpacking takes
	for len(text) > 0 {
		if n < longest+8 {
			in, held, n = fill(in, held, n)
		}
		if len(text) > 1 {
			if p := pairs[held%(1<<pairBits)]; p.length > 0 && p.length <= n {
				text[0], text[1], text = p.bytes[0], p.bytes[1], text[2:]
				held, n = held>>(p.length%64), n-p.length
				continue
			}
		}
		m := meanings[held%(1<<longest)]
		if m.escaped {
			m.byte = byte(held >> (m.length % 64))
			m.length += 8
		}
		if m.length == 0 || m.length > n {
			return false
		}
		text[0], text = m.byte, text[1:]
		held, n = held>>(m.length%64), n-m.length
	}
	r.in, r.held, r.n = in, held, n
	return true
}

// fill holds as much as there is room for.
func fill(in []byte, held uint64, n uint8) ([]byte, uint64, uint8) {
	if len(in) >= 8 {
		held |= binary.LittleEndian.Uint64(in) << (n % 64)
		whole := (63 - n) / 8
		n += whole * 8
		return in[whole:], held & (1<<(n%64) - 1), n
	}
	for n <= 48 && len(in) > 0 {
		held |= uint64(in[0]) << n
		in, n = in[1:], n+8
	}
	return in, held, n
}

// atEnd reports whether nothing is left but zeros that fill the last byte.
func (r *reader) atEnd() bool {
	r.in, r.held, r.n = fill(r.in, r.held, r.n)
	return len(r.in) == 0 && r.n < 8 && r.held == 0
}
