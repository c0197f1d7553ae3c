package review

import (
	"time"

	"github.com/informerd/informerd/server/access"
)

// recent holds answers by the keys of their questions until they are over. What they
// weigh together is bounded: the oldest make room. Answers count for about as long as
// each other, so that those which were held first are over first.
type recent[A perishable] struct {
	most, weight int
	byKey        map[access.Key]A
	order        []held[A] // oldest first; some have been replaced
}

// perishable is an answer; a pointer to one.
type perishable interface {
	comparable
	fresh(now time.Time) bool
	weight() int
}

type held[A perishable] struct {
	key    access.Key
	answer A
}

func newRecent[A perishable](most int) recent[A] {
	return recent[A]{most: most, byKey: map[access.Key]A{}}
}

// get is the answer to a question, if it is not over.
func (r *recent[A]) get(key access.Key, now time.Time) (a A, ok bool) {
	if a, ok = r.byKey[key]; !ok || !a.fresh(now) {
		return *new(A), false
	}
	return a, true
}

// put holds an answer, in place of what was held for the question. Each call drops those
// that are over before it, so that nobody pays for many at once twice.
func (r *recent[A]) put(key access.Key, a A, now time.Time) {
	weight := a.weight()
	if weight > r.most {
		return
	}
	for len(r.order) > 0 && (r.weight+weight > r.most || !r.order[0].answer.fresh(now)) {
		r.drop(r.order[0])
		r.order[0] = held[A]{}
		r.order = r.order[1:]
	}
	r.byKey[key] = a
	r.order = append(r.order, held[A]{key, a})
	r.weight += weight
}

// drop forgets an answer, unless another one has taken its place. Those in its place
// weigh for themselves, and so does it until it is dropped.
func (r *recent[A]) drop(h held[A]) {
	r.weight -= h.answer.weight()
	if r.byKey[h.key] == h.answer {
		delete(r.byKey, h.key)
	}
}
