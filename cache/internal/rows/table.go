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
	// parts have the numbers by the highest bits of their hashes. There are none, one, or, of a
	// large table, manyParts: each grows by itself, since to move a million numbers at once would
	// keep a processor, and the lock of whom the table is of, for 35 ms.
	parts []part
	used  int
}

// part has the numbers whose hashes agree in their highest bits, or all there are.
type part struct {
	// slots have a number + 1 each, or 0. A number is in the first slot from that of its hash on
	// which was free, with no free one between. There are none, or a power of two.
	slots []uint32
	used  int
}

const (
	leastSlots = 8 // of a part, at first
	partBits   = 8
	manyParts  = 1 << partBits
	// onePart is how many slots a table has before it gets manyParts.
	onePart = 1 << 12
)

// Find returns the number with the hash that is meant: is tells.
func (t *Table) Find(hash uint64, is func(number uint32) bool) (number uint32, found bool) {
	if t.used == 0 {
		return 0, false
	}
	return t.part(hash).find(hash, is)
}

// Add enters a number that is not there; hashOf tells the hash of each that is, and of this one.
func (t *Table) Add(number uint32, hashOf func(number uint32) uint64) {
	switch {
	case t.used == 0:
		t.parts = make([]part, 1)
	case len(t.parts) == 1 && t.parts[0].full() && len(t.parts[0].slots) == onePart:
		t.split(hashOf)
	}
	hash := hashOf(number)
	t.part(hash).add(number, hash, hashOf)
	t.used++
}

// Remove takes out a number that is there, while hashOf still tells its hash.
func (t *Table) Remove(number uint32, hashOf func(number uint32) uint64) {
	hash := hashOf(number)
	t.part(hash).remove(number, hash, hashOf)
	if t.used--; t.used == 0 {
		t.parts = nil
	}
}

// All are the numbers, in no order.
func (t *Table) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, p := range t.parts {
			for _, slot := range p.slots {
				if slot != 0 && !yield(slot-1) {
					return
				}
			}
		}
	}
}

// Len is how many numbers there are.
func (t *Table) Len() int { return t.used }

func (t *Table) part(hash uint64) *part {
	if len(t.parts) == 1 {
		return &t.parts[0]
	}
	return &t.parts[hash>>(64-partBits)]
}

func (t *Table) split(hashOf func(uint32) uint64) {
	one := t.parts[0]
	t.parts = make([]part, manyParts)
	for _, slot := range one.slots {
		if slot != 0 {
			hash := hashOf(slot - 1)
			t.part(hash).add(slot-1, hash, hashOf)
		}
	}
}

func (p *part) find(hash uint64, is func(number uint32) bool) (number uint32, found bool) {
	if p.used == 0 {
		return 0, false
	}
	for at := p.first(hash); p.slots[at] != 0; at = p.next(at) {
		if number := p.slots[at] - 1; is(number) {
			return number, true
		}
	}
	return 0, false
}

// full reports that the next number needs more slots.
func (p *part) full() bool { return (p.used+1)*4 > len(p.slots)*3 }

func (p *part) add(number uint32, hash uint64, hashOf func(number uint32) uint64) {
	if p.full() {
		p.resize(max(leastSlots, len(p.slots)*2), hashOf)
	}
	p.enter(number, hash)
	p.used++
}

func (p *part) remove(number uint32, hash uint64, hashOf func(number uint32) uint64) {
	at := p.first(hash)
	for p.slots[at] != number+1 {
		at = p.next(at)
	}
	p.used--
	// What follows without a free slot between may have found this one taken, and goes into it.
	free := at
	for at = p.next(at); p.slots[at] != 0; at = p.next(at) {
		wanted := p.first(hashOf(p.slots[at] - 1))
		if p.distance(wanted, at) >= p.distance(free, at) {
			p.slots[free] = p.slots[at]
			free = at
		}
	}
	p.slots[free] = 0
	if len(p.slots) > leastSlots && p.used*8 < len(p.slots) {
		p.resize(len(p.slots)/2, hashOf)
	}
}

func (p *part) resize(slots int, hashOf func(uint32) uint64) {
	before := p.slots
	p.slots = make([]uint32, slots)
	for _, slot := range before {
		if slot != 0 {
			p.enter(slot-1, hashOf(slot-1))
		}
	}
}

func (p *part) enter(number uint32, hash uint64) {
	at := p.first(hash)
	for p.slots[at] != 0 {
		at = p.next(at)
	}
	p.slots[at] = number + 1
}

func (p *part) first(hash uint64) int { return int(hash & uint64(len(p.slots)-1)) }
func (p *part) next(at int) int       { return (at + 1) & (len(p.slots) - 1) }

// distance is how many slots are from one to another, forwards.
func (p *part) distance(from, to int) int { return (to - from) & (len(p.slots) - 1) }
