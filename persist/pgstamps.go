package persist

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
)

// absent is the stamp of what is not there.
const absent = 0

// newStamp tells one commit from every other.
func newStamp() int64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // it never fails
		if stamp := int64(binary.LittleEndian.Uint64(b[:])); stamp != absent {
			return stamp
		}
	}
}

// mayHave reports whether what is stored under a name is what this process left there, as
// far as it knows: the connection may have been lost while a commit was confirmed. If it is,
// what comes next is a commit with the stamp next.
func (p *Postgres) mayHave(name string, stored, next int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.stamps[name]
	if !ok {
		known = []int64{absent}
	}
	if !slices.Contains(known, stored) {
		return false
	}
	p.stamps[name] = []int64{stored, next}
	return true
}

// begins notes that what is stored under a name is replaced by a commit with a stamp,
// whatever it is.
func (p *Postgres) begins(name string, stamp int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.stamps[name]
	if !ok {
		known = []int64{absent}
	}
	known = append(known, stamp)
	// What was there before the oldest of many attempts is no more likely than the others.
	p.stamps[name] = slices.Clone(known[max(0, len(known)-16):])
}

// has notes what is stored under a name now.
func (p *Postgres) has(name string, stamp int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stamp == absent {
		delete(p.stamps, name)
		return
	}
	p.stamps[name] = []int64{stamp}
}
