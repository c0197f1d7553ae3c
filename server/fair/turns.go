package fair

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Turns shares processors among questions. A question that takes long takes many
// turns, each for a moment; whose turn is next is decided by what everybody has had.
// So a short question waits for the end of a turn and not for that of all long ones
// that were there before it, and an owner who asks a hundred questions at once gets no
// more than one who asks a single one.
//
// It is start-time fair queueing (Goyal, Vin and Cheng, 1997): each owner's time is
// counted on a clock of its own, which begins where that of the owner served last is,
// so that nobody can save up turns by being silent. Within an owner, questions are
// served in the same way.
type Turns struct {
	mu      sync.Mutex // guards all below
	free    int
	now     time.Duration // the clock of whoever was served last
	owners  map[string]*owner
	asking  int // questions of all owners
	waiting waiters
	asked   uint64 // how many turns were asked for, to keep the order of equals
}

type owner struct {
	used      time.Duration
	questions int
}

// NewTurns shares n processors.
func NewTurns(n int) *Turns { return &Turns{free: n, owners: map[string]*owner{}} }

// Question is one question of an owner, which takes turns until it is Done. Several
// goroutines may take turns for it.
type Question struct {
	turns *Turns
	owner *owner
	used  time.Duration // guarded by turns.mu
	done  sync.Once
}

// Ask begins a question of whoever has a name.
func (t *Turns) Ask(name string) *Question {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[name]
	if o == nil {
		o = &owner{used: t.now}
		t.owners[name] = o
	}
	o.questions++
	t.asking++
	return &Question{turns: t, owner: o}
}

// Done ends the question. Its turns have been given back.
func (q *Question) Done() {
	q.done.Do(func() {
		q.turns.mu.Lock()
		defer q.turns.mu.Unlock()
		q.turns.asking--
		q.owner.questions--
		q.turns.forgetLocked()
	})
}

// remembered is how many owners are kept who ask nothing now, so that who comes back at
// once does not begin anew.
const remembered = 1024

// forgetLocked keeps the owners from becoming ever more.
func (t *Turns) forgetLocked() {
	if t.asking > 0 && len(t.owners) < t.asking+remembered {
		return
	}
	for name, o := range t.owners {
		if o.questions == 0 {
			delete(t.owners, name)
		}
	}
}

// Take waits for a turn, which give ends. The error is that of ctx.
func (q *Question) Take(ctx context.Context) (give func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := q.turns
	t.mu.Lock()
	if t.free > 0 && len(t.waiting) == 0 {
		t.free--
		t.servedLocked(q)
		t.mu.Unlock()
		return q.turn(), nil
	}
	t.asked++
	w := &waiter{question: q, order: t.asked, ready: make(chan struct{})}
	heap.Push(&t.waiting, w)
	t.mu.Unlock()

	select {
	case <-w.ready:
		return q.turn(), nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.index < 0 { // it was served at the same moment
		t.nextLocked()
	} else {
		heap.Remove(&t.waiting, w.index)
	}
	return nil, ctx.Err()
}

// turn begins a turn that was granted.
func (q *Question) turn() (give func()) {
	began := time.Now()
	return func() {
		took := max(time.Since(began), time.Microsecond) // a coarse clock must not make it free
		t := q.turns
		t.mu.Lock()
		defer t.mu.Unlock()
		q.used += took
		q.owner.used += took
		if len(t.waiting) > 0 {
			heap.Init(&t.waiting) // what some of them have had has changed
		}
		t.nextLocked()
	}
}

// nextLocked passes a turn on, or keeps it free.
func (t *Turns) nextLocked() {
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	w := heap.Pop(&t.waiting).(*waiter)
	t.servedLocked(w.question)
	close(w.ready)
}

func (t *Turns) servedLocked(q *Question) {
	t.now = max(t.now, q.owner.used)
	q.owner.used = max(q.owner.used, t.now-slack)
}

// slack is how much an owner who has been idle may be behind the others.
const slack = 10 * time.Millisecond

// waiter is one Take that waits.
type waiter struct {
	question *Question
	order    uint64
	ready    chan struct{}
	index    int // in the heap, -1 once served
}

// waiters is a heap: first who has had least.
type waiters []*waiter

func (w waiters) Len() int { return len(w) }

func (w waiters) Less(i, j int) bool {
	a, b := w[i], w[j]
	switch {
	case a.question.owner.used != b.question.owner.used:
		return a.question.owner.used < b.question.owner.used
	case a.question.used != b.question.used:
		return a.question.used < b.question.used
	}
	return a.order < b.order
}

func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

func (w *waiters) Push(x any) {
	added := x.(*waiter)
	added.index = len(*w)
	*w = append(*w, added)
}

func (w *waiters) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	last.index = -1
	return last
}
