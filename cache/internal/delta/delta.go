// Package delta says what an object is beside a sibling of it. Pods of a ReplicaSet differ in
// a few names, addresses, digests and times: a delta copies what is the same from the sibling,
// and spells out the rest. To apply it is little more than to copy memory, which takes a
// tenth of what unpacking the object does.
//
// A delta is the number of its steps, the steps, and the text that they spell out:
//
//	uvarint  how many steps
//	steps    each: uvarint  how many bytes of the text come first
//	               uvarint  twice how many bytes are copied then, plus 1 if from the object itself
//	               varint   from where: of the sibling, how far beyond where the step before
//	                        would go on if the text took the place of as many bytes; of the
//	                        object itself, how far back
//	text     the bytes spelled out, as a code of bits (see code.go)
//
// What is left of the text after the last step comes last.
package delta

import (
	"errors"
	"slices"
	"sync"
)

// MaxBase is how long a sibling may be in bytes.
const MaxBase = 1<<16 - 1

// ErrDamaged is what Apply says of what Append has not made of this sibling.
var ErrDamaged = errors.New("a delta does not fit its sibling")

// Apply appends the object, size bytes, that delta says is beside base.
func Apply(dst, base, delta []byte, size int) ([]byte, error) {
	s := pool.Get().(*Steps)
	defer pool.Put(s)
	defer s.Release()
	if !s.Read(delta) {
		return dst, ErrDamaged
	}
	return s.Apply(dst, base, size)
}

var pool = sync.Pool{New: func() any { return new(Steps) }}

// Apply appends the object, size bytes, that s says is beside base.
func (s *Steps) Apply(dst, base []byte, size int) ([]byte, error) {
	text, ok := s.spell(size)
	if !ok {
		return dst, ErrDamaged
	}
	start := len(dst)
	dst = slices.Grow(dst, size)
	out := dst[start : start+size]
	at, from := 0, 0 // where the object and the sibling go on
	for _, step := range s.steps {
		// What is left of the object is as long as what is left of the text and all that is copied
		// from here on.
		spelled, copied := int(step.spelled), int(step.copied)
		if spelled > len(text) {
			return dst, ErrDamaged
		}
		if spelled <= block && len(text) >= block && len(out)-at >= block {
			*(*[block]byte)(out[at:]) = *(*[block]byte)(text) // what is too much is written over
		} else {
			copy(out[at:], text[:spelled])
		}
		text = text[spelled:]
		at, from = at+spelled, from+spelled
		if step.own {
			back := int(step.where)
			if back <= 0 || back > at || copied > back {
				return dst, ErrDamaged
			}
			copy(out[at:at+copied], out[at-back:])
		} else {
			from += int(step.where)
			if from < 0 || from > len(base) || copied > len(base)-from {
				return dst, ErrDamaged
			}
			copy(out[at:at+copied], base[from:])
		}
		at, from = at+copied, from+copied
	}
	copy(out[at:], text)
	return dst[:start+size], nil
}

// block is how many bytes of the text are copied at once where a step spells out fewer, which takes
// less than to see how many.
const block = 16

// spell reads the text of an object, size bytes: all at once, since where the text of a step ends cannot be
// foreseen by the processor.
func (s *Steps) spell(size int) ([]byte, bool) {
	length := uint64(size)
	for _, step := range s.steps {
		if uint64(step.copied) > length {
			return nil, false
		}
		length -= uint64(step.copied)
	}
	if length > uint64(len(s.text))*8/leastBits {
		return nil, false
	}
	s.spelled = slices.Grow(s.spelled[:0], int(length))[:length]
	r := reader{in: s.text}
	return s.spelled, r.read(s.spelled) && r.atEnd()
}
