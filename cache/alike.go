package cache

import (
	"sync"
	"sync/atomic"
)

// Alike counts the objects of one resource in all clusters of a process, which are in a Store
// for each cluster: what is worth its time for memory's sake is decided by all of them, as a
// hundred Stores of ten thousand objects need the memory of one of a million. The zero value
// is ready. It is safe for concurrent use.
type Alike struct {
	objects atomic.Int64

	mu sync.Mutex // guards clusters
	// clusters has how many of them are in each, in two Stores while one is to take over from
	// the other. A cluster that is gone stays, with none.
	clusters map[string]*atomic.Int64
}

// Objects is how many there are.
func (a *Alike) Objects() int64 { return a.objects.Load() }

func (a *Alike) in(cluster string) *atomic.Int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clusters == nil {
		a.clusters = map[string]*atomic.Int64{}
	}
	if a.clusters[cluster] == nil {
		a.clusters[cluster] = &atomic.Int64{}
	}
	return a.clusters[cluster]
}

// population is how many objects of its resource a Store knows of: its own and those of other
// clusters. Its zero value is that of a Store whose resource is in no other.
type population struct {
	// own is how many the Store had when it changed last, and how many were packed since: while
	// a first list comes in, the Store has none of its objects until it has all.
	own atomic.Int64

	alike *Alike        // nil: no other cluster is known
	here  *atomic.Int64 // those of all Stores of the cluster

	// Who writes to the Store has these alone.

	held  int64 // counted in alike
	ended bool
}

// join has the objects of a cluster counted beside those of others. It must be called before
// all else.
func (p *population) join(a *Alike, cluster string) {
	if a != nil {
		p.alike, p.here = a, a.in(cluster)
	}
}

// set notes how many the Store has.
func (p *population) set(objects int) {
	if p.ended {
		return
	}
	p.own.Store(int64(objects))
	if p.alike != nil {
		more := int64(objects) - p.held
		p.here.Add(more)
		p.alike.objects.Add(more)
	}
	p.held = int64(objects)
}

// packed notes one that the Store does not have yet, and never will if its list fails: others
// are not told of it.
func (p *population) packed() { p.own.Add(1) }

// end takes out what the Store had, which is not used any more.
func (p *population) end() {
	p.set(0)
	p.ended = true
}

// all is how many the Store and other clusters have.
func (p *population) all() int64 {
	n := p.own.Load()
	if p.alike != nil {
		n += p.alike.objects.Load() - p.here.Load()
	}
	return n
}
