package rows

import (
	"hash/maphash"
	"iter"
)

var seed = maphash.MakeSeed()

// Hash is a hash of texts, for a Table of what is told apart by them.
func Hash(texts ...string) (hash uint64) {
	for _, text := range texts {
		hash = hash*31 ^ maphash.String(seed, text)
	}
	return hash
}

// HashNumbers is a hash of numbers in their order.
func HashNumbers[T ~uint32 | ~uint64](numbers ...T) (hash uint64) {
	for _, n := range numbers {
		hash = maphash.Comparable(seed, hash^uint64(n))
	}
	return hash
}

// Table finds numbers by a hash of what they number. It holds nothing but the numbers. The zero
// Table is empty. Not safe for concurrent changes.
type Table struct {
	// slots have a number + 1 each, or 0. A number is in the first slot from that of its hash on
	// which was free, with no free one between. There are none, or a power of two.
	slots []uint32
	used  int
}

// leastSlots is how many slots there are at first.
const leastSlots = 8

// Find returns the number with the hash that is meant: is tells.
func (t *Table) Find(hash uint64, is func(number uint32) bool) (number uint32, found bool) {
	if t.used == 0 {
		return 0, false
	}
	for at := t.first(hash); t.slots[at] != 0; at = t.next(at) {
		if number := t.slots[at] - 1; is(number) {
			return number, true
		}
	}
	return 0, false
}

// Add enters a number that is not there; hashOf tells the hash of each that is, and of this one.
func (t *Table) Add(number uint32, hashOf func(number uint32) uint64) {
	if (t.used+1)*4 > len(t.slots)*3 {
		t.resize(max(leastSlots, len(t.slots)*2), hashOf)
	}
	t.enter(number, hashOf(number))
	t.used++
}

// Remove takes out a number that is there, while hashOf still tells its hash.
func (t *Table) Remove(number uint32, hashOf func(number uint32) uint64) {
	at := t.first(hashOf(number))
	for t.slots[at] != number+1 {
		at = t.next(at)
	}
	t.used--
	// What follows without a free slot between may have found this one taken, and goes into it.
	free := at
	for at = t.next(at); t.slots[at] != 0; at = t.next(at) {
		wanted := t.first(hashOf(t.slots[at] - 1))
		if t.distance(wanted, at) >= t.distance(free, at) {
			t.slots[free] = t.slots[at]
			free = at
		}
	}
	t.slots[free] = 0
	if len(t.slots) > leastSlots && t.used*8 < len(t.slots) {
		t.resize(len(t.slots)/2, hashOf)
	}
}

// All are the numbers, in no order.
func (t *Table) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, slot := range t.slots {
			if slot != 0 && !yield(slot-1) {
				return
			}
		}
	}
}

// Len is how many numbers there are.
func (t *Table) Len() int { return t.used }

func (t *Table) resize(slots int, hashOf func(uint32) uint64) {
	before := t.slots
	t.slots = make([]uint32, slots)
	for _, slot := range before {
		if slot != 0 {
			t.enter(slot-1, hashOf(slot-1))
		}
	}
}

func (t *Table) enter(number uint32, hash uint64) {
	at := t.first(hash)
	for t.slots[at] != 0 {
		at = t.next(at)
	}
	t.slots[at] = number + 1
}

func (t *Table) first(hash uint64) int { return int(hash & uint64(len(t.slots)-1)) }
func (t *Table) next(at int) int       { return (at + 1) & (len(t.slots) - 1) }

// distance is how many slots are from one to another, forwards.
func (t *Table) distance(from, to int) int { return (to - from) & (len(t.slots) - 1) }
