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
	"encoding/binary"
	"errors"
	"slices"
)

// MaxBase is how long a sibling may be in bytes.
const MaxBase = 1<<16 - 1

// ErrDamaged is what Apply says of what Append has not made of this sibling.
var ErrDamaged = errors.New("a delta does not fit its sibling")

// Apply appends the object, size bytes, that delta says is beside base.
func Apply(dst, base, delta []byte, size int) ([]byte, error) {
	start := len(dst)
	steps, n := binary.Uvarint(delta)
	if n <= 0 || steps > uint64(len(delta)) {
		return dst, ErrDamaged
	}
	text, ok := skipSteps(delta[n:], int(steps))
	if !ok {
		return dst, ErrDamaged
	}
	dst = slices.Grow(dst, size)
	out := dst[:start+size]
	r := reader{in: text}
	at, from, rest := start, 0, delta[n:]
	for range steps {
		var spelled, copied uint64
		var where int64
		spelled, rest = uvarint(rest)
		copied, rest = uvarint(rest)
		where, rest = varint(rest)
		own, length := copied&1 == 1, int(copied>>1)
		if spelled > uint64(len(out)-at) || copied>>1 > uint64(len(out)-at)-spelled {
			return dst, ErrDamaged
		}
		if !r.read(out[at : at+int(spelled)]) {
			return dst, ErrDamaged
		}
		at, from = at+int(spelled), from+int(spelled)
		if own {
			back := int(where)
			if back <= 0 || back > at-start || length > back {
				return dst, ErrDamaged
			}
			copy(out[at:at+length], out[at-back:])
		} else {
			from += int(where)
			if from < 0 || from > len(base) || length > len(base)-from {
				return dst, ErrDamaged
			}
			copy(out[at:at+length], base[from:])
		}
		at, from = at+length, from+length
	}
	if !r.read(out[at:]) || !r.atEnd() {
		return dst, ErrDamaged
	}
	return out, nil
}

// uvarint and varint are for what skipSteps has gone through.
func uvarint(b []byte) (uint64, []byte) {
	if b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

func varint(b []byte) (int64, []byte) {
	u, rest := uvarint(b)
	return int64(u>>1) ^ -int64(u&1), rest
}

// skipSteps is what comes after so many steps.
func skipSteps(b []byte, steps int) (rest []byte, ok bool) {
	at := 0
	for range 3 * steps {
		began := at
		for at < len(b) && b[at] >= 0x80 {
			at++
		}
		if at++; at > len(b) || at-began > 5 {
			return nil, false
		}
	}
	return b[at:], true
}
