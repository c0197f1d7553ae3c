package cache

import (
	"maps"
	"slices"
)

// changes is what a snapshot does not have yet. Only keys are remembered, and
// their state is read when they are taken: what changes often is saved once, and
// what could not be saved never overwrites what is newer. Guarded by the lock
// of its Store.
type changes struct {
	// reset: everything is to be saved anew, and keys is not kept.
	reset    bool
	keys     map[Key]struct{}
	versions bool // the versions changed
	// saved are the ids of dictionaries that the snapshot has.
	saved map[uint32]struct{}
	// compared is the contents of which saved has all dictionaries, but for those renewed since;
	// nil: that is not known.
	compared *contents
}

func (c *changes) add(k Key) {
	if c.reset {
		return
	}
	if c.keys == nil {
		c.keys = map[Key]struct{}{}
	}
	c.keys[k] = struct{}{}
}

const (
	// changedMany is how many changes are many, and changedShare of how many objects one has
	// changed then for everything to be saved anew.
	changedMany  = 32 << 10
	changedShare = 8
)

// bound has everything saved anew where to save what changed would take more memory. Keys of
// deleted objects would pile up where nobody takes them. And changes are saved in one transaction,
// of which bbolt has each page that it changes in memory: with a few records on a page, and one in
// eight changed, these are most of all, while what is saved anew takes memory for a part of it,
// and up to eight times the writing.
func (c *changes) bound(objects int) {
	if n := len(c.keys); n > 2*objects+4096 || n > changedMany && n > objects/changedShare {
		c.all()
	}
}

func (c *changes) all() {
	c.reset, c.keys, c.compared = true, nil, nil
}

// SaveVersions makes the next batch say anew what the snapshot is complete up to,
// and of which server, even if no object changed.
func (s *Store) SaveVersions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty.versions = true
}

// TakeChanges returns what changed since the last take, with the versions that
// cover it; false if nothing did, if the Store never held complete data, or if it
// is closed: its snapshot is being forgotten, and there would be nothing to add
// to. The identity of the cluster and the time of saving are left to the caller.
//
// Whatever the batch holds has been published: objects, versions and the ring of events
// change in one critical section, and the batch is taken in another. So the Poll of a
// Subscription that begins after TakeChanges has returned sees every event up to the
// versions of the batch, and maybe later ones.
func (s *Store) TakeChanges() (Batch, bool) {
	room := s.roomForDictionaries()
	s.mu.Lock()
	if s.nothingToTakeLocked() {
		s.mu.Unlock()
		return Batch{}, false
	}
	taken := s.dirty
	s.dirty = changes{saved: taken.saved, compared: taken.compared}
	if taken.reset {
		s.dirty.saved, s.dirty.compared = room.saved, nil
	}
	b := Batch{Reset: taken.reset, Saved: Saved{
		Spec:             s.specLocked(),
		ResourceVersions: s.versionsLocked(),
		Lineage:          s.lineage,
		Dictionaries:     map[uint32][]byte{},
		Terms:            termsVersion,
		Objects:          s.contents.len(),
	}}
	fresh := s.takeDictionariesLocked(&b, room)
	objects := s.treeLocked()
	s.mu.Unlock()
	var others Yielder
	for _, d := range fresh {
		b.Saved.Dictionaries[d.id] = d.saved()
		others.Yield()
	}

	if taken.reset {
		b.Objects = make([]*Object, 0, objects.Len())
		objects.Scan(func(e entry) bool {
			b.Objects = append(b.Objects, e.obj)
			if len(b.Objects)%64 == 0 {
				others.Yield()
			}
			return true
		})
		return b, true
	}
	for _, k := range slices.SortedFunc(maps.Keys(taken.keys), Key.Compare) {
		if e, ok := objects.Get(probe(k)); ok {
			b.Objects = append(b.Objects, e.obj)
		} else {
			b.Delete = append(b.Delete, k)
		}
	}
	return b, true
}

func (s *Store) nothingToTakeLocked() bool {
	return s.closed || !s.syncedLocked() || !s.dirty.reset && !s.dirty.versions && len(s.dirty.keys) == 0
}

// dictionaryRoom is memory for takeDictionariesLocked. Who allocates may have to help a collection
// of garbage for 100 ms, and events wait for the lock.
type dictionaryRoom struct {
	fresh         []*dictionary
	needed, saved map[uint32]struct{} // saved: of a Reset
}

// roomForDictionaries has room for all that there are, if all may have to be looked at.
func (s *Store) roomForDictionaries() dictionaryRoom {
	s.mu.RLock()
	c, all, anew := s.contents, 0, 0
	if !s.nothingToTakeLocked() && (s.dirty.reset || s.dirty.compared != c || c.renewed == nil) {
		all = len(c.packed) + len(c.templates)
		all += all / 8 // some may come before they are taken
		if s.dirty.reset {
			anew = all
		}
	}
	s.mu.RUnlock()
	return dictionaryRoom{make([]*dictionary, 0, all), make(map[uint32]struct{}, all), make(map[uint32]struct{}, anew)}
}

// takeDictionariesLocked returns the dictionaries that the snapshot does not have yet, and names
// those that none of its records refers to after this batch: all that differs from what is
// held is in it.
func (s *Store) takeDictionariesLocked(b *Batch, room dictionaryRoom) []*dictionary {
	c, fresh := s.contents, room.fresh
	saved := s.dirty.saved
	need := func(d *dictionary) {
		if _, ok := saved[d.id]; !ok {
			fresh = append(fresh, d)
			saved[d.id] = struct{}{}
		}
	}
	retire := func(id uint32) {
		if _, ok := saved[id]; ok {
			b.Retired = append(b.Retired, id)
			delete(saved, id)
		}
	}
	if s.dirty.compared == c && c.renewed != nil {
		for id, d := range c.renewed {
			if d != nil {
				need(d)
			} else {
				retire(id)
			}
		}
	} else {
		needed := room.needed
		for d := range c.needed() {
			needed[d.id] = struct{}{}
			need(d)
		}
		for id := range saved {
			if _, ok := needed[id]; !ok {
				retire(id)
			}
		}
	}
	s.dirty.compared = c
	c.renewed = map[uint32]*dictionary{}
	return fresh
}

// GiveBack takes back a Batch that could not be saved; the next take covers it.
func (s *Store) GiveBack(b Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range b.Saved.Dictionaries {
		delete(s.dirty.saved, id)
	}
	for _, id := range b.Retired {
		s.dirty.saved[id] = struct{}{}
	}
	s.dirty.versions, s.dirty.compared = true, nil
	if b.Reset {
		s.dirty.all()
		return
	}
	for i := range b.Len() {
		s.dirty.add(b.Key(i))
	}
	for _, k := range b.Delete {
		s.dirty.add(k)
	}
}

func (o *Object) record() Record {
	var terms []handle
	return o.recordIn(&terms)
}

// recordIn makes its terms in the memory of those of another.
func (o *Object) recordIn(terms *[]handle) Record {
	*terms = o.terms().appendTo((*terms)[:0])
	return Record{
		Key:             o.Key(),
		UID:             o.UID(),
		ResourceVersion: o.ResourceVersion(),
		Created:         o.created,
		Terms:           *terms,
		Dictionary:      o.dictionaryID(),
		Size:            o.size,
		Data:            o.data(),
	}
}

// dictionaryID is that of what data is compressed with, 0 where it is plain.
func (o *Object) dictionaryID() uint32 {
	if o.dict == nil {
		return 0
	}
	return o.dict.id
}
