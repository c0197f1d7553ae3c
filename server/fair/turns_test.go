package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// checkNone: nobody has a turn, or waits for one.
func checkNone(t *testing.T, turns *Turns) {
	t.Helper()
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if turns.busy != 0 || turns.late != 0 || turns.contending != 0 || turns.long != 0 || !turns.nobodyWaits() || len(turns.out) != 0 {
		t.Errorf("left behind: %d turns, %d late, %d long, %d owners contend, %d wait", turns.busy, turns.late, turns.long, turns.contending, len(turns.waiting[shortLine])+len(turns.waiting[longLine]))
	}
}

// checkForgotten: a while after they asked, nobody is remembered but who asks then.
func checkForgotten(t *testing.T, turns *Turns) {
	t.Helper()
	time.Sleep(time.Minute)
	turns.Ask("the next").Done()
	if turns.asking != 0 || len(turns.owners) > 1 {
		t.Errorf("%d ask, %d owners are left", turns.asking, len(turns.owners))
	}
}

// use takes n turns of length each, one after the other.
func use(t *testing.T, q *Question, n int, length time.Duration) {
	for range n {
		give, err := q.Take(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(length)
		give()
	}
}

// answer is how long a question of an owner takes that takes n turns.
func answer(t *testing.T, turns *Turns, owner string, n int, length time.Duration) time.Duration {
	began := time.Now()
	q := turns.Ask(owner)
	defer q.Done()
	use(t, q, n, length)
	return time.Since(began)
}

// TestShortBeforeLong: a question that takes a moment is answered within turns, not
// after the hundred that were there before it, whoever asks them.
func TestShortBeforeLong(t *testing.T) {
	for name, of := range map[string]string{"another owner": "innocent", "the same owner": "greedy"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := NewTurns(2, Overdue)
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						q := turns.Ask("greedy")
						defer q.Done()
						use(t, q, 500, 2*time.Millisecond)
					})
				}
				time.Sleep(10 * time.Second)
				if took := answer(t, turns, of, 1, time.Millisecond); took > 10*time.Millisecond {
					t.Errorf("waited %v", took)
				}
				wg.Wait()
			})
		})
	}
}

// TestFairAmongOwners: one who asks a hundred questions gets as much as one who asks
// one, however long the latter was silent before.
func TestFairAmongOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, Overdue)
		ctx, cancel := context.WithCancel(t.Context())
		had := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		ask := func(name string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				q := turns.Ask(name)
				defer q.Done()
				for {
					give, err := q.Take(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond)
					give()
					mu.Lock()
					if after > 0 || time.Since(epoch) > 20*time.Second {
						had[name]++
					}
					mu.Unlock()
				}
			})
		}
		for range 100 {
			ask("many", 0)
		}
		ask("late", 20*time.Second)
		time.Sleep(40 * time.Second)
		cancel()
		wg.Wait()
		if many, late := had["many"], had["late"]; late < 9*many/10 || many < 9*late/10 {
			t.Errorf("many had %d turns, the late one %d", many, late)
		}
	})
}

// epoch is when a bubble of synctest begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TestTakeEnds: who gives up leaves nothing behind, and loses no turn.
func TestTakeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, Overdue)
		q := turns.Ask("a")
		give, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), Overdue/2)
		defer cancel()
		if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take() = %v", err)
		}
		give()
		for range 3 {
			use(t, q, 1, time.Millisecond)
		}
		q.Done()
		checkForgotten(t, turns)
		checkNone(t, turns)
	})
}

// TestTurnsAreNeverMore: there are no more turns at once than processors, whoever
// comes and goes. It is run with the race detector.
func TestTurnsAreNeverMore(t *testing.T) {
	turns := NewTurns(3, Overdue)
	var mu sync.Mutex
	now, most := 0, 0
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			q := turns.Ask(string(rune('a' + i%4)))
			defer q.Done()
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == i%7 {
					cancel()
				}
				give, err := q.Take(ctx)
				if err == nil {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					mu.Lock()
					now--
					mu.Unlock()
					give()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if most > 3 {
		t.Errorf("%d turns at once", most)
	}
	checkNone(t, turns)
}

// TestLateTurns: those who cannot be interrupted do not have all processors. Each of some
// owners asks what takes a second, many times over; a short question of another waits for
// no more than the time after which a turn is late.
func TestLateTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		turns.pace.clock = func() (time.Duration, bool) { return 0, true } // they wait: no processor works for them
		var now, most atomic.Int64
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				q := turns.Ask(fmt.Sprint("greedy", i%4))
				defer q.Done()
				for range 10 {
					give, err := q.Take(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(900 * time.Millisecond)
					now.Add(-1)
					give()
				}
			})
		}
		time.Sleep(10 * time.Second)
		for range 100 {
			q := turns.Ask("innocent")
			began := time.Now()
			use(t, q, 3, time.Millisecond)
			q.Done()
			if took := time.Since(began); took > 3*(Overdue+time.Millisecond) {
				t.Errorf("it took %v", took)
			}
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		// Up to lateSlots of them may be late for each processor when the last are granted that
		// have every processor. From then on, an owner without late turns may have some
		// nevertheless, on every processor, until one of those is late.
		if bound := int64(2 + lateSlots*2 + 4*2); most.Load() > bound {
			t.Errorf("%d turns at once, of %d", most.Load(), bound)
		}
		checkNone(t, turns)
	})
}

