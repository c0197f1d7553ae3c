package fair

import (
	"context"
	"fmt"
	"time"
)

// Question is one question of an owner, which takes turns until it is Done. Several
// goroutines may take turns for it. One of them may have one that lasts, but for what it
// waits for: see Begin.
type Question struct {
	turns *Turns
	owner *owner

	// All below is guarded by Turns.mu.
	used    time.Duration
	waiters []*waiter // in the order in which they came
	rank    int       // in owner.waiting, where it is while there are waiters
	own     *turn
	begun   bool // and not done
	done    bool
	pauses  int       // that go on
	paused  time.Time // since when
	taken   uint64    // how many turns were granted
	earlier uint64    // how many of them before the pause
}

func (q *Question) at() *int { return &q.rank }

func (q *Question) before(other *Question) bool {
	if q.used != other.used {
		return q.used < other.used
	}
	return q.waiters[0].order < other.waiters[0].order
}

// waiter is one Take that waits.
type waiter struct {
	order uint64
	turn  *turn         // once it is granted
	ready chan struct{} // closed when it is; nil where it was at once
}

// Begin takes a turn for the goroutine that answers the question, which has it until Done
// but for its pauses. The error is that of ctx, or ErrFull where too many of the owner wait.
func (q *Question) Begin(ctx context.Context) error {
	q.turns.mu.Lock()
	crowd := len(q.owner.waiting) + q.owner.sleeping
	q.turns.mu.Unlock()
	if crowd >= maxWaiting {
		return fmt.Errorf("%w: %d questions of the one who asks wait for a processor", ErrFull, crowd)
	}
	own, err := q.takeInPace(ctx, asking)
	q.turns.mu.Lock()
	defer q.turns.mu.Unlock()
	q.own, q.begun = own, true
	return err
}

// Pause gives back the turn of Begin while something is waited for that is not a processor.
// resume, to be called once, takes another one, which may last; it does not where the
// question, or ctx, has come to an end. Goroutines that help to answer may pause, too, and at the
// same time: whoever began is waiting for them.
func (q *Question) Pause(ctx context.Context) (resume func()) {
	t := q.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.pauses++; q.pauses == 1 {
		q.paused, q.earlier = time.Now(), q.taken
	}
	if q.own != nil {
		t.endLocked(q.own)
		q.own = nil
	}
	return func() { q.resume(ctx) }
}

func (q *Question) resume(ctx context.Context) {
	t := q.turns
	t.mu.Lock()
	q.pauses--
	if q.pauses > 0 || !q.begun {
		t.mu.Unlock()
		return
	}
	q.refreshLocked()
	t.mu.Unlock()
	own, err := q.take(ctx)
	if err != nil {
		return // what is left to do is little
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.pauses > 0 || q.own != nil || !q.begun {
		t.endLocked(own)
		return
	}
	q.own = own
}

// refreshLocked makes a question that has waited for something, while nobody took a turn for
// it, as good as another one: a watch that lasts for days is not a long question.
func (q *Question) refreshLocked() {
	if q.taken == q.earlier && len(q.waiters) == 0 && time.Since(q.paused) >= longAfter {
		q.used = 0
	}
}

// Later reports whether whoever asks is to be told of what they watch only after others were:
// they have to wait for their pace.
func (q *Question) Later() bool {
	t := q.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	return t.slowLocked(q.owner.paid, now)
}

// Take waits for a turn, which give ends. The error is that of ctx.
func (q *Question) Take(ctx context.Context) (give func(), err error) {
	taken, err := q.takeInPace(ctx, 0)
	if err != nil {
		return nil, err
	}
	return func() {
		q.turns.mu.Lock()
		defer q.turns.mu.Unlock()
		q.turns.endLocked(taken)
	}, nil
}

// takeInPace is take for who has nothing yet that others may wait for, as who resumes has.
func (q *Question) takeInPace(ctx context.Context, extra time.Duration) (*turn, error) {
	reserved, err := q.turns.keepPace(ctx, q.owner, extra)
	if err != nil {
		return nil, err
	}
	taken, err := q.take(ctx)
	q.turns.mu.Lock()
	defer q.turns.mu.Unlock()
	if err != nil {
		q.owner.paid = q.owner.paid.Add(-reserved.longer)
		return nil, err
	}
	taken.reserved = reserved
	return taken, nil
}

func (q *Question) take(ctx context.Context) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := q.turns
	t.mu.Lock()
	w := t.joinLocked(q)
	t.lapseLocked()
	if w.turn != nil {
		t.mu.Unlock()
		return w.turn, nil
	}
	w.ready = make(chan struct{})
	t.waitsLocked(q)
	t.mu.Unlock()

	select {
	case <-w.ready:
		return w.turn, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.turn != nil { // it was granted at the same moment
		t.endLocked(w.turn)
	} else {
		t.leaveLocked(q, w)
	}
	return nil, ctx.Err()
}

// Done ends the question. Its turns have been given back, but for that of Begin.
func (q *Question) Done() {
	t := q.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.done {
		return
	}
	if q.own != nil {
		t.endLocked(q.own)
	}
	t.asking--
	q.owner.questions--
	q.own, q.begun, q.done = nil, false, true
	t.forgetLocked()
}
