package cache

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

// SetIndexes replaces the configured indexes. Subscribers and readers are not
// disturbed: objects of earlier events keep the terms they have, and a Matcher
// asks their JSON instead.
func (s *Store) SetIndexes(definitions map[string]string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	before := s.extraction.Load()
	if maps.Equal(before.definitions, definitions) {
		return nil
	}
	e, err := before.withIndexes(definitions)
	if err != nil {
		return err
	}
	// They go with the contents, and need not be in memory beside what comes.
	s.contents.columns.forgetAll(columnIdle)
	objs := s.objects()
	unindexed, err := reindexAll(e, objs)
	if err != nil {
		s.contents.columns.forgetAll(0) // which ends the pause
		return err
	}
	c := s.contents.reindexed(objs, before, e)
	c.columns.follow(s.columnRules.Load())
	s.mu.Lock()
	s.changingLocked()
	s.contents.columns.forgetAll(0)
	s.contents = c
	s.extraction.Store(e)
	s.unextracted.Store(unindexed)
	s.revision++
	s.dirty.all()
	s.mu.Unlock()
	return nil
}

// reindexed are c with objs, which are those of c in the order of their keys with the terms of e, in
// their rows. Indexes that are defined as before, and the orders, are those of c itself. So they are
// of a Successor, which has none.
func (c *contents) reindexed(objs []*Object, before, e *extraction) *contents {
	entries := make([]entry, 0, len(objs))
	c.tree.Scan(func(held entry) bool {
		held.obj = objs[len(entries)]
		entries = append(entries, held)
		return true
	})
	next := c.with(entries)
	if len(c.indexes) == 0 {
		return next
	}
	if e.unique {
		next.columns = newColumns()
	}
	next.indexes = indexes{}
	for _, name := range builtinIndexes {
		next.indexes[name] = c.indexes[name]
	}
	fresh := indexes{}
	for _, name := range e.names {
		long := longIndex(name)
		if before.definitions[name] == e.definitions[name] {
			next.indexes[name], next.indexes[long] = c.indexes[name], c.indexes[long]
			continue
		}
		fresh[name], fresh[long] = newIndex(name), newIndex(long)
		next.indexes[name], next.indexes[long] = fresh[name], fresh[long]
	}
	fresh.loadAll(next.rows)
	return next
}

// objects lists what is held, in order. The caller holds writing.
func (s *Store) objects() []*Object {
	objs := make([]*Object, 0, s.contents.len())
	s.contents.tree.Scan(func(e entry) bool {
		objs = append(objs, e.obj)
		return true
	})
	return objs
}

// reindexAll replaces each of objs by one with the terms of e.
func reindexAll(e *extraction, objs []*Object) (unindexed uint64, err error) {
	var count atomic.Uint64
	err = parallel(len(objs), func(i int) error {
		o, n, err := e.reindex(objs[i])
		if err != nil {
			return err
		}
		count.Add(uint64(n))
		objs[i] = o
		return nil
	})
	return count.Load(), err
}

// parallel calls f for 0 to n-1 on all processors and returns the first error.
func parallel(n int, f func(i int) error) error {
	const chunk = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(Workers(), n/chunk+1))
	for w := range errs {
		wg.Go(func() {
			for {
				end := int(next.Add(chunk))
				for i := end - chunk; i < min(end, n); i++ {
					if errs[w] = f(i); errs[w] != nil {
						next.Store(math.MaxInt32)
						return
					}
				}
				if end >= n {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Indexes lists the indexes: built-in ones, then the configured ones by name.
func (s *Store) Indexes() []IndexInfo { return s.whole().Indexes() }

// Indexes is Store.Indexes, which counts values of objects that are seen.
func (r *Reader) Indexes() []IndexInfo {
	s := r.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, seen := s.extraction.Load(), s.contents.seenBy(r.scope)
	var infos []IndexInfo
	for _, name := range builtinIndexes {
		infos = append(infos, IndexInfo{Name: name, Values: s.contents.indexes[name].valuesIn(seen)})
	}
	for i, name := range e.names {
		infos = append(infos, IndexInfo{Name: name, Path: e.paths[i].String(), Values: s.contents.indexes[name].valuesIn(seen)})
	}
	return infos
}

// valuesIn is how many values the rows have that are seen; nil stands for all.
func (i *index) valuesIn(seen *roaring.Bitmap) int {
	if i == nil {
		return 0 // of a Successor
	}
	if seen == nil {
		return len(i.postings)
	}
	n := 0
	for _, p := range i.postings {
		if p.meets(seen) {
			n++
		}
	}
	return n
}