// TestStuckTurns: who forgets to pause holds up nobody for longer than a second, even if
// they wait for those who wait for a turn.
func TestStuckTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				q := turns.Ask("one")
				defer q.Done()
				give, err := q.Take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer give()
				<-done
			})
		}
		synctest.Wait()
		took := answer(t, turns, "one", 1, time.Millisecond)
		close(done)
		if took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestPause: who waits for something else has no turn, and one again after it.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, Overdue)
		q, other := turns.Ask("a"), turns.Ask("b")
		q.Pause(t.Context())() // has none yet
		if err := q.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		resume, again := q.Pause(t.Context()), q.Pause(t.Context())
		give, err := other.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		resumed := false
		resume()
		go func() {
			again()
			resumed = true
		}()
		synctest.Wait()
		if resumed {
			t.Error("it goes on without a turn")
		}
		give()
		synctest.Wait()
		if !resumed || turns.busy != 1 {
			t.Errorf("it goes on: %v, %d turns are out", resumed, turns.busy)
		}
		resume = q.Pause(t.Context())
		q.Done()
		resume() // too late
		q.Pause(t.Context())()
		other.Done()
		checkNone(t, turns)

		ctx, cancel := context.WithCancel(t.Context())
		q, other = turns.Ask("a"), turns.Ask("b")
		if err := q.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		resume = q.Pause(ctx)
		if give, err = other.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		resume() // goes on without
		give()
		q.Done()
		other.Done()
		if err := turns.Ask("a").Begin(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Begin() = %v", err)
		}
		checkNone(t, turns)
	})
}

// TestTurnsModel: whoever takes, pauses, lasts and gives up at random, nothing is left, and
// nobody is forgotten.
func TestTurnsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 2))
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(30))*time.Millisecond)
					q := turns.Ask(string(rune('a' + r.IntN(5))))
					_ = q.Begin(ctx)
					var helpers sync.WaitGroup
					resume := q.Pause(t.Context())
					for range r.IntN(3) {
						sleep := time.Duration(r.IntN(20)) * time.Millisecond
						helpers.Go(func() {
							defer q.Pause(t.Context())()
							if give, err := q.Take(ctx); err == nil {
								time.Sleep(sleep)
								give()
							}
						})
					}
					helpers.Wait()
					resume()
					if r.IntN(50) == 0 {
						time.Sleep(2 * time.Second)
					}
					q.Done()
					cancel()
				}
			})
		}
		wg.Wait()
		checkNone(t, turns)
		checkForgotten(t, turns)
	})
}

// ask has one question after the other asked by an owner, so many at once, each a turn that
// lasts, until ctx ends.
func ask(ctx context.Context, turns *Turns, wg *sync.WaitGroup, owner func() string, atOnce int, lasts time.Duration) {
	for range atOnce {
		wg.Go(func() {
			for ctx.Err() == nil {
				q := turns.Ask(owner())
				if give, err := q.Take(ctx); err == nil {
					time.Sleep(lasts)
					give()
				}
				q.Done()
			}
		})
	}
}

// TestLongAreServed: what takes long is answered, too, while another owner asks what is
// short and cannot be interrupted, again and again.
func TestLongAreServed(t *testing.T) {
	for _, lasts := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			turns := NewTurns(2, Overdue)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			ask(ctx, turns, &wg, func() string { return "greedy" }, 16, lasts)
			time.Sleep(10 * time.Second)
			if took := answer(t, turns, "victim", 50, 2*time.Millisecond); took > time.Second {
				t.Errorf("a tenth of a second took %v beside questions of %v", took, lasts)
			}
			cancel()
			wg.Wait()
			checkNone(t, turns)
		})
	}
}

// TestManyWhoComeOnce: who stays is served, too, while others come that have had nothing.
func TestManyWhoComeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var n atomic.Int64
		ask(ctx, turns, &wg, func() string { return fmt.Sprint("comes once ", n.Add(1)) }, 8, time.Millisecond)
		if took := answer(t, turns, "stays", 100, time.Millisecond); took > 5*time.Second {
			t.Errorf("a tenth of a second took %v", took)
		}
		cancel()
		wg.Wait()
		checkNone(t, turns)
	})
}

// TestDebtIsBounded: who had turns while they waited for something does not pay for all of
// it afterwards.
func TestDebtIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				q := turns.Ask("one")
				defer q.Done()
				use(t, q, 1, 15*time.Second)
			})
		}
		wg.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx, turns, &wg, func() string { return "another" }, 4, time.Millisecond)
		time.Sleep(time.Second)
		if took := answer(t, turns, "one", 1, time.Millisecond); took > time.Second {
			t.Errorf("waited %v", took)
		}
		cancel()
		wg.Wait()
	})
}

// TestCrowdsAreRefused: of one owner no more wait than are bounded.
func TestCrowdsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, Overdue)
		ctx, cancel := context.WithCancel(t.Context())
		give, err := turns.Ask("another").Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var full atomic.Int64
		for range maxWaiting + 10 {
			wg.Go(func() {
				q := turns.Ask("one")
				defer q.Done()
				if err := q.Begin(ctx); errors.Is(err, ErrFull) {
					full.Add(1)
					return
				}
				<-ctx.Done()
			})
			synctest.Wait()
		}
		if full.Load() == 0 || full.Load() > 10 {
			t.Errorf("%d are refused", full.Load())
		}
		cancel()
		wg.Wait()
		give()
		checkNone(t, turns)
	})
}

// TestFewAreNoCrowd: who asks a few long questions at once is not slowed down by their
// beginnings, which are short.
func TestFewAreNoCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, Overdue)
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 4 {
			wg.Go(func() { answer(t, turns, fmt.Sprint("one ", i), 20, 2*time.Millisecond) })
		}
		wg.Wait()
		// While the first turns of all are crowded, one of the two processors has no long ones.
		if took := time.Since(began); took > 145*time.Millisecond {
			t.Errorf("160 ms of work took two processors %v", took)
		}
		checkNone(t, turns)
	})
}
