package fair

import (
	"cmp"
	"container/heap"
	"slices"
)

// lobby is who waits for places. Who is next is found without looking at all who wait:
// those of one owner and weight are a queue, of which only the first one counts, and the
// queues of one weight are a heap, of which only the top counts. For if that does not fit,
// nobody does who wants as much and has more. There are as many heaps as different weights
// wait, which is mostly one.
//
// Its zero value is empty. It belongs to whoever has the lock of its Places.
type lobby struct {
	waiting int
	came    uint64         // how many joined, to keep the order of equals
	lines   []*line        // none is empty
	crowds  ranks[*holder] // owners who wait, first who has most waiting
}

// holder is an owner who holds places, or waits for some.
type holder struct {
	name    string
	holds   int      // weight
	waiting int      // claimants
	queues  []*queue // none is empty
	rank    int      // in lobby.crowds
}

// line are the queues of one weight, first whose owner has least.
type line struct {
	weight int
	queues ranks[*queue]
}

// queue are the claimants of one owner and weight, in the order in which they came.
type queue struct {
	owner     *holder
	line      *line
	claimants []*claimant
	rank      int // in line.queues
}

// claimant is one who waits.
type claimant struct {
	owner    *holder
	weight   int
	order    uint64
	queue    *queue        // nil: waits no more
	ready    chan struct{} // closed when it waits no more, but for its own leaving
	admitted bool          // and not sent away
}

func (c *claimant) waits() bool { return c.queue != nil }

func (q *queue) order() uint64 { return q.claimants[0].order }

// before is the order in which queues are served.
func (q *queue) before(other *queue) bool {
	return cmp.Or(cmp.Compare(q.owner.holds, other.owner.holds), cmp.Compare(q.order(), other.order())) < 0
}

func (q *queue) at() *int { return &q.rank }

// before puts who has most first.
func (h *holder) before(other *holder) bool { return h.waiting > other.waiting }

func (h *holder) at() *int { return &h.rank }

// last is who came last of those of an owner that wait.
func (h *holder) last() *claimant {
	var last *claimant
	for _, q := range h.queues {
		if c := q.claimants[len(q.claimants)-1]; last == nil || c.order > last.order {
			last = c
		}
	}
	return last
}

func (l *lobby) join(o *holder, weight int) *claimant {
	l.came++
	c := &claimant{owner: o, weight: weight, order: l.came, ready: make(chan struct{})}
	c.queue = l.queueOf(o, weight)
	c.queue.claimants = append(c.queue.claimants, c)
	if len(c.queue.claimants) == 1 {
		heap.Push(&c.queue.line.queues, c.queue)
	}
	l.count(o, 1)
	return c
}

func (l *lobby) queueOf(o *holder, weight int) *queue {
	for _, q := range o.queues {
		if q.line.weight == weight {
			return q
		}
	}
	i := slices.IndexFunc(l.lines, func(n *line) bool { return n.weight == weight })
	if i < 0 {
		i = len(l.lines)
		l.lines = append(l.lines, &line{weight: weight})
	}
	q := &queue{owner: o, line: l.lines[i]}
	o.queues = append(o.queues, q)
	return q
}

// leave takes out one who waits.
func (l *lobby) leave(c *claimant) {
	q := c.queue
	c.queue = nil
	i, _ := slices.BinarySearchFunc(q.claimants, c.order, func(c *claimant, order uint64) int { return cmp.Compare(c.order, order) })
	if i == 0 { // most leave in the order in which they came
		q.claimants[0] = nil
		q.claimants = q.claimants[1:]
	} else {
		q.claimants = slices.Delete(q.claimants, i, i+1)
	}
	if len(q.claimants) > 0 {
		if i == 0 {
			heap.Fix(&q.line.queues, q.rank)
		}
	} else {
		heap.Remove(&q.line.queues, q.rank)
		c.owner.queues = slices.DeleteFunc(c.owner.queues, func(other *queue) bool { return other == q })
		if q.line.queues.Len() == 0 {
			l.lines = slices.DeleteFunc(l.lines, func(n *line) bool { return n == q.line })
		}
	}
	l.count(c.owner, -1)
}

// count keeps the account of who waits.
func (l *lobby) count(o *holder, n int) {
	before := o.waiting
	l.waiting += n
	switch o.waiting += n; {
	case before == 0:
		heap.Push(&l.crowds, o)
	case o.waiting == 0:
		heap.Remove(&l.crowds, o.rank)
	default:
		heap.Fix(&l.crowds, o.rank)
	}
}

// moved puts an owner where they belong who holds more or less than before.
func (l *lobby) moved(o *holder) {
	for _, q := range o.queues {
		heap.Fix(&q.line.queues, q.rank)
	}
}

// first is who comes next of those who fit; nil if none does.
func (l *lobby) first(fits func(o *holder, weight int) bool) *claimant {
	var next *queue
	for _, n := range l.lines {
		if q := n.queues[0]; fits(q.owner, n.weight) && (next == nil || q.before(next)) {
			next = q
		}
	}
	if next == nil {
		return nil
	}
	return next.claimants[0]
}

// crowd is the owner who has most waiting. Somebody waits.
func (l *lobby) crowd() *holder { return l.crowds[0] }

// ranks is a heap of what knows its place in it.
type ranks[T interface {
	before(T) bool
	at() *int
}] []T

func (r ranks[T]) Len() int { return len(r) }

func (r ranks[T]) Less(i, j int) bool { return r[i].before(r[j]) }

func (r ranks[T]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	*r[i].at(), *r[j].at() = i, j
}

func (r *ranks[T]) Push(x any) {
	*x.(T).at() = len(*r)
	*r = append(*r, x.(T))
}

func (r *ranks[T]) Pop() any {
	old := *r
	last := len(old) - 1
	x := old[last]
	var none T
	old[last] = none
	*r = old[:last]
	return x
}
