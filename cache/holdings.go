package cache

import (
	"iter"
	"slices"
)

// What the informer that feeds a Store asks of it beside writing to it.

// Versions are the resourceVersions that each synced source is complete up to, by
// the source's namespace, "" for all of them.
func (s *Store) Versions() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.versionsLocked()
}

// Holdings are the objects of one source of a Store at one moment, in order. They
// do not change.
type Holdings struct {
	tree   *tree
	source string
}

// Holdings are what a source has now; the source "" watches all namespaces.
func (s *Store) Holdings(source string) Holdings {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Holdings{s.treeLocked(), source}
}

// Len is how many objects there are.
func (h Holdings) Len() (n int) {
	if h.source == "" {
		return h.tree.Len()
	}
	scanSource(h.tree, h.source, func(entry) bool { n++; return true })
	return n
}

// Get finds an object and its row, a number that no other of the Holdings has.
func (h Holdings) Get(k Key) (o *Object, row uint32, ok bool) {
	e, ok := h.tree.Get(probe(k))
	return e.obj, e.row, ok
}

// All are the objects in order, with their rows.
func (h Holdings) All() iter.Seq2[uint32, *Object] {
	return func(yield func(uint32, *Object) bool) {
		scanSource(h.tree, h.source, func(e entry) bool { return yield(e.row, e.obj) })
	}
}

// Newest are the n objects with the highest resourceVersions, the highest first.
func (h Holdings) Newest(n int) []*Object {
	var newest []*Object
	for _, o := range h.All() {
		if len(newest) == n && noNewer(o.ResourceVersion(), newest[n-1].ResourceVersion()) {
			continue
		}
		at := slices.IndexFunc(newest, func(p *Object) bool { return Newer(o.ResourceVersion(), p.ResourceVersion()) })
		if at < 0 {
			at = len(newest)
		}
		newest = slices.Insert(newest, at, o)
		newest = newest[:min(n, len(newest))]
	}
	return newest
}

// Selects reports whether the Store keeps an object, as far as it is not the API server that
// selects.
func (s *Store) Selects(namespace, uid string) bool { return s.extraction.Load().holds(namespace, uid) }

// SaveAnew makes the next batch a Reset that holds everything.
func (s *Store) SaveAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty.all()
	s.dirty.saved = map[uint32]struct{}{}
}

// objectsOf lists the objects a source watches, in order.
func (s *Store) objectsOf(source string) []*Object {
	h := s.Holdings(source)
	objs := make([]*Object, 0, h.tree.Len())
	for _, o := range h.All() {
		objs = append(objs, o)
	}
	return objs
}
