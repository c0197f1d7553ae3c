package fair

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
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
//
// Not everything can be interrupted. A turn that lasts too long is late, and others get
// theirs nevertheless; but of one owner few turns may be late, while others have or want
// some, or those who take long would have all processors after all.
//
// Where short questions had to wait lately, some processors are for such only: whoever needs
// one for a moment would otherwise find all of them taken each time, and wait for as long as
// a turn is, several times for one answer.
type Turns struct {
	slots   int
	overdue time.Duration

	mu         sync.Mutex // guards all below
	busy       int        // turns that are out and not late
	late       int        // turns that are late and not stuck
	long       int        // turns that are out, late or not, and not stuck, of questions that were long then
	contending int        // owners who wait or are late
	now        time.Duration
	owners     map[string]*owner
	asking     int              // questions of all owners
	waiting    [2]ranks[*owner] // those with a short question, and those with long ones alone
	out        []*turn          // those that are out and not stuck
	short      time.Time        // when a short question had to wait last
	timer      *time.Timer      // looks for turns that are late
	asked      uint64           // how many turns were asked for, to keep the order of equals
}

const (
	// Overdue is how long a turn may last before it is late. What yields does so well
	// before.
	Overdue = 5 * time.Millisecond
	// stuckAfter is how much later one that is late is believed to wait for something, and
	// counts for nothing any more.
	stuckAfter = time.Second
	// lateSlots is how many turns may be late at once, for each processor, as long as there
	// is one owner. With more of them each has a part, and at least one.
	lateSlots = 4
	// longAfter is what a question has had when it is a long one.
	longAfter = 5 * time.Millisecond
	// crowded is for how long after a short question had to wait some processors are for
	// those alone.
	crowded = 100 * time.Millisecond
	// debt is how much an owner may be ahead of the others, at most: what took long may have
	// waited for something that it should have paused for.
	debt = 100 * time.Millisecond
	// maxWaiting bounds the questions of one owner that wait, since each costs memory.
	maxWaiting = 2048
	// slack is how much an owner who has been idle may be behind the others.
	slack = 10 * time.Millisecond
	// remembered is how many owners are kept who ask nothing now, so that who comes back
	// at once does not begin anew.
	remembered = 1024
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

func (o *owner) contends() bool { return o.late > 0 || len(o.waiting) > 0 }

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
	ready chan struct{} // closed when it is
}

// turn is one that is out.
type turn struct {
	question *Question
	began    time.Time
	counted  time.Duration // what of it was counted already
	long     bool          // counted in Turns.long
	state    turnState
}

type turnState int

const (
	running turnState = iota
	overtime
	stuck
	ended
)

// isOver says that nothing can become of a turn any more but its end.
func isOver(r *turn) bool { return r.state >= stuck }

// NewTurns shares n processors, in turns that are late when they last for overdue, which is
// Overdue but in tests.
func NewTurns(n int, overdue time.Duration) *Turns {
	return &Turns{slots: n, overdue: overdue, owners: map[string]*owner{}}
}

// Ask begins a question of whoever has a name.
func (t *Turns) Ask(name string) *Question {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[name]
	if o == nil {
		// Behind those who are there: many who come once must not be before who stays.
		o = &owner{used: t.now + slack}
		t.owners[name] = o
	}
	o.questions++
	t.asking++
	return &Question{turns: t, owner: o}
}

// Begin takes a turn for the goroutine that answers the question, which has it until Done
// but for its pauses. The error is that of ctx, or ErrFull where too many of the owner wait.
func (q *Question) Begin(ctx context.Context) error {
	q.turns.mu.Lock()
	crowd := len(q.owner.waiting)
	q.turns.mu.Unlock()
	if crowd >= maxWaiting {
		return fmt.Errorf("%w: %d questions of the one who asks wait for a processor", ErrFull, crowd)
	}
	own, err := q.take(ctx)
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
	taken, err := q.take(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		q.turns.mu.Lock()
		defer q.turns.mu.Unlock()
		q.turns.endLocked(taken)
	}, nil
}

func (q *Question) take(ctx context.Context) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := q.turns
	t.mu.Lock()
	if t.nobodyWaits() && t.busy < t.slots && q.owner.late == 0 && (q.used < longAfter || t.longLeft()) {
		defer t.mu.Unlock()
		return t.grantLocked(q), nil
	}
	w := t.joinLocked(q)
	t.lapseLocked()
	if w.turn == nil && q.used < longAfter {
		t.short = time.Now()
	}
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

