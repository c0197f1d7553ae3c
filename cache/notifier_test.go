package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNotifierWakesAll: however many wait, and however often each of them has begun to, one
// wake wakes all, and those who come afterwards wait for the next.
func TestNotifierWakesAll(t *testing.T) {
	var n notifier
	n.wake() // nobody waits
	for _, waiting := range []int{1, crowd, crowd + 1, 3*crowd*maxCrowds + 5} {
		var all sync.WaitGroup
		for range waiting {
			ch := n.wait(t.Context())
			all.Go(func() { <-ch })
		}
		n.wake()
		after := n.wait(t.Context())
		all.Wait()
		select {
		case <-after:
			t.Fatalf("%d: who came after a wake does not wait", waiting)
		default:
		}
		n.wake()
		<-after
	}
}

// TestNotifierIsBounded: who looks again and again while nothing changes costs no more and
// more memory.
func TestNotifierIsBounded(t *testing.T) {
	var n notifier
	for range 10 * crowd * maxCrowds {
		n.wait(t.Context())
	}
	if len(n.now.crowds) > maxCrowds {
		t.Errorf("%d channels wait, at most %d may", len(n.now.crowds), maxCrowds)
	}
}

// TestNotifierWakesInOrder: who came first is woken at once, the others in the order in
// which they came.
func TestNotifierWakesInOrder(t *testing.T) {
	var n notifier
	var all []<-chan struct{}
	for range 10 * crowd {
		all = append(all, n.wait(t.Context()))
	}
	n.wake()
	select {
	case <-all[0]:
	default:
		t.Error("who came first still waits")
	}
	<-all[len(all)-1]
	for i, ch := range all {
		select {
		case <-ch:
		default:
			t.Errorf("number %d waits, and the last does not", i)
		}
	}
}

func isOpen(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

// TestNotifierTellsLater: who is to be told later is, of all that changed meanwhile at once,
// whether they have turns or somebody else who asks for them has; nobody else is.
func TestNotifierTellsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notifier
		turns := &counted{later: true}
		ctx := WithTurns(t.Context(), turns)
		now, later, others := n.wait(t.Context()), n.wait(ctx), n.wait(WithoutTurns(ctx))
		var all []<-chan struct{}
		for range 3 * crowd {
			all = append(all, n.wait(BesideTurns(ctx)))
		}
		n.wake()
		if isOpen(now) || !isOpen(later) || !isOpen(all[0]) {
			t.Error("at once: all are told, or nobody is")
		}
		synctest.Wait()
		if isOpen(others) {
			t.Error("what may be for others, too, is told later")
		}
		time.Sleep(laterBy / 2)
		n.wake()
		all = append(all, n.wait(ctx))
		n.wake()
		if !isOpen(later) {
			t.Error("a second change told those who are to be told later")
		}
		time.Sleep(laterBy / 2)
		synctest.Wait()
		for i, ch := range append(all, later) {
			if isOpen(ch) {
				t.Errorf("number %d was not told after %v", i, laterBy)
			}
		}

		again := n.wait(ctx)
		time.Sleep(10 * laterBy)
		if !isOpen(again) {
			t.Error("somebody was told of what did not change")
		}
		n.wake()
		time.Sleep(laterBy)
		synctest.Wait()
		if isOpen(again) {
			t.Error("the second time was not told")
		}

		turns.later = false
		at := n.wait(BesideTurns(ctx))
		if n.wake(); isOpen(at) {
			t.Error("who is behind no more is told later")
		}
	})
}

// TestSubscriptionToldLater: of what changes one who is told later misses nothing.
func TestSubscriptionToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := NewStore(thingSpec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		store.Replace("", nil, "100")
		sub := watch(t, store, "")
		go func() {
			for i := range 20 {
				time.Sleep(laterBy / 5)
				store.Apply("", Added, decodeSimple(t, store, "a", fmt.Sprint(i), 101+i))
			}
		}()
		ctx, reads, told := WithTurns(t.Context(), &counted{later: true}), 0, 0
		for ; told < 20; reads++ {
			events, err := sub.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			told += len(events)
		}
		if reads > 6 {
			t.Errorf("20 changes within %v were told in %d parts", 4*laterBy, reads)
		}
	})
}

// TestLaterEnds: who is to be told later is told at once that there is nothing more to tell; who
// waits for a version is told with all others, and is not refused what is there.
func TestLaterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := NewStore(thingSpec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		store.Replace("", nil, "100")
		sub := watch(t, store, "")
		ctx := WithTurns(t.Context(), &counted{later: true})
		began := time.Now()
		go func() {
			time.Sleep(laterBy / 10)
			store.Bookmark("", "105")
		}()
		soon, cancel := context.WithTimeout(ctx, laterBy/2)
		defer cancel()
		if err := store.WaitVersion(soon, "105"); err != nil || time.Since(began) > laterBy/5 {
			t.Errorf("a version that was there after %v: %v, after %v", laterBy/10, err, time.Since(began))
		}
		go func() {
			time.Sleep(laterBy)
			began = time.Now()
			store.Close()
		}()
		if _, err := sub.Next(ctx); !errors.Is(err, ErrStopped) || time.Since(began) > laterBy/5 {
			t.Errorf("the end: %v, after %v", err, time.Since(began))
		}
	})
}
