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
	stats, err := s.takeOver(from)
	if err != nil {
		return ReplaceStats{}, fmt.Errorf("take over %s: %w", s.extraction.Load().spec.Resource, err)
	}
	s.notify.wake()
	from.notify.end()
	return stats, nil
}

func (s *Store) takeOver(from *Store) (ReplaceStats, error) {
	if err := s.mayFollow(from); err != nil {
		return ReplaceStats{}, err
	}
	// They go with the contents, and need not be in memory beside what comes.
	s.contents.columns.forgetAll(columnIdle)
	objs := from.objects()
	told, err := s.tellOf(from, objs)
	if err != nil {
		s.contents.columns.forgetAll(0) // which ends the pause
		return ReplaceStats{}, err
	}
	next := s.succeeding(from, objs)
	s.packing.takeOver(&from.packing)

	s.mu.Lock()
	defer s.mu.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	before := s.version
	s.ring.retell(told.remembered)
	s.followLocked(from, next)
	revision := s.revision
	if told.many > 0 {
		s.publishManyLocked(told.many)
	} else {
		s.publishLocked(told.events)
	}
	s.gaps.add(before, s.version)
	s.revision = revision + 1 // the Spec is another, even if no object is
	return told.stats, nil
}

// takeOverTold is what readers are told of a TakeOver.
type takeOverTold struct {
	stats      ReplaceStats
	remembered []ringEntry // of before
	events     []Event
	many       int // how many changes there are, if they are not told
}

// tellOf compares objs, all of from, with what is held. The caller holds writing of both.
func (s *Store) tellOf(from *Store, objs []*Object) (told takeOverTold, err error) {
	d := differences{told: true, at: from.version}
	if s.compare(&d, "", objs); d.back != nil {
		return told, d.back
	}
	told.stats = d.count
	read := s.syncedLocked() // else nobody has read anything
	switch {
	case d.many() && read:
		told.many = d.len()
		return told, nil
	case read:
		told.events = d.tell(s.sources)
	}
	told.remembered, err = s.retell(from, told.events)
	return told, err
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
// Successor, which cannot be asked. What orders its objects is let go first, so that both need not
// be in memory. The caller holds writing of both.
func (s *Store) succeeding(from *Store, objs []*Object) *graft {
	if from.forerunner.Load() == nil {
		return &graft{contents: from.contents}
	}
	from.mu.Lock()
	from.changingLocked()
	from.contents = bareContents()
	from.mu.Unlock()
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
