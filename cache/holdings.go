package cache

import "slices"

// What the informer asks of its Store beside writing to it.

// sourceVersions are the resourceVersions each synced source is complete up to.
func (s *Store) sourceVersions() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.versionsLocked()
}

// ordered is what is held now, in order. It does not change.
func (s *Store) ordered() *tree {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.treeLocked()
}

// objectsOf lists the objects a source watches, in order.
func (s *Store) objectsOf(source string) []*Object {
	tree := s.ordered()
	objs := make([]*Object, 0, tree.Len())
	scanSource(tree, source, func(e entry) bool {
		objs = append(objs, e.obj)
		return true
	})
	return objs
}

// countSource is how many of the objects a source watches.
func countSource(t *tree, source string) (n int) {
	if source == "" {
		return t.Len()
	}
	scanSource(t, source, func(entry) bool { n++; return true })
	return n
}

// newest are the n objects of a source with the highest resourceVersions, the
// highest first.
func (s *Store) newest(source string, n int) []*Object {
	var newest []*Object
	for _, o := range s.objectsOf(source) {
		if len(newest) == n && !newer(o.ResourceVersion(), newest[n-1].ResourceVersion()) {
			continue
		}
		at := slices.IndexFunc(newest, func(p *Object) bool { return newer(o.ResourceVersion(), p.ResourceVersion()) })
		if at < 0 {
			at = len(newest)
		}
		newest = slices.Insert(newest, at, o)
		newest = newest[:min(n, len(newest))]
	}
	return newest
}

// saveAnew makes the next batch a Reset that holds everything.
func (s *Store) saveAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty.all()
	s.dirty.saved = map[uint32]struct{}{}
}
