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
		turns := NewTurns(2, Overdue)
		var wg sync.WaitGroup
		var had atomic.Int64
		greedy, end := context.WithCancel(t.Context())
		takeOn(greedy, turns, &wg, 4, &had)
		during := func(what string, d time.Duration, least, most float64) {
			t.Helper()
			had.Store(0)
			time.Sleep(d)
			if part := float64(had.Load()) * 0.002 / d.Seconds() / 2; part < least || part > most {
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
		during("beside who asks little", 20*time.Second, 0.2, 0.6)
		if n, of := waited.Load(), answers.Load(); float64(n) > 0.15*float64(of) {
			t.Errorf("%d of %d questions had to wait", n, of)
		}
		if took := time.Duration(longest.Load()); took > Overdue {
			t.Errorf("one of them waited %v", took)
		}
		stop()
		time.Sleep(paceRises)
		// Nobody asks who could be hurt; what is asked next finds it out.
		for range 20 {
			answer(t, turns, "modest", 1, 0)
			time.Sleep(time.Second)
		}
		during("alone again", time.Second, 0.99, 1)
		end()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestPaceIsFair: of those who are slowed down nobody has less than the least pace, and none
// has more who asks more at once.
func TestPaceIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var one, hundred atomic.Int64
		for i, had := range []*atomic.Int64{&one, &hundred} {
			for range []int{1, 100}[i] {
				wg.Go(func() {
					for ctx.Err() == nil {
						q := turns.Ask(fmt.Sprint("greedy ", i))
						if give, err := q.Take(ctx); err == nil {
							time.Sleep(time.Millisecond)
							give()
							had.Add(1)
						}
						q.Done()
					}
				})
			}
		}
		keep := func() { // the pace as low as it gets
			turns.mu.Lock()
			turns.pace.part, turns.pace.behind = 0, 2
			turns.mu.Unlock()
		}
		for range 100 {
			keep()
			time.Sleep(100 * time.Millisecond)
		}
		one.Store(0)
		hundred.Store(0)
		for range 100 {
			keep()
			time.Sleep(100 * time.Millisecond)
		}
		for what, n := range map[string]int64{"one at once": one.Load(), "a hundred": hundred.Load()} {
			if part := float64(n) * 0.001 / 10; part < 0.7*leastPace || part > 1.4*leastPace {
				t.Errorf("%s had %.3f of a processor, want about %.3f", what, part, leastPace)
			}
		}
		cancel()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestPaceEnds: who waits for their pace gives up when they want, holds up nobody else of
// theirs who resumes, and leaves nothing behind.
func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, Overdue)
		q := turns.Ask("greedy")
		if err := q.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		resume := q.Pause(t.Context())
		turns.mu.Lock()
		turns.pace.part = leastShare
		turns.owners["greedy"].paid = time.Now().Add(maxSleep / 2)
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
		if took := answer(t, turns, "greedy", 1, 0); took == 0 || took > maxSleep {
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
