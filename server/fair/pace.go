package fair

import (
	"context"
	"time"
)

const (
	// leastPace is the part of a processor that everybody may have at any time: who takes no
	// more is never slowed down.
	leastPace = 1.0 / 4
	// sharedPace is the part of all processors that those who take more have together, and
	// slowest the part of one that each of them has at least.
	sharedPace = 1.0 / 24
	slowest    = 1.0 / 48
	// paced is for how long they are slowed down once manyShort questions of others had to
	// wait, each within crowded of the one before. Fewer have where somebody asks two long
	// questions at once, which are short at first.
	paced     = 30 * time.Second
	manyShort = 8
	// maxVictims is how many owners it is known of that they had to: of more, as of a flood of
	// names, nothing is taken back.
	maxVictims = 1024
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
	asking  = time.Millisecond
	refusal = 2 * time.Millisecond
	// maxTurn is what one turn counts for at most: what took long may have waited for something
	// that it should have paused for.
	maxTurn = 250 * time.Millisecond
	// maxDebt is how far behind asking alone puts anybody, and farthest what turns do, so that
	// nobody pays for long who has stopped: new questions are refused before.
	maxDebt  = 2 * time.Second
	farthest = 10 * time.Second
	// maxRefused is how many refusals of one owner wait: others are told at once.
	maxRefused = 64
	// maxAsking is how many ask at once when no refusal waits any more.
	maxAsking = 4096
	// lookAgain is how often who waits looks whether others still have to.
	lookAgain = time.Second
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
	// victims is how often each owner had to, since then or since it is kept, and had together.
	// Who turns out to take much is none: a few who all ask as fast as they can have to wait for
	// each other from the first moment on, when nobody knows yet what they take.
	victims map[*owner]int
	had     int
	looked  time.Time
	behind  int // owners who take more than their pace, when that was looked at

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
	shared := max(slowest, sharedPace*float64(slots)/float64(max(1, p.behind)))
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

// chargeLocked counts what an owner has had, or will have, and returns by how much they have
// to wait for longer.
func (t *Turns) chargeLocked(o *owner, took time.Duration, now time.Time) time.Duration {
	t.countBehindLocked(now)
	rate := t.pace.rate(t.slots, o.behindLocked(now))
	if least := now.Add(-time.Duration(float64(burst) / rate)); o.paid.Before(least) {
		o.paid = least
	}
	longer := time.Duration(float64(took) / rate)
	wasBehind := o.behindLocked(now)
	if o.paid = o.paid.Add(longer); !wasBehind && o.behindLocked(now) {
		t.pace.forgiveLocked(o, now)
	}
	return longer
}

// settleLocked counts what a turn has taken beyond what was counted before it.
func (t *Turns) settleLocked(r *turn, took time.Duration, now time.Time) {
	t.pace.took += min(took, now.Sub(t.pace.looked)+paceWindow) // one that was stuck is no measure
	took = min(time.Duration(float64(took)*t.pace.worked), maxTurn-r.worked)
	r.worked += took
	o := r.question.owner
	if took > r.reserved.took && o.paid.Before(now.Add(farthest)) {
		t.chargeLocked(o, took-r.reserved.took, now)
	}
	r.reserved.use(took)
}

// endPaceLocked settles a turn that has ended.
func (t *Turns) endPaceLocked(r *turn) {
	o := r.question.owner
	o.paid = o.paid.Add(-r.reserved.longer)
	r.reserved = reservation{}
	o.mean += (r.worked - o.mean) / 8
}

// reservation is what was counted for a turn before it began.
type reservation struct {
	took   time.Duration // that it is expected to take
	longer time.Duration // by which its owner waits for longer
}

// use takes from a reservation what has come true.
func (v *reservation) use(took time.Duration) {
	if took >= v.took {
		*v = reservation{}
		return
	}
	part := time.Duration(float64(v.longer) * took.Seconds() / v.took.Seconds())
	v.took -= took
	v.longer -= part
}

// waitsLocked notes that a short question of somebody who takes little has to wait for others.
// Whether it becomes a long one nobody knows yet, so that it counts once, for the first of its
// turns.
func (p *pace) waitsLocked(o *owner, now time.Time) {
	if now.Sub(p.waited) >= crowded {
		p.crowd = 0
		if !now.Before(p.until) {
			clear(p.victims)
			p.had = 0
		}
	}
	p.waited = now
	if _, is := p.victims[o]; is || len(p.victims) < maxVictims {
		p.victims[o]++
	}
	p.had++
	if p.crowd++; p.crowd >= manyShort {
		p.until = now.Add(paced)
	}
}

// forgiveLocked takes back what was counted for an owner who turns out to take much. Where it
// was for those alone that the pace is kept, it is kept no longer.
func (p *pace) forgiveLocked(o *owner, now time.Time) {
	n := p.victims[o]
	if n == 0 {
		return
	}
	delete(p.victims, o)
	p.had -= n
	p.crowd = max(0, p.crowd-n)
	if p.had < manyShort && now.Before(p.until) {
		p.until = now
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

// keepPace waits until what an owner has had is paid for, where others had to wait, and returns
// what it has counted of the turn that follows: extra stays counted whatever comes of it. It
// counts nothing for who will have given up before.
func (t *Turns) keepPace(ctx context.Context, o *owner, extra time.Duration) (reservation, error) {
	t.mu.Lock()
	now := time.Now()
	at := o.paid
	end, ends := ctx.Deadline()
	if !ends {
		end = now.Add(farthest)
		at = earlier(at, end)
	}
	if at.Before(now.Add(maxDebt)) {
		t.chargeLocked(o, extra, now)
	}
	if !t.slowLocked(at, now) {
		t.mu.Unlock()
		return reservation{}, nil
	}
	var reserved reservation
	if o.paid.Before(end) {
		reserved.took = max(leastTurn, o.mean)
		reserved.longer = t.chargeLocked(o, reserved.took, now) // whoever comes next waits for longer
	}
	t.changeLocked(o, func() { o.sleeping++ })
	t.mu.Unlock()
	err := t.sleep(ctx, at)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changeLocked(o, func() { o.sleeping-- })
	if err != nil {
		o.paid = o.paid.Add(-reserved.longer)
	}
	return reserved, err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// slowLocked reports whether somebody who may go on at a time has to wait for it.
func (t *Turns) slowLocked(at, now time.Time) bool {
	return at.After(now) && now.Before(t.pace.until)
}

// sleep waits until a time, or until nobody has to wait any more.
func (t *Turns) sleep(ctx context.Context, at time.Time) error {
	for now := time.Now(); ; now = time.Now() {
		t.mu.Lock()
		slow := t.slowLocked(at, now)
		t.mu.Unlock()
		if !slow {
			return nil
		}
		timer := time.NewTimer(min(at.Sub(now), lookAgain))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// Refuse is for what is refused to whoever has a name before it is a Question. Who is refused
// again and again waits for it as long as for questions, up to maxDebt; whoever gives up, and
// who is refused much at once, is told without.
func (t *Turns) Refuse(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, maxDebt)
	defer cancel()
	q := t.Ask(name)
	defer q.Done()
	t.mu.Lock()
	many := q.owner.sleeping >= maxRefused || t.asking > maxAsking
	t.mu.Unlock()
	if !many {
		_, _ = t.keepPace(ctx, q.owner, refusal)
	}
}