// joinLocked has one more wait.
func (t *Turns) joinLocked(q *Question) *waiter {
	t.asked++
	w := &waiter{order: t.asked, ready: make(chan struct{})}
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

// longLeft reports whether one more turn may be of a long question.
func (t *Turns) longLeft() bool {
	return t.long < t.slots-max(1, t.slots/4) || t.long == 0 || time.Since(t.short) >= crowded
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

// admitLocked passes on what turns are free.
func (t *Turns) admitLocked() {
	for t.busy < t.slots {
		o := t.nextLocked()
		if o == nil {
			return
		}
		q := o.waiting[0]
		w := q.waiters[0]
		t.leaveLocked(q, w)
		w.turn = t.grantLocked(q)
		close(w.ready)
	}
}

// nextLocked is the owner who is next, nil if none may be.
func (t *Turns) nextLocked() *owner {
	share := 1
	if most := lateSlots * t.slots; t.late < most {
		share = max(1, most/max(1, t.contending))
	}
	next := t.firstLocked(shortLine, share)
	if !t.longLeft() {
		return next
	}
	if long := t.firstLocked(longLine, share); next == nil || long != nil && long.before(next) {
		return long
	}
	return next
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

func (t *Turns) grantLocked(q *Question) *turn {
	t.now = max(t.now, q.owner.used)
	t.useLocked(q.owner, max(q.owner.used, t.now-slack)-q.owner.used)
	granted := &turn{question: q, began: time.Now()}
	t.out = append(t.out, granted)
	t.busy++
	q.taken++
	if granted.long = q.used >= longAfter; granted.long {
		t.long++
	}
	return granted
}

// useLocked counts what an owner has had.
func (t *Turns) useLocked(o *owner, had time.Duration) {
	o.used += had
	if len(o.waiting) > 0 && had > 0 {
		t.fixLocked(o)
	}
}

// countLocked counts what a turn has taken since it was counted last.
func (t *Turns) countLocked(r *turn, now time.Time) {
	took := max(now.Sub(r.began)-r.counted, time.Microsecond) // a coarse clock must not make it free
	r.counted += took
	r.question.used += took
	if len(r.question.waiters) > 0 {
		heap.Fix(&r.question.owner.waiting, r.question.rank)
	}
	o := r.question.owner
	t.useLocked(o, min(took, max(0, t.now+debt-o.used)))
}

func (t *Turns) endLocked(r *turn) {
	t.countLocked(r, time.Now())
	t.moveLocked(r, ended)
	t.out = slices.DeleteFunc(t.out, isOver)
	t.lapseLocked()
}

// lapseLocked finds out which turns are late, lets others have theirs, and comes again when
// the next one will be late, if anybody waits for it.
func (t *Turns) lapseLocked() {
	t.admitLocked()
	for !t.nobodyWaits() {
		now, next := time.Now(), time.Duration(-1)
		for _, r := range t.out {
			left := t.lapsesLocked(r, now)
			if left > 0 && (next < 0 || left < next) {
				next = left
			}
		}
		t.out = slices.DeleteFunc(t.out, isOver)
		busy, late := t.busy, t.late
		t.admitLocked()
		if t.busy != busy || t.late != late {
			continue
		}
		if next > 0 && !t.nobodyWaits() {
			t.lookLocked(next)
		}
		return
	}
}

// lapsesLocked has a turn be late, or stuck, when it is, and says how long it is until then;
// 0: it is stuck already.
func (t *Turns) lapsesLocked(r *turn, now time.Time) time.Duration {
	lasts := now.Sub(r.began)
	if r.state == running && lasts >= t.overdue || r.state == overtime && lasts >= t.overdue+stuckAfter {
		t.countLocked(r, now)
		t.moveLocked(r, r.state+1)
	}
	switch r.state {
	case running:
		return t.overdue - lasts
	case overtime:
		return t.overdue + stuckAfter - lasts
	}
	return 0
}

// moveLocked takes a turn from one state to another.
func (t *Turns) moveLocked(r *turn, to turnState) {
	o := r.question.owner
	t.changeLocked(o, func() {
		t.tallyLocked(o, r.state, -1)
		t.tallyLocked(o, to, 1)
	})
	if r.state = to; r.long && isOver(r) {
		t.long--
		r.long = false
	}
}

// tallyLocked keeps the account of how many turns are in a state.
func (t *Turns) tallyLocked(o *owner, s turnState, by int) {
	switch s {
	case running:
		t.busy += by
	case overtime:
		t.late += by
		o.late += by
	}
}

func (t *Turns) lookLocked(after time.Duration) {
	if t.timer != nil {
		t.timer.Reset(after)
		return
	}
	t.timer = time.AfterFunc(after, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lapseLocked()
	})
}
