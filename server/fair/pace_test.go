package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// steadyTurns are those of a machine that does nothing else, as far as can be told.
func steadyTurns(n int) *Turns {
	t := NewTurns(n, Overdue)
	t.pace.clock = func() (time.Duration, bool) { return 0, false }
	return t
}

// keptFor has the pace be kept for somebody who takes little.
func keptFor(t *Turns, d time.Duration) {
	t.pace.until = time.Now().Add(d)
	t.pace.victims[&owner{}], t.pace.had = manyShort, manyShort
}

// takeOn has owners take turns of 2 ms, one after the other, until ctx ends, and counts them.
func takeOn(ctx context.Context, turns *Turns, wg *sync.WaitGroup, owners int, had *atomic.Int64) {
	for i := range owners {
		wg.Go(func() {
			q := turns.Ask(fmt.Sprint("greedy ", i))
			defer q.Done()
			for {
				give, err := q.Take(ctx)
				if err != nil {
					return
				}
				time.Sleep(2 * time.Millisecond)
				give()
				had.Add(1)
			}
		})
	}
}

// TestPace: who takes much is slowed down while questions of others have to wait, and has
// all that there is when there are none, a while after.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(2)
		var wg sync.WaitGroup
		var had atomic.Int64
		greedy, end := context.WithCancel(t.Context())
		takeOn(greedy, turns, &wg, 4, &had)
		during := func(what string, d time.Duration, least, most float64) {
			t.Helper()
			had.Store(0)
			time.Sleep(d)
			if part := float64(had.Load()) * 0.002 / d.Seconds() / 2; part < least || part > most+0.01 {
				t.Errorf("%s: they had %.3f of the processors, want %.3f to %.3f", what, part, least, most)
			}
		}
		time.Sleep(time.Second)
		during("alone", time.Second, 0.99, 1)

		modest, stop := context.WithCancel(t.Context())
		var waited, answers, longest atomic.Int64
		for range 4 {
			wg.Go(func() {
				for modest.Err() == nil {
					time.Sleep(25 * time.Millisecond)
					took := answer(t, turns, "modest", 1, 500*time.Microsecond) - 500*time.Microsecond
					longest.Store(max(longest.Load(), int64(took)))
					if answers.Add(1); took > 0 {
						waited.Add(1)
					}
				}
			})
		}
		time.Sleep(5 * time.Second)
		waited.Store(0)
		answers.Store(0)
		longest.Store(0)
		during("beside who asks little", 20*time.Second, 0.7*sharedPace, 1.5*sharedPace)
		if n, of := waited.Load(), answers.Load(); float64(n) > 0.3*float64(of) {
			t.Errorf("%d of %d questions had to wait", n, of)
		}
		if took := time.Duration(longest.Load()); took > Overdue {
			t.Errorf("one of them waited %v", took)
		}
		stop()
		time.Sleep(paced + time.Second)
		during("alone again", time.Second, 0.99, 1)
		end()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestEquals: a few who ask short questions as fast as they can, and nobody else, have all that
// there is between them, from the beginning on.
func TestEquals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(2)
		const clients = 4
		ctx, end := context.WithCancel(t.Context())
		var had [clients]atomic.Int64
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				for ctx.Err() == nil {
					answer(t, turns, fmt.Sprint("client ", i), 1, 2*time.Millisecond)
					had[i].Add(1)
				}
			})
		}
		for second := range 40 {
			for i := range had {
				had[i].Store(0)
			}
			time.Sleep(time.Second)
			for i := range had {
				if part := float64(had[i].Load()) * 0.002 / 2; part < 0.8/clients {
					t.Errorf("in second %d client %d had %.3f of the processors, of %d", second, i, part, clients)
				}
			}
		}
		end()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestVictimsAreBounded: a flood of those who come once leaves no more than so many behind, and
// the pace is kept for them.
func TestVictimsAreBounded(t *testing.T) {
	p := &steadyTurns(2).pace
	now := time.Now()
	for range 3 * maxVictims {
		o := &owner{}
		p.waitsLocked(o, now)
		if p.forgiveLocked(&owner{}, now); !now.Before(p.until) && p.had >= manyShort {
			t.Fatal("the pace is not kept")
		}
	}
	for o := range p.victims {
		p.forgiveLocked(o, now)
	}
	if len(p.victims) > 0 || p.had != 2*maxVictims || !now.Before(p.until) {
		t.Errorf("%d are known, %d had to wait", len(p.victims), p.had)
	}
	for range 2 * maxVictims {
		p.waitsLocked(&owner{}, now)
	}
	if len(p.victims) != maxVictims {
		t.Errorf("%d are known, want %d", len(p.victims), maxVictims)
	}
}

