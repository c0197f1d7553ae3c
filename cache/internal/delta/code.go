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
	// runBits is how many bits are looked at at once, as three digits take.
	runBits = 12
	// runBytes is how many bytes are written of a run, whatever it has.
	runBytes = 4
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

// run is what the next bits mean where they are of one byte, two or three that are not escaped: the
// bytes, the first one in the lowest place, above them how many they are, and then how many bits
// they take. 0: the first one is escaped.
type run uint32

func (r run) bytes() int { return int(r >> 24 & 3) }

func (r run) length() uint8 { return uint8(r >> 28) }

var (
	codes    [256]code
	meanings [1 << longest]meaning
	runs     [1 << runBits]run
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
	for held := range runs {
		runs[held] = runOf(held)
	}
}

// runOf is the run that as many bits begin with.
func runOf(held int) run {
	var bytes, count, length int
	for count < runBytes-1 {
		m := meanings[held>>length&(1<<longest-1)]
		if m.escaped || m.length == 0 || length+int(m.length) > runBits {
			break
		}
		bytes |= int(m.byte) << (8 * count)
		count, length = count+1, length+int(m.length)
	}
	return run(bytes | count<<24 | length<<28)
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
	for i := 0; i < len(text); {
		if n < longest+8 {
			in, held, n = fill(in, held, n)
		}
		if len(text)-i >= runBytes {
			if next := runs[held%(1<<runBits)]; next != 0 && next.length() <= n {
				binary.LittleEndian.PutUint32(text[i:], uint32(next)) // what is too much is written over
				i, held, n = i+next.bytes(), held>>(next.length()%64), n-next.length()
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
		text[i] = m.byte
		i, held, n = i+1, held>>(m.length%64), n-m.length
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
