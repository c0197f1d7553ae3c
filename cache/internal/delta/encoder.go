package delta

import (
	"encoding/binary"
	"math/bits"
)

const (
	// word is how many bytes have to be the same where a copy begins.
	word = 8
	// A step takes some three bytes, in which seven of the text have room.
	leastCopy = 10
	// shifts is by how much longer or shorter a value may be than that of the sibling, for
	// what follows it to be looked for there, too.
	shifts = 12
	// leastBits is how many bits a byte of the text takes at least.
	leastBits = 4
	// every so many bytes of the sibling a word is remembered: what is copied is longer than
	// both together.
	every = 2

	baseBits = 13
	ownBits  = 9
)

// Encoder makes deltas beside one sibling. It belongs to one goroutine.
type Encoder struct {
	base  []byte
	table [1 << baseBits]uint16 // where in base a word is, by its hash; 0: nowhere, or at the start
	own   [1 << ownBits]uint32  // where in what is spelled out one is, plus 1
	steps []byte
	text  writer
}

// Reset takes another sibling, which must not be longer than MaxBase, and which must not be
// changed.
func (e *Encoder) Reset(base []byte) {
	e.base = base
	clear(e.table[:])
	for i := 0; i+word <= len(base); i += every {
		e.table[hash(load(base, i), baseBits)] = uint16(i)
	}
}

func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

func hash(word uint64, bits int) uint64 { return word * 0x9e3779b97f4a7c15 >> (64 - bits) }

// Held is how much memory e keeps for the next call, beside its tables.
func (e *Encoder) Held() int { return cap(e.steps) + cap(e.text.out) }

// Append appends the delta of an object. It gives up, and reports false, when that would be
// longer than most: an object that has nothing in common with base takes no longer for that.
func (e *Encoder) Append(dst, object []byte, most int) (_ []byte, ok bool) {
	clear(e.own[:])
	e.steps, e.text = e.steps[:0], writer{out: e.text.out[:0]}
	steps, spelled := 0, 0 // from where on the object is spelled out
	from := 0              // where in base that would be
	for i := 0; i+word <= len(object); {
		where, length, own := e.find(object, i, from+i-spelled)
		if length == 0 {
			e.own[hash(load(object, i), ownBits)] = uint32(i + 1)
			if i++; (i-spelled)*leastBits/8 > most {
				return dst, false
			}
			continue
		}
		// What comes before may be the same, too.
		for i > spelled && where > 0 && !own && object[i-1] == e.base[where-1] {
			i, where, length = i-1, where-1, length+1
		}
		e.text.write(object[spelled:i])
		e.steps = binary.AppendUvarint(e.steps, uint64(i-spelled))
		from += i - spelled
		if own {
			e.steps = binary.AppendUvarint(e.steps, uint64(length)<<1|1)
			e.steps = binary.AppendVarint(e.steps, int64(i-where))
		} else {
			e.steps = binary.AppendUvarint(e.steps, uint64(length)<<1)
			e.steps = binary.AppendVarint(e.steps, int64(where-from))
			from = where
		}
		steps++
		i, from = i+length, from+length
		if spelled = i; len(e.steps)+len(e.text.out) > most {
			return dst, false
		}
	}
	e.text.write(object[spelled:])
	before := len(dst)
	dst = binary.AppendUvarint(dst, uint64(steps))
	dst = append(dst, e.steps...)
	dst = append(dst, e.text.end()...)
	return dst, len(dst)-before <= most
}

// find finds what is the same as what begins in object at i: in base, which would go on at
// from, or in what the object had before.
func (e *Encoder) find(object []byte, i, from int) (where, length int, own bool) {
	w := load(object, i)
	if from >= 0 && from+word <= len(e.base) && load(e.base, from) == w {
		return from, same(e.base[from:], object[i:]), false
	}
	if at := int(e.table[hash(w, baseBits)]); at+word <= len(e.base) && load(e.base, at) == w {
		where, length = at, same(e.base[at:], object[i:])
	}
	if b := object[i]; b == '"' || b == ',' || b == '}' {
		for d := 1; d <= shifts; d++ {
			for _, at := range [2]int{from + d, from - d} {
				if at >= 0 && at+word <= len(e.base) && load(e.base, at) == w {
					if n := same(e.base[at:], object[i:]); n > length {
						where, length = at, n
					}
				}
			}
		}
	}
	if at := int(e.own[hash(w, ownBits)]) - 1; at >= 0 && load(object, at) == w {
		if n := same(object[at:i], object[i:]); n > length {
			where, length, own = at, n, true
		}
	}
	if length < leastCopy {
		return 0, 0, false
	}
	return where, length, own
}

// same is how many bytes are the same at the start of both.
func same(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+word <= n; i += word {
		if x := load(a, i) ^ load(b, i); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
