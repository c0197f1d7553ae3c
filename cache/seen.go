package cache

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxSeen is how many scopes are kept for one Store.
const maxSeen = 32

// seen keeps which rows some scopes see, those that were asked with lately: who sees
// a part of the objects asks again, and a part may be of a thousand namespaces. Rows
// come and go as objects do; what becomes of an object is only counted, since what
// is seen depends on its key alone. The zero value is ready.
//
// It is guarded by the lock of its Store, but that readers make sets, too.
type seen struct {
	making sync.Mutex // one reader at a time; taken after the lock of the Store
	sets   map[string]*seenRows
	asked  uint64
}

// seenRows are the rows that a Scope sees.
type seenRows struct {
	scope Scope
	rows  *roaring.Bitmap
	asked uint64 // the last time
	// changes counts those of what is seen. It begins anywhere: a set that is made again
	// has nothing of the count of the one before.
	changes uint64
}

// seenBy is the rows that scope sees, nil for all. They must not be modified, nor
// used without the lock of the Store.
func (c *contents) seenBy(scope Scope) *roaring.Bitmap {
	switch {
	case scope.Whole():
		return nil
	case scope.Empty():
		return roaring.New()
	}
	s := &c.seen
	s.making.Lock()
	defer s.making.Unlock()
	digest := scope.Digest()
	set := s.sets[digest]
	if set == nil {
		set = &seenRows{scope: scope, rows: c.see(scope), changes: rand.Uint64()}
		s.keep(digest, set)
	}
	s.asked++
	set.asked = s.asked
	return set.rows
}

// changesOf counts the changes of what a scope sees that is kept.
func (s *seen) changesOf(scope Scope) (n uint64, kept bool) {
	s.making.Lock()
	defer s.making.Unlock()
	set := s.sets[scope.Digest()]
	if set == nil {
		return 0, false
	}
	return set.changes, true
}

// revisionSeed makes what is hashed with it mean nothing to readers.
var revisionSeed = maphash.MakeSeed()

// revisionLocked is Revision for who sees no more than a Scope: it is another number when
// something of that has changed, or the version that they are told. How often something
// that is not seen changes has no part in it, neither as a number to be counted by nor as
// one that moves. Where the rows of the Scope are not kept, as for a question that they
// are of no use to, it is one that never comes again.
func (s *Store) revisionLocked(scope Scope) uint64 {
	if scope.Whole() {
		return s.revision
	}
	changes, kept := s.contents.seen.changesOf(scope)
	if !kept && !scope.Empty() {
		return rand.Uint64()
	}
	return maphash.Comparable(revisionSeed, struct {
		version string
		changes uint64
	}{s.version, changes})
}

// keep enters a set in place of the one that was asked for least recently.
func (s *seen) keep(digest string, set *seenRows) {
	if s.sets == nil {
		s.sets = map[string]*seenRows{}
	}
	if len(s.sets) >= maxSeen {
		var oldest string
		for d, other := range s.sets {
			if oldest == "" || other.asked < s.sets[oldest].asked {
				oldest = d
			}
		}
		delete(s.sets, oldest)
	}
	s.sets[digest] = set
}

func (s *seen) add(row uint32, o *Object) {
	for _, set := range s.sets {
		if set.scope.Sees(o.Key()) {
			set.rows.Add(row)
			set.changes++
		}
	}
}

// change is of the object in a row.
func (s *seen) change(row uint32) {
	for _, set := range s.sets {
		if set.rows.Contains(row) {
			set.changes++
		}
	}
}

func (s *seen) remove(row uint32) {
	for _, set := range s.sets {
		if set.rows.CheckedRemove(row) {
			set.changes++
		}
	}
}

// lookUp is how many objects can be looked at one after the other in the time that it
// takes to find one by its key.
const lookUp = 8

// see finds the rows that scope sees. They may be of thousands of postings with few rows
// each, so they are collected as plain bits. Whoever asks for the first time waits for it.
func (c *contents) see(scope Scope) *roaring.Bitmap {
	p := scope.places()
	bits := make([]uint64, (len(c.rows)+63)/64)
	add := func(row uint32) { bits[row/64] |= 1 << (row % 64) }
	keys, few := c.keysOf(p)
	if !few {
		for row, o := range c.rows {
			if o != nil && p.sees(o.Key()) {
				add(uint32(row))
			}
		}
		return roaring.FromDense(bits, true)
	}
	c.eachSpace(p, func(rows *posting) { rows.each(add) })
	for _, k := range keys {
		if e, ok := c.tree.Get(probe(k)); ok {
			add(e.row)
		}
	}
	return roaring.FromDense(bits, true)
}

// eachSpace calls yield for the rows of every namespace that p sees: by looking up those
// of p or those of the contents, whichever are fewer.
func (c *contents) eachSpace(p *part, yield func(*posting)) {
	spaces := c.indexes[NamespaceIndex].postings
	if len(spaces) > len(p.namespaces) {
		for _, h := range p.handles() {
			yield(spaces[h])
		}
		return
	}
	for h, rows := range spaces {
		if p.whole(h.Value().Value) {
			yield(rows)
		}
	}
}

// keysOf are those that p may see beside its namespaces, unless it takes less to look at
// every object than for all of them.
func (c *contents) keysOf(p *part) (keys []Key, few bool) {
	spaces := c.indexes[NamespaceIndex].postings
	n := len(p.names[""]) * (1 + len(spaces))
	for ns, names := range p.names {
		if ns != "" {
			n += len(names)
		}
	}
	if p.whole("") || n*lookUp > c.len() { // what is in no namespace is in no posting
		return nil, false
	}
	for ns, names := range p.names {
		for name := range names {
			keys = append(keys, Key{ns, name})
			if ns != "" {
				continue
			}
			for h := range spaces {
				keys = append(keys, Key{h.Value().Value, name})
			}
		}
	}
	return keys, true
}
