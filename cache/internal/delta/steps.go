package delta

import (
	"encoding/binary"
	"math"
	"slices"
)

// Steps are those of one delta and its text, read once for all that is done with it: to read a step
// takes as long as to follow it. The zero Steps are of none. They belong to one goroutine, and hold the
// delta until Release.
type Steps struct {
	steps []step
	text  []byte // coded

	spelled []byte // the text
}

// Release has s be of no delta. It keeps its memory for the next one, unless that is large.
func (s *Steps) Release() {
	if cap(s.steps) > mostSteps {
		s.steps = nil
	}
	if cap(s.spelled) > MaxBase {
		s.spelled = nil
	}
	s.steps, s.text = s.steps[:0], nil
}

// mostSteps is how many a Steps keeps memory for. Pods have some 25.
const mostSteps = 1 << 12

// step is what comes next of the object.
type step struct {
	spelled, copied uint32 // bytes
	where           int32  // see own, else how far beyond where the sibling would go on
	own             bool   // copied from so far back in the object itself
}

// stepBytes is what a step takes of a delta at least.
const stepBytes = 3

// Read makes s those of delta, and reports whether it can be one.
func (s *Steps) Read(delta []byte) bool {
	count, at := uvarint(delta, 0)
	if at == 0 || uint64(count) > uint64(len(delta)/stepBytes) {
		return false
	}
	s.steps = slices.Grow(s.steps[:0], int(count))[:count]
	for i := range s.steps {
		if at = s.steps[i].read(delta, at); at == 0 {
			return false
		}
	}
	s.text = delta[at:]
	return true
}

// read reads the step at at, and returns where the next one is, 0 if there is none.
func (s *step) read(delta []byte, at int) (next int) {
	if at+word <= len(delta) {
		w := load(delta, at)
		copied, n, long := short(w >> 8)
		where, m, longer := short(w >> 8 >> (8 * n))
		if w&0x80|long|longer == 0 {
			s.set(uint32(w&0x7f), copied, where)
			return at + 1 + int(n+m)
		}
	}
	spelled, at := uvarint(delta, at)
	if at == 0 {
		return 0
	}
	copied, at := uvarint(delta, at)
	if at == 0 {
		return 0
	}
	where, at := uvarint(delta, at)
	s.set(spelled, copied, where)
	return at
}

func (s *step) set(spelled, copied, where uint32) {
	*s = step{spelled, copied >> 1, int32(where>>1) ^ -int32(where&1), copied&1 == 1}
}

// short reads of word a number of one byte or two, as nearly all are, without a branch, which would
// often be mispredicted. long is 1 if it has more.
func short(word uint64) (number uint32, bytes, long uint64) {
	second := word >> 7 & 1
	return uint32(word&0x7f | word>>1&0x3f80&-second), 1 + second, word >> 15 & second
}

// uvarint reads the number at at, and returns where the next one is, 0 if there is none.
func uvarint(b []byte, at int) (number uint32, next int) {
	v, n := binary.Uvarint(b[at:])
	if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
		return 0, 0
	}
	return uint32(v), at + n
}
