package cache

import (
	"fmt"
	"maps"
	"slices"
)

// Restore is RestoreFrom of records that are at hand, which belong to the Store afterwards.
func (s *Store) Restore(saved Saved, records []Record) error {
	r := NewRestoring()
	for i := range records {
		if r.Add(records[i]) != nil {
			break // RestoreFrom says so
		}
	}
	return s.RestoreFrom(saved, r)
}

// RestoreFrom fills an empty Store from its snapshot. Under the same index
// definitions nothing is parsed or unpacked; under others, or with terms of
// another version, the terms are taken anew, and everything is to be saved again. It fails, and
// leaves the Store empty, when the snapshot contradicts itself.
func (s *Store) RestoreFrom(saved Saved, loaded *Restoring) error {
	defer loaded.Close()
	s.writing.Lock()
	defer s.writing.Unlock()
	e := s.extraction.Load()
	if s.contents.len() > 0 || s.syncedLocked() {
		return fmt.Errorf("restore %s: the store is not empty", e.spec.Resource)
	}
	dictionaries, err := openDictionaries(saved.Dictionaries)
	if err != nil {
		return fmt.Errorf("restore %s: %w", e.spec.Resource, err)
	}
	objs, err := loaded.objects(dictionaries, e.generation)
	if err != nil {
		return fmt.Errorf("restore %s: %w", e.spec.Resource, err)
	}
	sameTerms := saved.HasTerms(e.definitions)
	var unindexed uint64
	if !sameTerms {
		if unindexed, err = reindexAll(e, objs); err != nil {
			return fmt.Errorf("restore %s: %w", e.spec.Resource, err)
		}
	}
	restored := len(objs)
	objs = slices.DeleteFunc(objs, func(o *Object) bool { return !e.holds(o.Namespace(), o.UID()) })
	c := s.newContents(e)
	c.loadAll(objs)

	s.mu.Lock()
	s.changingLocked()
	s.contents = c
	s.restoreSourcesLocked(saved.ResourceVersions)
	s.unextracted.Store(unindexed)
	s.dirty = changes{reset: !sameTerms || len(objs) < restored, saved: map[uint32]struct{}{}}
	for id := range dictionaries {
		s.dirty.saved[id] = struct{}{}
	}
	if saved.Lineage != "" {
		s.lineage = saved.Lineage
	} else {
		s.dirty.versions = true // the one that the Store was made with is to be saved
	}
	s.revision++
	s.packing.objects.set(s.contents.len())
	s.mu.Unlock()
	for id := range dictionaries {
		s.packing.families.numbers.passed(id)
	}
	s.packing.adopt(objs)
	s.notify.wake()
	return nil
}

// HasTerms reports whether what was saved has the terms of index definitions, and of this
// version.
func (s *Saved) HasTerms(definitions map[string]string) bool {
	return s.Terms == termsVersion && maps.Equal(s.Spec.Indexes, definitions)
}

func (s *Store) restoreSourcesLocked(versions map[string]string) {
	if len(versions) == 0 {
		return // the objects are to be compared with a list
	}
	s.sources = map[string]*progress{}
	for name, version := range versions {
		s.sources[name] = &progress{synced: true, version: version}
		if Newer(version, s.version) {
			s.version = version
		}
	}
	s.ring.start = s.version
}

func openDictionaries(raw map[uint32][]byte) (map[uint32]*dictionary, error) {
	dictionaries := make(map[uint32]*dictionary, len(raw))
	for id, b := range raw {
		if IsTemplate(b) {
			continue
		}
		d, err := newDictionary(id, b)
		if err != nil {
			return nil, err
		}
		dictionaries[id] = d
	}
	for id, b := range raw {
		if !IsTemplate(b) {
			continue
		}
		d, err := openTemplate(id, b, dictionaries)
		if err != nil {
			return nil, fmt.Errorf("read template %d: %w", id, err)
		}
		dictionaries[id] = d
	}
	return dictionaries, nil
}

// adopt goes on with the dictionary that most of objs are packed with, or held beside what is.
func (p *packing) adopt(objs []*Object) {
	p.cold.Store(false)
	counts := map[*dictionary]int{}
	alone := map[*dictionary]*packed{} // by themselves
	var best *dictionary
	for _, o := range objs {
		d := o.dict.zstd()
		if d == nil {
			continue
		}
		if counts[d]++; best == nil || counts[d] > counts[best] {
			best = d
		}
		if d == o.dict {
			if alone[d] == nil {
				alone[d] = &packed{}
			}
			alone[d].add(int(o.size), int(o.packedLen))
		}
	}
	if best == nil {
		return
	}
	if alone[best] != nil {
		p.mu.Lock()
		p.fit = alone[best].take()
		p.mu.Unlock()
	}
	p.dict.Store(best)
}
