package fair

import (
	"container/heap"
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
// a turn is, several times for one answer. And who takes much is slowed down: see pace.
type Turns struct {
	slots   int
	overdue time.Duration

	mu         sync.Mutex // guards all below
	busy       int        // turns that are out and not late
	late       int        // turns that are late and not stuck
	long       int        // turns that are out, late or not, and not stuck, of questions that were long then
	contending int        // owners who wait, also for their pace, or are late
	now        time.Duration
	owners     map[string]*owner
	asking     int              // questions of all owners
	waiting    [2]ranks[*owner] // those with a short question, and those with long ones alone
	out        []*turn          // those that are out and not stuck
	short      time.Time        // when a short question had to wait last
	timer      *time.Timer      // looks for turns that are late
	pace       pace
	forgot     time.Time // when it was looked which owners need not be kept
	asked      uint64    // how many turns were asked for, to keep the order of equals
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

// turn is one that is out.
type turn struct {
	question *Question
	began    time.Time
	counted  time.Duration // what of it was counted already
	long     bool          // counted in Turns.long
	worked   time.Duration // what of it a processor was at work, as far as that is known
	reserved reservation   // what of it was counted before it began
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
	return &Turns{slots: n, overdue: overdue, owners: map[string]*owner{}, pace: pace{worked: 1, clock: processTime, victims: map[*owner]int{}}}
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

// forgetLocked keeps the owners from becoming ever more.
func (t *Turns) forgetLocked() {
	if t.asking > 0 && len(t.owners) < t.asking+remembered {
		return
	}
	now := time.Now()
	if now.Sub(t.forgot) < paceWindow {
		return
	}
	t.forgot = now
	for name, o := range t.owners {
		if o.questions == 0 && o.owesNothingLocked(now) {
			delete(t.owners, name)
		}
	}
}

// longLeftLocked reports whether one more turn may be of a long question.
func (t *Turns) longLeftLocked() bool {
	if !t.crowdedLocked() {
		return true
	}
	return t.long == 0 || t.long < t.slots-max(1, t.slots/4)
}

func (t *Turns) crowdedLocked() bool { return time.Since(t.short) < crowded }

// waitsLocked notes that a question has to wait for a turn.
func (t *Turns) waitsLocked(q *Question) {
	if q.used >= longAfter {
		return
	}
	t.short = time.Now()
	for _, r := range t.out {
		if o := q.owner; r.question.owner != o && q.used == 0 && !o.behindLocked(t.short) {
			t.pace.waitsLocked(q.owner, t.short)
			return
		}
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
		if w.turn = t.grantLocked(q); w.ready != nil {
			close(w.ready)
		}
	}
}

// nextLocked is the owner who is next, nil if none may be.
func (t *Turns) nextLocked() *owner {
	share := 1
	if most := lateSlots * t.slots; t.late < most {
		share = max(1, most/max(1, t.contending))
	}
	next := t.firstLocked(shortLine, share)
	if !t.longLeftLocked() {
		return next
	}
	if long := t.firstLocked(longLine, share); next == nil || long != nil && long.before(next) {
		return long
	}
	return next
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
	t.settleLocked(r, took, now)
	t.useLocked(o, min(took, max(0, t.now+debt-o.used)))
}

func (t *Turns) endLocked(r *turn) {
	now := time.Now()
	t.countLocked(r, now)
	t.endPaceLocked(r)
	t.moveLocked(r, ended)
	t.out = slices.DeleteFunc(t.out, isOver)
	t.lapseLocked()
}

// lapseLocked finds out which turns are late, lets others have theirs, and comes again when
// the next one will be, if anybody waits for it.
func (t *Turns) lapseLocked() {
	t.admitLocked()
	for !t.nobodyWaits() {
		now := time.Now()
		next := time.Duration(-1)
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
