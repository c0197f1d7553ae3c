package cache

import (
	"cmp"
	"slices"
)

// Covers reports whether the Store holds every object that the cluster has in a
// namespace ("" for objects of cluster scope), so that what is not here is not
// there. A selector of the configuration, a namespace left out and a source
// that has not synced yet or is refused all stand against it.
func (s *Store) Covers(namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.extraction.Load()
	if e.spec.Partial() || !e.filter.match(namespace) {
		return false
	}
	src := s.sourceOf(namespace)
	return src != nil && src.held()
}

// held reports whether the objects of a source are here and kept up to date.
func (p *progress) held() bool { return p.synced && !p.refused }

// StoreSource is one watch that feeds a Store.
type StoreSource struct {
	Namespace string // "" for all
	// Held is false while the Store does not have its objects, or has them as
	// they were when the API server began to refuse it.
	Held    bool
	Version string // complete up to here
}

// Sources are the watches that feed the Store, by namespace.
func (s *Store) Sources() []StoreSource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]StoreSource, 0, len(s.sources))
	for name, src := range s.sources {
		all = append(all, StoreSource{name, src.held(), src.version})
	}
	slices.SortFunc(all, func(a, b StoreSource) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

// Refuse notes whether the API server refuses a source. Its objects stay: they
// are not known to be gone.
func (s *Store) Refuse(sourceName string, refused bool) {
	s.mu.Lock()
	src := s.sources[sourceName]
	changed := src != nil && src.refused != refused
	if changed {
		src.refused = refused
	}
	s.mu.Unlock()
	if changed {
		s.notify.wake()
	}
}
