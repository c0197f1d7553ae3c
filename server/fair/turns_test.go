package fair

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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

// TestShortBeforeLong: a question that takes a moment is answered within turns, not
// after the hundred that were there before it, whoever asks them.
func TestShortBeforeLong(t *testing.T) {
	for name, of := range map[string]string{"another owner": "innocent", "the same owner": "greedy"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := NewTurns(2)
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						q := turns.Ask("greedy")
						defer q.Done()
						use(t, q, 500, 2*time.Millisecond)
					})
				}
				time.Sleep(10 * time.Second)
				began := time.Now()
				q := turns.Ask(of)
				use(t, q, 1, time.Millisecond)
				q.Done()
				if took := time.Since(began); took > 10*time.Millisecond {
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
		turns := NewTurns(1)
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
		turns := NewTurns(1)
		q := turns.Ask("a")
		give, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take() = %v", err)
		}
		give()
		for range 3 {
			use(t, q, 1, time.Millisecond)
		}
		q.Done()
		if len(turns.owners) != 0 || turns.free != 1 || len(turns.waiting) != 0 {
			t.Errorf("left behind: %d owners, %d free, %d waiting", len(turns.owners), turns.free, len(turns.waiting))
		}
	})
}

// TestTurnsAreNeverMore: there are no more turns at once than processors, whoever
// comes and goes. It is run with the race detector.
func TestTurnsAreNeverMore(t *testing.T) {
	turns := NewTurns(3)
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
	if most > 3 || turns.free != 3 {
		t.Errorf("%d turns at once, %d free at the end", most, turns.free)
	}
}
