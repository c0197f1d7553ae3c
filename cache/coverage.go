package cache

// Covers reports whether the Store holds every object that the cluster has in a
// namespace ("" for objects of cluster scope), so that what is not here is not
// there. A selector of the configuration, a namespace left out and a source
// that has not synced yet all stand against it.
func (s *Store) Covers(namespace string) bool {
	if s.spec.LabelSelector != "" || s.spec.FieldSelector != "" || !s.filter.match(namespace) {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	src := s.sourceOf(namespace)
	return src != nil && src.synced
}
