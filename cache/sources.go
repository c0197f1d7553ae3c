package cache

import (
	"fmt"
	"maps"
)

// progress is that of one source, a watch that feeds the Store: all namespaces or one of them.
type progress struct {
	synced  bool   // it delivered all its objects once
	refused bool   // the API server does not let it go on
	version string // complete up to here
}

func (s *Store) versionsLocked() map[string]string {
	versions := make(map[string]string, len(s.sources))
	for name, src := range s.sources {
		if src.synced {
			versions[name] = src.version
		}
	}
	return versions
}

func (s *Store) syncedLocked() bool {
	for _, src := range s.sources {
		if src.synced {
			return true
		}
	}
	return false
}

// askableLocked returns ErrNotSynced as long as no source has delivered its objects:
// none at all would look like a valid answer. A Successor finds none, either.
func (s *Store) askableLocked() error {
	if !s.syncedLocked() || s.forerunner.Load() != nil {
		return fmt.Errorf("%s: %w", s.extraction.Load().spec.Resource, ErrNotSynced)
	}
	return nil
}

// sourceOf returns the source that watches namespace, or nil. The caller holds
// mu or writing.
func (s *Store) sourceOf(namespace string) *progress { return sourceIn(s.sources, namespace) }

func sourceIn(sources map[string]*progress, namespace string) *progress {
	if src := sources[""]; src != nil {
		return src
	}
	return sources[namespace]
}

// scanSource visits the objects that a source watches, in the order of keys.
func scanSource(t *tree, sourceName string, visit func(entry) bool) {
	if sourceName == "" {
		t.Scan(visit)
		return
	}
	t.Ascend(probe(Key{Namespace: sourceName}), func(e entry) bool {
		return e.obj.Namespace() == sourceName && visit(e)
	})
}

// Bookmark advances a source that had no event up to version.
func (s *Store) Bookmark(sourceName, version string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	src := s.sources[sourceName]
	if s.closed || src == nil || !src.synced || !Newer(version, src.version) {
		s.mu.Unlock()
		return
	}
	src.version = version
	s.dirty.versions = true
	s.publishLocked(nil)
	s.mu.Unlock()
	s.notify.wake()
}

// Proved tells those who follow it that the copy was proven current, which takes neither
// an event nor another version.
func (s *Store) Proved() {
	s.proofs.Add(1)
	s.notify.wake()
}

// SetSources says which namespaces are watched, "" for all of them. Objects of
// others are deleted, with events; what is held of those that stay is kept, with
// its version. A new Store has the one source "".
func (s *Store) SetSources(names []string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return
	}
	s.mu.Lock()
	before := s.sources
	sources := make(map[string]*progress, len(names))
	for _, name := range names {
		src := &progress{}
		if same := before[name]; same != nil {
			src = same
		} else if all := before[""]; all != nil {
			*src = *all // all namespaces were complete, so this one was
		}
		sources[name] = src
	}
	if !maps.Equal(sources, before) {
		s.dirty.versions = true
	}
	s.sources = sources
	s.publishLocked(s.removeAllLocked(s.orphansLocked(), before))
	s.mu.Unlock()
	s.notify.wake()
}

// orphansLocked lists the objects that no source watches.
func (s *Store) orphansLocked() (orphans []*Object) {
	if s.sources[""] != nil {
		return nil
	}
	s.contents.tree.Scan(func(e entry) bool {
		if s.sourceOf(e.obj.Namespace()) == nil {
			orphans = append(orphans, e.obj)
		}
		return true
	})
	return orphans
}

// removeAllLocked takes out objs, which are in the order of keys, and returns the
// events: of each namespace with the version its source, one of before, had.
func (s *Store) removeAllLocked(objs []*Object, before map[string]*progress) (events []Event) {
	for len(objs) > 0 {
		namespace := objs[0].Namespace()
		var told telling
		if src := sourceIn(before, namespace); src != nil {
			told.before = src.version
		}
		n := 0
		for ; n < len(objs) && objs[n].Namespace() == namespace; n++ {
			s.removeLocked(objs[n])
			told.delete(objs[n], objs[n])
		}
		events = append(events, told.events()...)
		objs = objs[n:]
	}
	return events
}

// DeleteAll deletes every object, with events: the resource is gone as of
// version.
func (s *Store) DeleteAll(version string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	events := s.removeAllLocked(s.objects(), s.sources)
	for _, src := range s.sources {
		if src.synced && Newer(version, src.version) {
			src.version = version
		}
	}
	s.publishLocked(events)
	s.mu.Unlock()
	s.notify.wake()
}
