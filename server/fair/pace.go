package fair

import (
	"context"
	"time"
)

const (
	// leastPace is the part of a processor that everybody may have at any time: who takes no
	// more is never slowed down.
	leastPace = 1.0 / 4
	// sharedPace is the part of all processors that those who take more have together.
	sharedPace = 1.0 / 12
	// paced is for how long they are slowed down once manyShort questions of others had to
	// wait, each within crowded of the one before. Fewer have where somebody asks two long
	// questions at once, which are short at first.
	paced     = 30 * time.Second
	manyShort = 8
	// paceWindow is how often it is looked how many there are who take much.
	paceWindow = 100 * time.Millisecond
	// burst is what somebody may have had at once before they are behind.
	burst = 100 * time.Millisecond
	// leastWorked bounds what a machine that is busy with other things excuses.
	leastWorked = 0.02
	// leastTurn is what a turn is taken to last at least, before it is known.
	leastTurn = 100 * time.Microsecond
	// asking is what a question takes beside its turns, and refusal one that is refused before
	// it has any: connections, records of TLS, finding out who asks, the log.
	asking  = 250 * time.Microsecond
	refusal = time.Millisecond
	// maxDebt is how far behind what one turn has taken may put anybody: what took long may
	// have waited for something that it should have paused for.
	maxDebt = 2 * time.Second
)

// pace is how much of the processors those may have who take much, where the questions of
// others had to wait for them. What is given out in turns alone is not all that a question
// takes: connections, the collector of garbage and the programs at both ends have no turns,
// and the busier all processors are, the longer a short question waits for those, in queues in
// which nobody knows who has had least. So who takes much waits for a while although there
// are turns: of all that they ask, and it is them alone whom a flood of their own questions
// holds up.
//
// All of it is guarded by Turns.mu.
type pace struct {
	until  time.Time // it is to be kept
	waited time.Time // when a short question last had to, of somebody who takes little
	crowd  int       // how many had to since none had for a while
	looked time.Time
	behind int // owners who take more than their pace, when that was looked at

	// worked is what part of the time of turns a processor was at work for them, when that was
	// looked at: on a machine that has much else to do a turn lasts for longer, and nobody
	// takes more for it. It is found from what turns took since then, and the process.
	worked float64
	took   time.Duration
	used   time.Duration
	clock  func() (used time.Duration, known bool)
}

// rate is how many processors somebody may have: each of those who are behind has less than
// what makes somebody behind.
func (p *pace) rate(slots int, behind bool) float64 {
	shared := sharedPace * float64(slots) / float64(max(1, p.behind))
	if behind {
		return shared
	}
	return max(leastPace, shared)
}

// behindLocked reports whether an owner has had more than the pace allows.
func (o *owner) behindLocked(now time.Time) bool { return o.paid.After(now) }

// owesNothingLocked reports whether an owner may be forgotten: a new one may have had as much.
func (o *owner) owesNothingLocked(now time.Time) bool {
	return now.Sub(o.paid).Seconds() >= burst.Seconds()/leastPace
}

// chargeLocked counts what an owner has had, or will have; less than 0: has not had.
func (t *Turns) chargeLocked(o *owner, took time.Duration, now time.Time) {
	t.countBehindLocked(now)
	rate := t.pace.rate(t.slots, o.behindLocked(now))
	if least := now.Add(-time.Duration(float64(burst) / rate)); o.paid.Before(least) {
		o.paid = least
	}
	o.paid = o.paid.Add(time.Duration(float64(took) / rate))
}

// settleLocked counts what a turn has taken beyond what was counted before it.
func (t *Turns) settleLocked(r *turn, took time.Duration, now time.Time) {
	known := min(took, r.reserved)
	r.reserved -= known
	t.pace.took += took
	if o := r.question.owner; o.paid.Before(now.Add(maxDebt)) {
		t.chargeLocked(o, time.Duration(float64(took-known)*t.pace.worked), now)
	}
}

// endPaceLocked settles a turn that has ended.
func (t *Turns) endPaceLocked(r *turn, now time.Time) {
	o := r.question.owner
	t.chargeLocked(o, -r.reserved, now)
	r.reserved = 0
	o.mean += (r.counted - o.mean) / 8
}

// waitsLocked notes that a short question of somebody who takes little has to wait for others.
// Whether it becomes a long one nobody knows yet, so that it counts once, for the first of its
// turns.
func (p *pace) waitsLocked(now time.Time) {
	if now.Sub(p.waited) >= crowded {
		p.crowd = 0
	}
	p.waited = now
	if p.crowd++; p.crowd >= manyShort {
		p.until = now.Add(paced)
	}
}

// countBehindLocked counts those who are behind, now and then.
func (t *Turns) countBehindLocked(now time.Time) {
	if now.Sub(t.pace.looked) < paceWindow {
		return
	}
	p := &t.pace
	p.looked, p.behind, p.worked = now, 0, 1
	if used, known := p.clock(); known {
		p.worked = min(1, max(leastWorked, (used-p.used).Seconds()/max(p.took, time.Microsecond).Seconds()))
		p.used, p.took = used, 0
	}
	for _, o := range t.owners {
		if o.behindLocked(now) {
			p.behind++
		}
	}
}

// keepPace waits until what an owner has had is paid for, where others had to wait, and says
// what of the turn that follows is counted already: extra is not. It does not count who will
// have given up before.
func (t *Turns) keepPace(ctx context.Context, o *owner, extra time.Duration) (reserved time.Duration, err error) {
	t.mu.Lock()
	now := time.Now()
	left := o.paid.Sub(now)
	if left <= 0 || now.After(t.pace.until) {
		t.chargeLocked(o, extra, now)
		t.mu.Unlock()
		return 0, nil
	}
	if end, ok := ctx.Deadline(); !ok || now.Add(left).Before(end) {
		reserved = max(leastTurn, o.mean)
		t.chargeLocked(o, reserved+extra, now) // whoever comes next waits for longer
	}
	o.sleeping++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.sleeping--
	}()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return reserved, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Refuse is for what is refused to whoever has a name before it is a Question. Who is refused
// again and again waits for it as long as for questions.
func (t *Turns) Refuse(ctx context.Context, name string) {
	q := t.Ask(name)
	defer q.Done()
	_, _ = t.keepPace(ctx, q.owner, refusal) // whoever gives up is refused at once
}
