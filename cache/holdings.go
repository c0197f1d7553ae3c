package cache

// What the informer asks of its Store beside writing to it.

// sourceVersions are the resourceVersions each synced source is complete up to.
func (s *Store) sourceVersions() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.versionsLocked()
}

// objectsOf lists the objects a source watches, in order.
func (s *Store) objectsOf(source string) []*Object {
	s.mu.RLock()
	tree := s.treeLocked()
	s.mu.RUnlock()
	objs := make([]*Object, 0, tree.Len())
	visit := func(e entry) bool {
		if source != "" && e.obj.Namespace() != source {
			return false
		}
		objs = append(objs, e.obj)
		return true
	}
	if source == "" {
		tree.Scan(visit)
	} else {
		tree.Ascend(probe(Key{Namespace: source}), visit)
	}
	return objs
}

// newest is the object of a source with the highest resourceVersion, nil if it
// has none.
func (s *Store) newest(source string) *Object {
	var newest *Object
	for _, o := range s.objectsOf(source) {
		if newest == nil || newer(o.ResourceVersion(), newest.ResourceVersion()) {
			newest = o
		}
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
