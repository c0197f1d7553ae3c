package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// waiting is one of many who wait for a place in a test.
type waiting struct {
	cancel context.CancelFunc
	done   chan error // what Take said; buffered
}

// wait makes one of an owner wait, or be refused.
func wait(t *testing.T, p *Places, owner string) *waiting {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{cancel, make(chan error, 1)}
	go func() {
		release, err := p.Take(ctx, owner, 1, time.Hour)
		if err == nil {
			release()
		}
		w.done <- err
	}()
	synctest.Wait()
	return w
}

// refused reports whether Take has said that there is no place.
func (w *waiting) refused() bool {
	select {
	case err := <-w.done:
		w.done <- err
		return errors.Is(err, ErrFull)
	default:
		return false
	}
}

func leave(all []*waiting) {
	for _, w := range all {
		w.cancel()
		<-w.done
	}
}

// TestWaitersAreBounded: whoever lets more wait than they may is refused at once, and
// what they had waiting stays.
func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		first, second := take(t, p, "a", 1), take(t, p, "b", 1)
		began := time.Now()
		var all []*waiting
		for i := range 2 * waitersPerPlace {
			w := wait(t, p, "greedy")
			if want := i >= 2*waitersPerPlace/ownersShare; w.refused() != want {
				t.Errorf("number %d is refused: %v, want %v", i+1, w.refused(), want)
			}
			all = append(all, w)
		}
		if time.Since(began) != 0 {
			t.Errorf("it took %v to refuse", time.Since(began))
		}
		if w := wait(t, p, "innocent"); w.refused() {
			t.Error("somebody else may not wait")
		} else {
			all = append(all, w)
		}
		leave(all)
		first()
		second()
		checkEmpty(t, p)
	})
}

// TestManyWhoWaitKeepOutNobody: when all who may wait do, who has none waiting takes the
// turn of the last of those who have most; who has as many is refused.
func TestManyWhoWaitKeepOutNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		first, second := take(t, p, "a", 1), take(t, p, "b", 1)
		const each = 2 * waitersPerPlace / ownersShare
		var all []*waiting
		for owner := range ownersShare {
			for range each {
				all = append(all, wait(t, p, fmt.Sprint("greedy", owner)))
			}
		}
		for _, w := range all {
			if w.refused() {
				t.Fatal("refused before all who may wait do")
			}
		}
		innocent := wait(t, p, "innocent")
		if innocent.refused() {
			t.Error("many who wait keep out somebody who does not")
		}
		gone := 0
		for i, w := range all {
			if !w.refused() {
				continue
			}
			if gone++; i%each != each-1 {
				t.Errorf("number %d of its owner is sent away, not the last", i%each+1)
			}
		}
		if gone != 1 {
			t.Errorf("%d are sent away for one", gone)
		}
		// Everybody has one waiting, and nobody may take another's.
		var single []*waiting
		for i := range 2 * waitersPerPlace {
			w := wait(t, p, fmt.Sprint("single", i))
			single = append(single, w)
			if want := i >= 2*waitersPerPlace-ownersShare-1; w.refused() != want {
				t.Errorf("number %d is refused: %v, want %v", i+1, w.refused(), want)
			}
		}
		if p.queued.waiting != 2*waitersPerPlace {
			t.Errorf("%d wait", p.queued.waiting)
		}
		leave(append(append(all, innocent), single...))
		first()
		second()
		checkEmpty(t, p)
	})
}

// TestOrderModel: whoever is let in is the one that a look at all who wait finds, whatever
// they want and whoever leaves meanwhile.
func TestOrderModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := NewPlaces(8)
		var all []*claimant // who waits, in the order in which they came
		for range 300 {
			switch owner := p.ownerLocked(string(rune('a' + r.IntN(6)))); r.IntN(4) {
			case 0, 1:
				all = append(all, p.queued.join(owner, 1+r.IntN(4)))
			case 2: // as others come and go
				owner.holds = r.IntN(5)
				p.queued.moved(owner)
				p.taken = r.IntN(9)
			case 3:
				if len(all) > 0 {
					i := r.IntN(len(all))
					p.queued.leave(all[i])
					all = append(all[:i], all[i+1:]...)
				}
			}
			var want *claimant
			for _, c := range all {
				if p.fits(c.owner, c.weight) && (want == nil || c.owner.holds < want.owner.holds) {
					want = c
				}
			}
			if got := p.queued.first(p.fits); got != want {
				t.Fatalf("next is %+v, want %+v", got, want)
			}
			most := 0
			for _, o := range p.owners {
				most = max(most, o.waiting)
			}
			if p.queued.waiting != len(all) || len(all) > 0 && p.queued.crowd().waiting != most {
				t.Fatalf("%d wait, want %d; most of one owner are not %d", p.queued.waiting, len(all), most)
			}
		}
	}
}

// BenchmarkCrowd is what a place costs that is given back and taken again while a thousand
// wait.
func BenchmarkCrowd(b *testing.B) {
	for _, owners := range []int{10, 1000} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) {
			p := NewPlaces(100)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						release, err := p.Take(context.Background(), fmt.Sprint(i%owners), 1, time.Minute)
						if err != nil {
							b.Error(err)
							return
						}
						runtime.Gosched()
						release()
					}
				})
			}
			wg.Wait()
		})
	}
}
