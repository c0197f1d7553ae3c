package cache

import (
	"context"
	"time"
)

// repackBatch is how many objects are exchanged for their new form at once. A
// writer waits for no more than that: they are packed before.
const repackBatch = 256

// Repack trains a dictionary if the objects ask for one, and packs anew what is
// held in another form than it would be today, until ctx ends. Readers and
// writers go on meanwhile, and see no difference; the snapshot gets the new
// forms with the next save. It takes half a processor at most, and returns
// at once if there is nothing to do. One goroutine may call it.
func (s *Store) Repack(ctx context.Context) {
	s.mu.RLock()
	objects, rawBytes, closed := s.contents.len(), s.contents.rawBytes, s.closed
	s.mu.RUnlock()
	if closed {
		return
	}
	if s.packing.wanted(objects, rawBytes) && s.packing.train(s.trainingSamples()) {
		s.trainings.Add(1)
	}
	if d := s.packing.dict.Load(); d != nil && s.repackable(d) {
		s.repackAll(ctx, d)
	}
}

// trainingSamples are objects from all over the Store.
func (s *Store) trainingSamples() [][]byte {
	objs := s.objectsOf("")
	step := max(1, len(objs)/trainObjects)
	var samples [][]byte
	for i := 0; i < len(objs) && len(samples) < trainObjects; i += step {
		if plain, err := objs[i].JSON(); err == nil {
			samples = append(samples, plain)
		}
	}
	return samples
}

// repackable reports whether objects are held in a form that d was to replace:
// with another dictionary, or plain since before it was trained. What stays
// plain because nothing compresses it is not looked at twice.
func (s *Store) repackable(d *dictionary) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for other := range s.contents.packed {
		if other != d {
			return true
		}
	}
	return s.repackedFor != d
}

// repackAll packs all objects with d, batch by batch.
func (s *Store) repackAll(ctx context.Context, d *dictionary) {
	var batch []repacking
	began := time.Now()
	for _, o := range s.objectsOf("") {
		if o.dict.zstd() == d {
			continue
		}
		if next, ok := s.packing.packAnew(o); ok {
			batch = append(batch, repacking{o, next})
		}
		if len(batch) < repackBatch {
			continue
		}
		s.exchangeForms(batch)
		batch = batch[:0]
		if !sleep(ctx, time.Since(began)) {
			return
		}
		began = time.Now()
	}
	s.exchangeForms(batch)
	s.mu.Lock()
	s.repackedFor = d
	s.mu.Unlock()
}

// repacking is an object and the form it is to be held in.
type repacking struct{ old, next *Object }

// packAnew reports false for what is best left as it is.
func (p *packing) packAnew(o *Object) (*Object, bool) {
	buf := buffers.get()
	plain, err := o.AppendJSON((*buf)[:0])
	defer buffers.put(buf, plain)
	if err != nil {
		return nil, false // readers are told
	}
	var data []byte
	var used *dictionary
	if owner, owned := o.owner(); owned {
		known, ok := p.families.get(owner)
		if !ok {
			known = family{owner: owner} // others are as o is
		}
		data, used, _ = p.packOf(known, o.Key(), plain)
	} else {
		data, used = packWith(p.dict.Load(), plain, p.coding())
	}
	return o.repacked(data, used), used != o.dict
}

// exchangeForms enters new forms of objects. What has changed since stays.
func (s *Store) exchangeForms(batch []repacking) {
	if len(batch) == 0 {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changingLocked()
	for _, r := range batch {
		if s.contents.repack(r.old, r.next) {
			s.dirty.add(r.old.Key())
			s.repacked.Add(1)
		}
	}
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
