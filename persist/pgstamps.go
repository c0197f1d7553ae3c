package persist

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
)

// newStamp tells one commit from every other.
func newStamp() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// mayHave reports whether what is stored under a name is what this process left there, as
// far as it knows: the connection may have been lost while a commit was confirmed. If it is,
// what comes next is a commit with the stamp next.
func (p *Postgres) mayHave(name string, stored, next int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.stamps[name], stored) {
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
	p.stamps[name] = append(p.stamps[name], stamp)
	// What was there before the oldest of many attempts is no more likely than the others.
	if n := len(p.stamps[name]); n > 16 {
		p.stamps[name] = slices.Clone(p.stamps[name][n-16:])
	}
}

// has notes what is stored under a name now; 0 is nothing.
func (p *Postgres) has(name string, stamp int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stamp == 0 {
		delete(p.stamps, name)
		return
	}
	p.stamps[name] = []int64{stamp}
}
