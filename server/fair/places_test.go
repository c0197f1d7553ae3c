package fair

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// checkEmpty: nobody holds places, waits for some or is remembered.
func checkEmpty(t *testing.T, p *Places) {
	t.Helper()
	if q := p.queued; p.Taken() != 0 || len(p.owners) != 0 || q.waiting != 0 || len(q.lines) != 0 || len(q.crowds) != 0 {
		t.Errorf("left: %d taken, %d owners, %+v", p.Taken(), len(p.owners), q)
	}
}

func take(t *testing.T, p *Places, owner string, weight int) (release func()) {
	t.Helper()
	release, err := p.Take(t.Context(), owner, weight, time.Second)
	if err != nil {
		t.Fatalf("Take(%s, %d) = %v", owner, weight, err)
	}
	return release
}

// TestPlacesAreShared: one owner gets half of the places and no more, so that another
// one finds some at once.
func TestPlacesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(10)
		for range 5 {
			take(t, p, "greedy", 1)
		}
		began := time.Now()
		if _, err := p.Take(t.Context(), "greedy", 1, time.Second); !errors.Is(err, ErrFull) || time.Since(began) != time.Second {
			t.Errorf("Take() = %v after %v", err, time.Since(began))
		}
		began = time.Now()
		take(t, p, "innocent", 1)
		if time.Since(began) != 0 {
			t.Errorf("waited %v", time.Since(began))
		}
	})
}

// TestWhoHasLeastIsFirst: not who came first.
func TestWhoHasLeastIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4)
		first := take(t, p, "a", 1)
		take(t, p, "a", 1)
		take(t, p, "b", 2)
		var got []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, name := range []string{"b", "a", "c"} {
			wg.Go(func() {
				if release, err := p.Take(t.Context(), name, 1, time.Minute); err == nil {
					mu.Lock()
					got = append(got, name)
					mu.Unlock()
					defer release()
				}
			})
			synctest.Wait()
		}
		first()
		synctest.Wait()
		mu.Lock()
		if len(got) == 0 || got[0] != "c" {
			t.Errorf("in this order: %v", got)
		}
		mu.Unlock()
		wg.Wait()
	})
}

// TestPlacesModel: whatever is asked at random, no more is held than there is, and at
// the end nothing.
func TestPlacesModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(7)
		var mu sync.Mutex
		held := map[string]int{}
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for range 100 {
					owner, weight := string(rune('a'+r.IntN(4))), 1+r.IntN(5)
					release, err := p.Take(t.Context(), owner, weight, time.Duration(r.IntN(20))*time.Millisecond)
					if err != nil {
						continue
					}
					weight = min(weight, 3)
					mu.Lock()
					held[owner] += weight
					sum := 0
					for _, n := range held {
						sum += n
					}
					if sum > 7 || held[owner] > 3 {
						t.Errorf("%s holds %d of %d", owner, held[owner], sum)
					}
					mu.Unlock()
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
					mu.Lock()
					held[owner] -= weight
					mu.Unlock()
					release()
				}
			})
		}
		wg.Wait()
		checkEmpty(t, p)
	})
}
