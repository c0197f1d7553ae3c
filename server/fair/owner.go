package fair

import (
	"container/heap"
	"slices"
	"time"
)

// owner is whose questions they are. All of it is guarded by Turns.mu.
type owner struct {
	used      time.Duration
	questions int
	late      int
	waiting   ranks[*Question] // those that wait, first which has had least
	line      int              // of Turns.waiting, where it is while any question waits
	rank      int              // in that
	order     uint64           // when it began to wait, to keep the order of equals
	paid      time.Time        // when what it has had is paid for, at its pace
	mean      time.Duration    // of its turns lately
	sleeping  int              // turns that are not asked for before that
}

func (o *owner) at() *int { return &o.rank }

func (o *owner) before(other *owner) bool {
	if o.used != other.used {
		return o.used < other.used
	}
	return o.order < other.order
}

// lineOf is that of an owner with a question that waits: of theirs, first is which has had
// least.
func (o *owner) lineOf() int {
	if o.waiting[0].used >= longAfter {
		return longLine
	}
	return shortLine
}

const (
	shortLine = iota
	longLine
)

func (o *owner) contends() bool { return o.late > 0 || o.sleeping > 0 || len(o.waiting) > 0 }

// joinLocked has one more wait.
func (t *Turns) joinLocked(q *Question) *waiter {
	t.asked++
	w := &waiter{order: t.asked}
	q.waiters = append(q.waiters, w)
	if len(q.waiters) > 1 {
		return w
	}
	o := q.owner
	t.changeLocked(o, func() {
		heap.Push(&o.waiting, q)
		if len(o.waiting) == 1 {
			o.order = w.order
			t.lineUpLocked(o)
		} else {
			t.fixLocked(o)
		}
	})
	return w
}

// leaveLocked has one wait no more.
func (t *Turns) leaveLocked(q *Question, w *waiter) {
	q.waiters = slices.DeleteFunc(q.waiters, func(other *waiter) bool { return other == w })
	o := q.owner
	if len(q.waiters) > 0 {
		heap.Fix(&o.waiting, q.rank)
		return
	}
	t.changeLocked(o, func() {
		heap.Remove(&o.waiting, q.rank)
		if len(o.waiting) == 0 {
			heap.Remove(&t.waiting[o.line], o.rank)
		} else {
			t.fixLocked(o)
		}
	})
}

func (t *Turns) nobodyWaits() bool { return len(t.waiting[shortLine])+len(t.waiting[longLine]) == 0 }

func (t *Turns) lineUpLocked(o *owner) {
	o.line = o.lineOf()
	heap.Push(&t.waiting[o.line], o)
}

// fixLocked puts an owner who waits where they belong, after what they have had, or which
// question of theirs is first, has changed.
func (t *Turns) fixLocked(o *owner) {
	if o.lineOf() == o.line {
		heap.Fix(&t.waiting[o.line], o.rank)
		return
	}
	heap.Remove(&t.waiting[o.line], o.rank)
	t.lineUpLocked(o)
}

// changeLocked changes an owner, and counts whether it contends.
func (t *Turns) changeLocked(o *owner, change func()) {
	if o.contends() {
		t.contending--
	}
	change()
	if o.contends() {
		t.contending++
	}
}

// firstLocked is who is first in a line of those who are not late with their share.
func (t *Turns) firstLocked(line, share int) (first *owner) {
	var passed []*owner
	w := &t.waiting[line]
	for len(*w) > 0 && (*w)[0].late >= share {
		passed = append(passed, heap.Pop(w).(*owner))
	}
	if len(*w) > 0 {
		first = (*w)[0]
	}
	for _, o := range passed {
		heap.Push(w, o)
	}
	return first
}
