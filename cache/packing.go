package cache

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// packing decides how the JSON of a Store's objects is held: plain at first,
// compressed once there are objects enough to train a dictionary on.
type packing struct {
	dict atomic.Pointer[dictionary] // nil: objects stay plain
	// cold: no list has been completed, and what is decoded is sampled.
	cold atomic.Bool

	mu          sync.Mutex // guards all below; never taken to unpack
	samples     [][]byte
	sampleBytes int
	// retry is how many objects there must be before training is tried again.
	retry int
}

// pack returns the form in which plain is held, in memory of its own.
func (p *packing) pack(plain []byte) ([]byte, *dictionary) {
	if d := p.dict.Load(); d != nil {
		if data := d.compress(plain); data != nil {
			return data, d
		}
	}
	data := append(make([]byte, 0, len(plain)), plain...)
	if p.cold.Load() && p.dict.Load() == nil {
		p.sample(data)
	}
	return data, nil
}

// sample collects the first objects of the first list. When there are enough it
// trains on them, so that a large list is compressed while it arrives.
func (p *packing) sample(data []byte) {
	if !p.mu.TryLock() {
		return // training is under way
	}
	defer p.mu.Unlock()
	if p.dict.Load() != nil {
		return
	}
	p.samples = append(p.samples, data)
	p.sampleBytes += len(data)
	full := len(p.samples) >= trainObjects || p.sampleBytes >= trainBytesMax && len(p.samples) >= trainMinObjects
	if !full || len(p.samples) < p.retry {
		return
	}
	p.trainLocked(p.samples)
	p.samples, p.sampleBytes = nil, 0
}

// warm ends sampling: from now on there are objects to choose from.
func (p *packing) warm() {
	if !p.cold.Swap(false) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = nil
}

func (p *packing) trainLocked(samples [][]byte) {
	d, err := train(newDictionaryID(), samples)
	if err != nil {
		// Plain objects are fine; more of them may do better.
		p.retry = 4 * len(samples)
		return
	}
	p.dict.Store(d)
}

// newDictionaryID picks an id outside of the ranges that the format reserves.
func newDictionaryID() uint32 { return 1<<15 + rand.Uint32N(1<<31-1<<15) }

// repack returns o compressed, if it is plain and that is of use.
func (p *packing) repack(o *Object) *Object {
	d := p.dict.Load()
	if d == nil || o.dict != nil || o.foreign {
		return o
	}
	if data := d.compress(o.data); data != nil {
		return o.repacked(data, d)
	}
	return o
}

// wanted reports whether it is time to train on what is held.
func (p *packing) wanted(objects int, rawBytes int64) bool {
	if p.dict.Load() != nil || objects < trainMinObjects {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return objects >= p.retry && (objects >= trainObjects || rawBytes >= trainBytes)
}

// pack trains a dictionary when the Store has grown enough, and compresses what
// it holds. The caller holds writing; readers go on meanwhile.
func (s *Store) pack() {
	if s.packing.wanted(s.contents.len(), s.contents.rawBytes) {
		s.train()
	}
	d := s.packing.dict.Load()
	if d == nil || s.dictionaries[d.id] == d {
		return
	}
	s.mu.Lock()
	s.dictionaries[d.id] = d
	s.dirty.versions = true
	s.mu.Unlock()
}

func (s *Store) train() {
	objs := s.objects()
	step := max(1, len(objs)/trainObjects)
	var samples [][]byte
	for i := 0; i < len(objs) && len(samples) < trainObjects; i += step {
		if data, err := objs[i].JSON(); err == nil {
			samples = append(samples, data)
		}
	}
	s.packing.mu.Lock()
	s.packing.trainLocked(samples)
	s.packing.mu.Unlock()
	if s.packing.dict.Load() == nil {
		return
	}
	_ = parallel(len(objs), func(i int) error {
		objs[i] = s.packing.repack(objs[i])
		return nil
	})
	c := newContents(s.extraction.Load().names)
	for _, o := range objs {
		c.load(o)
	}
	s.mu.Lock()
	s.changingLocked()
	s.contents = c
	s.dirty.all()
	s.mu.Unlock()
}
