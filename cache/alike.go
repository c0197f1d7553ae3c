package cache

import "sync/atomic"

// Alike counts the objects of one resource in all clusters of a process, which are in a Store
// for each cluster: what is worth its time for memory's sake is decided by all of them, as a
// hundred Stores of ten thousand objects need the memory of one of a million. The zero value
// is ready. It is safe for concurrent use.
type Alike struct{ objects atomic.Int64 }

// Objects is how many there are, those included that were decoded and not entered yet.
func (a *Alike) Objects() int64 { return a.objects.Load() }

// population is how many objects a Store has: as many as when it changed last, and those that
// were packed since. One goroutine at a time may call set or end; packed and all may be called
// by any.
type population struct {
	own   atomic.Int64
	ended atomic.Bool
	alike *Alike // nil: there is no other Store of the resource
}

// set notes how many the Store has.
func (p *population) set(objects int) { p.add(int64(objects) - p.own.Load()) }

// packed notes one that the Store does not have yet.
func (p *population) packed() { p.add(1) }

// end takes out what the Store had, which is not used any more.
func (p *population) end() {
	p.set(0)
	p.ended.Store(true)
}

func (p *population) add(objects int64) {
	if p.ended.Load() {
		return
	}
	p.own.Add(objects)
	if p.alike != nil {
		p.alike.objects.Add(objects)
	}
}

// all is how many objects of the resource all Stores have.
func (p *population) all() int64 {
	if p.alike != nil {
		return p.alike.Objects()
	}
	return p.own.Load()
}
