package cache

import (
	"time"
)

// Decode makes an Object of raw: it finds identity and indexed values, cuts what
// the Spec drops, empties what it redacts and compresses the rest. apiVersion
// and kind are filled in where raw has none, as in lists. raw may be reused
// after. It fails if raw is no object with a name. Any goroutine may call it.
func (s *Store) Decode(raw []byte, apiVersion, kind string) (*Object, error) {
	return s.decode(raw, apiVersion, kind, false)
}

// DecodeListed is Decode of an object of a list. One that is held just as it is listed, under the
// same rules and in content, not only in version, comes back itself, and need not be marked as
// sound: what a snapshot had is not. Others share with what is held what is the same. So a list of
// what is held for the most part takes memory for the rest.
func (s *Store) DecodeListed(raw []byte, apiVersion, kind string) (*Object, error) {
	return s.decode(raw, apiVersion, kind, true)
}

func (s *Store) decode(raw []byte, apiVersion, kind string, listed bool) (*Object, error) {
	buf := buffers.get()
	e := s.extraction.Load()
	o, plain, unindexed, err := e.object(raw, (*buf)[:0], apiVersion, kind)
	defer buffers.put(buf, plain)
	if err != nil {
		return nil, err
	}
	if !e.holds(o.Namespace(), o.UID()) {
		o.setTerms(nil, nil)
		o.size, o.is = 0, foreign
		return o, nil
	}
	if unindexed > 0 {
		s.unextracted.Add(uint64(unindexed))
	}
	if s.opts.Sound != nil && s.opts.Sound(plain) {
		o.is |= sound
	}
	if held, packed := s.counterpart(o, listed); held != nil && o.borrow(held, plain, packed) {
		if listed && o.generation == held.generation && o.is|sound == held.is|sound {
			return held, nil
		}
		return o, nil
	}
	s.pack(o, plain)
	return o, nil
}

// Apply enters one event of a watch. What is not newer than the object held is
// dropped; an object with another UID replaces the old one in two events. The
// source's version advances to the object's with it. An object that was read under
// a Spec of before TakeOver is refused: it may hold what is to be dropped now.
func (s *Store) Apply(sourceName string, t EventType, o *Object) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.extraction.Load().covers(o) {
		s.outdated.Add(1)
		return
	}
	o = s.upToDate(o)

	s.mu.Lock()
	src := s.sources[sourceName]
	if s.closed || src == nil {
		s.mu.Unlock()
		return
	}
	var events []Event
	if !o.Foreign() && !(planting && s.plantedLocked(t, o)) {
		events = s.applyLocked(t, o, src.version)
	}
	if src.synced && Newer(o.ResourceVersion(), src.version) {
		src.version = o.ResourceVersion()
	}
	s.publishLocked(events)
	s.mu.Unlock()
	s.notify.wake()
}

// upToDate returns o, of the present Spec, with terms of the present index
// definitions. The caller holds writing, so that they cannot change.
func (s *Store) upToDate(o *Object) *Object {
	e := s.extraction.Load()
	if o.generation == e.generation || o.Foreign() {
		return o
	}
	again, unindexed, err := e.reindex(o)
	if err != nil {
		// It was packed by this process a moment ago; without its JSON it can
		// still be found by what it was.
		s.unextracted.Add(1)
		return o.reindexed(o.common, o.terms().own, e.generation)
	}
	s.unextracted.Add(uint64(unindexed))
	return again
}

// applyLocked changes the contents and returns the events, without Resume. before
// is what the source was complete up to.
func (s *Store) applyLocked(t EventType, o *Object, before string) []Event {
	held := s.contents.find(o)
	if held != nil && Older(o.ResourceVersion(), held.ResourceVersion()) {
		return nil
	}
	told := telling{before: before}
	switch {
	case t != Deleted:
		if held == nil || !same(held, o) {
			o = s.contents.sharing(o, held)
			s.enterLocked(o)
			told.put(held, o)
		}
	case held == nil:
	case held.UID() == o.UID():
		s.removeLocked(held)
		told.delete(held, o)
	default:
		s.removeLocked(held)
		told.delete(held, held.at(o.ResourceVersion()))
	}
	return told.events()
}

// same reports whether o, of a watch, brings nothing new. Equal versions do not say that:
// some aggregated API servers send none, and another informerd tells what an upgrade, a
// definition or one of its rules made different as a change at the same version.
func same(held, o *Object) bool {
	return held.UID() == o.UID() && held.ResourceVersion() == o.ResourceVersion() && sameJSON(held, o)
}

// enterLocked makes o what is held under its key.
func (s *Store) enterLocked(o *Object) {
	s.changingLocked()
	s.dirty.add(o.Key())
	s.contents.put(o)
}

// removeLocked takes out held.
func (s *Store) removeLocked(held *Object) {
	s.changingLocked()
	s.dirty.add(held.Key())
	s.contents.remove(held)
}

// publishLocked makes events part of the ring and the sources' versions that of
// the Store. It ends every critical section that changed one of them.
func (s *Store) publishLocked(events []Event) {
	before, raised := s.raiseLocked()
	if !raised && len(events) == 0 {
		return
	}
	s.revisedLocked()
	s.recordLocked(events, before, raised)
}

// publishManyLocked is publishLocked of n events that become visible together and are more than
// the ring has room for. Nobody can have read some of them, so that there is no use in any: who
// followed has to list.
func (s *Store) publishManyLocked(n int) {
	_, raised := s.raiseLocked()
	s.revisedLocked()
	s.ring.skip(n, s.version, raised)
	s.lastEvent = time.Now()
	s.events += uint64(n)
}

// raiseLocked makes the Store as far as its sources are.
func (s *Store) raiseLocked() (before string, raised bool) {
	s.packing.objects.set(s.contents.len())
	before = s.version
	for _, src := range s.sources {
		if src.synced && Newer(src.version, s.version) {
			s.version = src.version
		}
	}
	return before, s.version != before
}

// revisedLocked notes that readers can see a change.
func (s *Store) revisedLocked() {
	s.revision++
	s.dirty.versions = true
	s.dirty.bound(s.contents.len())
	if s.ring.start == "" {
		s.ring.start = s.version
	}
}

// recordLocked enters events that become visible together in the ring.
func (s *Store) recordLocked(events []Event, before string, raised bool) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	s.lastEvent = now
	s.events += uint64(len(events))
	for i, e := range events {
		e.Resume = before
		if i == len(events)-1 {
			e.Resume = s.version
		}
		s.ring.push(ringEntry{Event: e, at: now, after: s.version, raised: raised, bytes: e.held()})
	}
}
