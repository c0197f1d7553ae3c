package cache

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// quickObjects is how many objects of a resource are packed quickly, in all clusters
	// together. Of fewer all are read for a question without an index, within the time in which
	// a person goes on; of more memory is what counts. It bounds what is paid: 12 MB of pods, and
	// what templates take more, see family.mayBecomeTemplate.
	quickObjects = 1 << 16
	// retrainObjects is how many objects are packed at least before it is judged
	// whether the dictionary still fits them.
	retrainObjects = 500
	// A dictionary has stopped fitting when objects come out misfit times as large
	// as those it was trained on. Another one takes its place if with it they
	// come out at most gain times as large as with the old one.
	misfit = 1.3
	gain   = 0.9
)

// packing decides how the JSON of a Store's objects is held: plain at first,
// compressed once there are objects enough to train a dictionary on, and with
// another dictionary once that one has stopped fitting. Packing an object never
// waits for a training, but for that of the first list.
type packing struct {
	dict atomic.Pointer[dictionary] // nil: objects stay plain
	// cold: no list has been completed, and what is decoded is sampled.
	cold atomic.Bool
	// objects is how many there are.
	objects population
	// recent is what was packed since it was last judged.
	recent   packed
	families families
	// followed is the dictionary of the Store that this one is a Successor of; nil: it is not used.
	followed *dictionary

	mu          sync.Mutex // guards all below; never taken to unpack
	samples     [][]byte
	sampleBytes int
	// retry is how many objects there must be before training is tried again.
	retry int
	// fit is what of their size objects came out at when dict was chosen; 0 if
	// that is not known yet.
	fit float64
	// misfit is what they came out at when it was last judged too much.
	misfit float64
}

// packed counts what was packed.
type packed struct{ objects, plain, held atomic.Int64 }

func (p *packed) add(plain, held int) {
	p.objects.Add(1)
	p.plain.Add(int64(plain))
	p.held.Add(int64(held))
}

// take returns what of their size objects came out at, and begins anew.
func (p *packed) take() float64 {
	p.objects.Store(0)
	plain, held := p.plain.Swap(0), p.held.Swap(0)
	return float64(held) / float64(max(1, plain))
}

// pack returns the form in which plain is held, in memory of its own.
func (p *packing) pack(plain []byte) ([]byte, *dictionary) {
	c := p.coding()
	data, used := packWith(p.dict.Load(), plain, c)
	p.note(plain, data, used, c)
	return data, used
}

// note counts what was packed. What siblings are held beside says nothing of how well the
// dictionary fits, nor does what is packed quickly where others are packed densely.
func (p *packing) note(plain, data []byte, used *dictionary, c coding) {
	p.objects.packed()
	switch {
	case used != nil && used.template != nil, c != p.coding():
	case p.dict.Load() != nil:
		p.recent.add(len(plain), len(data))
	case p.cold.Load():
		p.sample(data)
	}
}

// coding is that of an object that is packed now. Those that were packed before stay as they
// are, as both are read alike.
func (p *packing) coding() coding { return p.objects.all() > quickObjects }

// packWith returns plain compressed with d, or a copy where that saves nothing.
func packWith(d *dictionary, plain []byte, c coding) ([]byte, *dictionary) {
	if d != nil {
		if data := d.compress(plain, c); data != nil {
			return data, d
		}
	}
	return append(make([]byte, 0, len(plain)), plain...), nil
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

// warm ends sampling: from now on there are objects to choose from. What comes after a first
// list is little, and lists of other resources have use for the memory of its encoders.
func (p *packing) warm() {
	if !p.cold.Swap(false) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = nil
	p.families.forget()
	if d := p.dict.Load(); d != nil {
		encoders.forget(d)
	}
}

// train chooses a dictionary for objects like samples. It reports whether it is
// another than before.
func (p *packing) train(samples [][]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trainLocked(samples)
}

func (p *packing) trainLocked(samples [][]byte) bool {
	learned, judged := holdOut(shuffled(samples))
	d, err := train(newDictionaryID(), learned)
	if err != nil {
		// Plain objects are fine; more of them may do better.
		p.retry = 4 * len(samples)
		return false
	}
	c := p.coding()
	fit := fitOf(d, judged, c)
	if before := p.dict.Load(); before != nil {
		// If nothing does better, the objects are what they are.
		if old := fitOf(before, judged, c); fit > gain*old {
			p.fit = max(p.fit, old, p.misfit)
			return false
		}
	}
	p.fit = fit
	p.recent.take()
	p.dict.Store(d)
	return true
}

// shuffled are samples in another order, the same each time. They come in the order of keys,
// in which every namespace may have the same few objects: whoever takes every nth of them would
// learn from one of those alone.
func shuffled(samples [][]byte) [][]byte {
	samples = slices.Clone(samples)
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	return samples
}

// holdOut keeps every third sample for judging. A dictionary holds some of what it learned from
// as it is, so that it always does well on those: judged by them, a new dictionary would seem
// better than the one in use where it is not, and all objects would be packed anew for nothing.
// The one in use may have learned from some of those it is judged by, which errs on its side.
func holdOut(samples [][]byte) (learned, judged [][]byte) {
	for n, s := range samples {
		if n%3 == 2 {
			judged = append(judged, s)
		} else {
			learned = append(learned, s)
		}
	}
	return learned, judged
}

// fitOf is what of their size samples come out at.
func fitOf(d *dictionary, samples [][]byte, c coding) float64 {
	var p packed
	for _, plain := range spread(samples, trainStatistics) {
		data, _ := packWith(d, plain, c)
		p.add(len(plain), len(data))
	}
	return p.take()
}

// newDictionaryID picks an id outside of the ranges that the format reserves.
func newDictionaryID() uint32 { return 1<<15 + rand.Uint32N(1<<31-1<<15) }

// repack returns o compressed, if it is plain and that is of use.
func (p *packing) repack(o *Object) *Object {
	d := p.dict.Load()
	if d == nil || o.dict != nil || o.Foreign() {
		return o
	}
	if data := d.compress(o.data(), p.coding()); data != nil {
		return o.repacked(data, d)
	}
	return o
}

// wanted reports whether it is time to train, given what is held.
func (p *packing) wanted(objects int, rawBytes int64) bool {
	if objects < trainMinObjects {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dict.Load() == nil {
		return objects >= p.retry && (objects >= trainObjects || rawBytes >= trainBytes)
	}
	// Training and packing everything anew is paid by as many changes.
	if p.recent.objects.Load() < int64(max(retrainObjects, objects)) {
		return false
	}
	now := p.recent.take()
	if p.fit == 0 {
		p.fit = now
	}
	if now <= misfit*p.fit {
		return false
	}
	p.misfit = now
	return true
}

// takeOver goes on as from did, which is not used any more.
func (p *packing) takeOver(from *packing) {
	p.warm()
	p.recent.take()
	from.objects.end()
	p.families.takeOver(&from.families)
	if from.followed != nil && from.dict.Load() == from.followed {
		return // p may have found a better one since
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	p.retry, p.fit, p.misfit = from.retry, from.fit, from.misfit
	p.dict.Store(from.dict.Load())
}
