package cache

import (
	"errors"
	"fmt"
)

// TakeOver gives s what from holds: its Spec, contents, sources and versions. So a
// Store goes on under another rule or definition: from is private to the caller,
// filled under the other Spec of the same Resource while s is still read. Readers
// and Subscriptions of s see one change, of what really differs, in an order they
// can resume from, see telling. The next batch of the snapshot holds everything.
//
// Every source of from must be synced, or refused by the API server: what s held of
// the latter's objects is gone with this. They were listed after what s holds was
// read. So none may be behind the source of s that watches the same objects, nor have
// an object in an older version, or what readers saw would be taken back: the error is
// ErrWentBack then, which says that the history is another, and nothing has changed.
// The caller must have stopped the old sources of s before; what they read and did not
// enter yet is refused from now on. from is closed, empty, and of no use any more.
//
// What s showed under its Spec and from is not to show is shown no more, see retell.
// Lists under way end, since their pages are of before.
func (s *Store) TakeOver(from *Store) (ReplaceStats, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	from.writing.Lock()
	defer from.writing.Unlock()
	if err := s.mayFollow(from); err != nil {
		return ReplaceStats{}, fmt.Errorf("take over %s: %w", s.extraction.Load().spec.Resource, err)
	}
	objs := from.objects()
	d := s.diff("", objs)
	if err := d.mayFollow(from.version); err != nil {
		return ReplaceStats{}, fmt.Errorf("take over %s: %w", s.extraction.Load().spec.Resource, err)
	}
	var events []Event
	var remembered []ringEntry
	read := s.syncedLocked() // else nobody has read anything
	if !d.many() {
		if read {
			events = d.tell(s.sources)
		}
		var err error
		if remembered, err = s.retell(from, events); err != nil {
			return ReplaceStats{}, fmt.Errorf("take over %s: %w", s.extraction.Load().spec.Resource, err)
		}
	}
	next := s.succeeding(from, objs)
	s.packing.takeOver(&from.packing)

	s.mu.Lock()
	from.mu.Lock()
	before := s.version
	s.ring.retell(remembered)
	s.followLocked(from, next)
	revision := s.revision
	if read && d.many() {
		s.publishManyLocked(d.len())
	} else {
		s.publishLocked(events)
	}
	s.gaps.add(before, s.version)
	s.revision = revision + 1 // the Spec is another, even if no object is
	from.mu.Unlock()
	s.mu.Unlock()
	s.notify.wake()
	from.notify.end()
	return d.stats(), nil
}

// mayFollow returns nil if from may take over. The caller holds writing of both.
func (s *Store) mayFollow(from *Store) error {
	if is, was := from.extraction.Load().spec.Resource, s.extraction.Load().spec.Resource; is != was {
		return fmt.Errorf("%s is another resource", is)
	}
	if s.closed || from.closed {
		return ErrStopped
	}
	if before := from.forerunner.Load(); before != nil && before != s {
		return errors.New("it is the successor of another store")
	}
	if !from.syncedLocked() {
		return ErrNotSynced
	}
	for name, next := range from.sources {
		if !next.synced && !next.refused {
			return fmt.Errorf("%w: namespace %q", ErrNotSynced, name)
		}
		for other, src := range s.sources {
			same := name == other || name == "" || other == ""
			if !same || !next.synced || !src.synced {
				continue
			}
			if err := listMayFollow(src.version, next.version); err != nil {
				return err
			}
		}
	}
	return nil
}

// succeeding are the contents that s is to have of from, which holds objs: those of from, but of a
// Successor, which cannot be asked. The caller holds writing of both.
func (s *Store) succeeding(from *Store, objs []*Object) *graft {
	if from.forerunner.Load() == nil {
		return &graft{contents: from.contents}
	}
	e := from.extraction.Load()
	if g := s.graft(objs, e); g != nil {
		return g
	}
	c := newContents(e)
	c.loadAll(objs)
	return &graft{contents: c}
}

// followLocked moves everything of from to s, which is to have the contents next. The caller holds
// writing and mu of both.
func (s *Store) followLocked(from *Store, next *graft) {
	e := from.extraction.Load()
	s.extraction.Load().supersede()
	s.changingLocked()
	s.contents.columns.forgetAll(0)
	s.contents, s.sources = next.finishLocked(), from.sources
	s.contents.columns.follow(s.columnRules.Load())
	s.extraction.Store(e)
	s.repackedFor = from.repackedFor
	s.unextracted.Store(from.unextracted.Load())
	s.trainings.Add(from.trainings.Load())
	s.repacked.Add(from.repacked.Load())
	s.dirty.all()
	s.dirty.saved = map[uint32]struct{}{}
	s.dirty.versions = true

	from.changingLocked()
	from.contents, from.sources = newContents(e), map[string]*progress{}
	from.closed = true
}