// TestBusyMachine: turns that last for long since the machine does something else are not what
// somebody has taken.
func TestBusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		var used time.Duration // a twentieth of what turns take
		turns.pace.clock = func() (time.Duration, bool) { return used, true }
		keptFor(turns, time.Hour)
		q := turns.Ask("modest")
		defer q.Done()
		for range 200 { // four fifths of a processor by the clock, and a twentieth of that in truth
			give, err := q.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Millisecond)
			used += 2 * time.Millisecond
			give()
			time.Sleep(10 * time.Millisecond)
		}
		began := time.Now()
		give, err := q.Take(t.Context())
		if err != nil || time.Since(began) > 0 {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
		give()
	})
}

// TestPaceIsFair: of those who are slowed down none has more who asks more at once.
func TestPaceIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(2)
		keptFor(turns, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var one, hundred atomic.Int64
		count := func(name string, had *atomic.Int64) func() string {
			return func() string { had.Add(1); return name }
		}
		ask(ctx, turns, &wg, count("asks one", &one), 1, 3*time.Millisecond)
		ask(ctx, turns, &wg, count("asks a hundred", &hundred), 100, 3*time.Millisecond)
		time.Sleep(10 * time.Second)
		one.Store(0)
		hundred.Store(0)
		time.Sleep(20 * time.Second)
		// Who has one question at a time is not behind when it begins, and so has a little more.
		each := sharedPace * 2 / 2
		for what, n := range map[string]int64{"one at once": one.Load(), "a hundred": hundred.Load()} {
			if part := float64(n) * 0.003 / 20; part < 0.7*each || part > 2.2*each {
				t.Errorf("%s had %.3f of a processor, want about %.3f", what, part, each)
			}
		}
		cancel()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestRefuse: who is refused again and again waits for it where others have to wait, and
// nowhere else.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(2)
		refusals := func(d time.Duration) (n int) {
			var wg sync.WaitGroup
			var all atomic.Int64
			end := time.Now().Add(d)
			for range 10 {
				wg.Go(func() {
					for time.Now().Before(end) {
						turns.Refuse(t.Context(), "address 192.0.2.1")
						time.Sleep(time.Millisecond) // on the way
						all.Add(1)
					}
				})
			}
			wg.Wait()
			return int(all.Load())
		}
		if n := refusals(time.Second); n != 10_000 {
			t.Errorf("%d refusals in a second, want 10000", n)
		}
		keptFor(turns, time.Hour)
		refusals(5 * time.Second)
		if n := refusals(5 * time.Second); n < 100 || n > 1000 {
			t.Errorf("%d refusals in 5 s where others wait, want about %.0f", n, 5*sharedPace*2/refusal.Seconds())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		turns.Refuse(ctx, "address 192.0.2.1")
		if took := time.Since(began); took > 0 {
			t.Errorf("whoever has left waits %v", took)
		}
		checkNone(t, turns)
	})
}

// TestPaceEnds: who waits for their pace gives up when they want, holds up nobody else of
// theirs who resumes, and leaves nothing behind.
func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(1)
		q := turns.Ask("greedy")
		if err := q.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		resume := q.Pause(t.Context())
		turns.mu.Lock()
		keptFor(turns, time.Hour)
		turns.owners["greedy"].paid = time.Now().Add(maxDebt)
		turns.mu.Unlock()

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		other := turns.Ask("greedy")
		if err := other.Begin(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("Begin() = %v after %v", err, time.Since(began))
		}
		other.Done()
		began = time.Now()
		resume()
		if took := time.Since(began); took > 0 {
			t.Errorf("resume waited %v: others may wait for what it holds", took)
		}
		q.Done()
		if took := answer(t, turns, "greedy", 1, 0); took == 0 || took > 2*maxDebt {
			t.Errorf("the next one waited %v", took)
		}
		turns.mu.Lock()
		for name, o := range turns.owners {
			if o.sleeping != 0 {
				t.Errorf("%s: %d sleep", name, o.sleeping)
			}
		}
		turns.mu.Unlock()
		checkNone(t, turns)
	})
}

// TestLater: who is slowed down is told of changes after others, and nobody else is.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := steadyTurns(2)
		var wg sync.WaitGroup
		defer wg.Wait()
		greedy, end := context.WithCancel(t.Context())
		defer end()
		var had atomic.Int64
		takeOn(greedy, turns, &wg, 4, &had)
		watch, other := turns.Ask("greedy 0"), turns.Ask("modest")
		defer watch.Done()
		defer other.Done()
		time.Sleep(time.Second)
		if watch.Later() {
			t.Error("it is told later although nobody had to wait")
		}
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for range 100 {
					time.Sleep(25 * time.Millisecond)
					answer(t, turns, "modest", 1, 500*time.Microsecond)
				}
			})
		}
		asking.Wait()
		if !watch.Later() {
			t.Error("who has had too much is told with all others")
		}
		if other.Later() {
			t.Error("who takes little is told later")
		}
		time.Sleep(paced + time.Second)
		if watch.Later() {
			t.Error("it is told later although nobody has to wait any more")
		}
	})
}
