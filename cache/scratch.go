package cache

import (
	"slices"
	"sync"
)

// scratchFrom is how long a slice must be to be used again: those of questions about a million
// objects are most of the garbage that there is, and to collect it takes longer than to answer.
const scratchFrom = 1 << 12

// numberSlices are numbers by object, row or text, for the time of one question.
var numberSlices = slicePool[uint32]{}

// objectSlices are what questions look at.
var objectSlices = slicePool[*Object]{}

// slicePool keeps slices that nobody uses until garbage is collected.
type slicePool[E any] struct{ pool sync.Pool }

// get returns an empty slice with room for n. What was in it before may still be there.
func (p *slicePool[E]) get(n int) []E {
	if n >= scratchFrom {
		if s, ok := p.pool.Get().(*[]E); ok && cap(*s) >= n {
			return *s
		}
	}
	return make([]E, 0, n)
}

// zeros returns a slice of n zeros.
func (p *slicePool[E]) zeros(n int) []E {
	s := p.get(n)[:n]
	clear(s)
	return s
}

// put takes back what get returned, however much of it was used, and which nobody uses any more.
func (p *slicePool[E]) put(s []E) {
	if cap(s) < scratchFrom {
		return
	}
	s = s[:0]
	p.pool.Put(&s)
}

// settle moves the few that are left of so many candidates out of their memory, which was made
// for this question and is used for others then.
func (l *located) settle(candidates int) {
	if cap(l.objects) < scratchFrom || len(l.objects) > cap(l.objects)/4 {
		return
	}
	objects, rows := l.objects, l.rows
	l.objects = slices.Clone(objects)
	clear(objects[:candidates]) // or what is deleted would stay
	objectSlices.put(objects)
	if rows != nil {
		l.rows = slices.Clone(rows)
		numberSlices.put(rows)
	}
}

// Release gives the memory that holds so many Objects to other questions. Nobody may use the
// Result, its Objects or a Tally of it afterwards.
func (r *Result) Release() {
	objects, rows := r.located.objects, r.located.rows
	r.located, r.Objects = located{}, nil
	clear(objects) // or what is deleted would stay
	objectSlices.put(objects)
	numberSlices.put(rows)
}
