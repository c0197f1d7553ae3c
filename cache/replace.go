package cache

import (
	"crypto/rand"
	"slices"
	"time"
)

// ReplaceStats are the differences that a Replace found.
type ReplaceStats struct {
	Added, Modified, Deleted int
	// Rewritten are those of Modified that had another content under the same
	// resourceVersion: after an upgrade of the API server, another definition of a
	// custom resource, or the restore of a backup.
	Rewritten int
}

// Replace makes the objects of a source equal to a list of them at version, in
// content and not only in versions. Subscribers see only what differs, in an order
// that lets them resume from any of it, see telling. The list is the truth: where its
// version is lower, as after a restored backup, the Store goes back with it, and
// whoever follows it has to list.
func (s *Store) Replace(sourceName string, objs []*Object, version string) ReplaceStats {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.sources[sourceName] == nil || s.closed || s.refuses(objs) {
		return ReplaceStats{}
	}
	objs = s.prepare(objs)
	if s.version == "" && !s.syncedLocked() && s.contents.len() == 0 {
		return s.fill(sourceName, objs, version)
	}
	return s.exchange(sourceName, s.diff(sourceName, objs), version)
}

// Amend is a Replace that is told what differs: the keys that are not in the
// list, and the objects that are not held as it has them. All else stays.
func (s *Store) Amend(sourceName string, gone []Key, come []*Object, version string) ReplaceStats {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.sources[sourceName] == nil || s.closed || s.refuses(come) {
		return ReplaceStats{}
	}
	come = s.prepare(come)
	var d differences
	for _, k := range gone {
		if o := s.contents.get(k); o != nil {
			d.miss(o)
		}
	}
	for _, o := range come {
		d.compare(s.contents.find(o), o)
	}
	d.settle()
	return s.exchange(sourceName, d, version)
}

// refuses reports, and counts, that objects of a list were read under a Spec that is
// not the present one.
func (s *Store) refuses(objs []*Object) bool {
	e := s.extraction.Load()
	if !slices.ContainsFunc(objs, func(o *Object) bool { return o != nil && !e.covers(o) }) {
		return false
	}
	s.outdated.Add(1)
	return true
}

// exchange enters what differs and moves the source to version. The caller holds
// writing.
func (s *Store) exchange(sourceName string, d differences, version string) ReplaceStats {
	src := s.sources[sourceName]
	back := src.synced && Older(version, src.version)
	var events []Event
	if !d.many() && !back {
		events = d.tell(map[string]*progress{sourceName: src})
	}

	s.mu.Lock()
	if src.synced {
		s.gaps.add(src.version, version)
	}
	src.synced, src.version = true, version
	for _, o := range d.gone {
		s.removeLocked(o)
	}
	for _, c := range d.come {
		s.enterLocked(c.next)
	}
	switch {
	case back:
		s.goBackLocked(d.len())
	case d.many():
		s.publishManyLocked(d.len())
	default:
		s.publishLocked(events)
	}
	s.dirty.versions = true
	s.mu.Unlock()
	s.notify.wake()
	return d.count
}

// prepare sorts objs by key, leaves out what does not belong here, keeps the
// last of several with one key, and brings all into the form of today. objs
// stays as it is.
func (s *Store) prepare(objs []*Object) []*Object {
	kept := slices.DeleteFunc(slices.Clone(objs), func(o *Object) bool { return o == nil || o.Foreign() })
	slices.SortStableFunc(kept, compareObjects)
	n := 0
	for i, o := range kept {
		if i+1 < len(kept) && compareObjects(o, kept[i+1]) == 0 {
			continue
		}
		kept[n] = s.packing.repack(s.upToDate(o))
		if n > 0 {
			kept[n] = kept[n].like(kept[n-1])
		}
		n++
	}
	clear(kept[n:])
	s.packing.warm()
	return kept[:n]
}

func compareObjects(a, b *Object) int {
	return entry{obj: a}.compare(entry{obj: b})
}

// fill is a Replace of an empty Store: what is built aside becomes visible at
// once. Nobody can resume from before, so the ring is only filled for those who
// are waiting.
func (s *Store) fill(sourceName string, objs []*Object, version string) ReplaceStats {
	c := s.newContents(s.extraction.Load())
	c.loadAll(objs)
	var events []Event
	told, many := s.subscribers.Load() > 0, len(objs) > ringMax
	if told && !many {
		for _, o := range objs {
			events = append(events, Event{Type: Added, Object: o})
		}
	}
	s.mu.Lock()
	s.changingLocked()
	s.contents = c
	src := s.sources[sourceName]
	src.synced, src.version = true, version
	s.dirty.all()
	s.dirty.versions = true
	switch {
	case told && many:
		s.publishManyLocked(len(objs))
	case told && len(objs) > 0:
		s.publishLocked(events)
	default:
		s.publishLocked(nil)
		s.revision++
		s.lastEvent = time.Now()
		s.events += uint64(len(objs))
	}
	s.mu.Unlock()
	s.notify.wake()
	return ReplaceStats{Added: len(objs)}
}

// goBackLocked ends a change after which the version is lower than before. What
// was told before may never have happened, and versions of before mean nothing any
// more: every Subscription ends, and who comes with one of them has to list, as far
// as they can be told from those of the new history.
func (s *Store) goBackLocked(changes int) {
	s.gaps = gaps{} // of versions that mean something else now
	s.lineage = rand.Text()
	abandoned := s.version
	s.version = ""
	for _, src := range s.sources {
		if src.synced && Newer(src.version, s.version) {
			s.version = src.version
		}
	}
	s.revision++
	s.lastEvent = time.Now()
	s.events += uint64(changes)
	s.ring.abandon(abandoned, s.version)
}

// Abandon tells s, which is of another history than before and takes its place, that
// versions before has reached and s has not are not of this history: whoever comes
// with one has to list. It would wait for what never comes, and pass over all that
// comes until then.
func (s *Store) Abandon(before *Store) {
	s.stand()
	before.mu.RLock()
	version := before.version
	if Newer(before.ring.abandoned, version) {
		version = before.ring.abandoned
	}
	before.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring.abandoned == "" || Newer(version, s.ring.abandoned) {
		s.ring.abandoned = version
	}
}
