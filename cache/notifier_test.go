package cache

import (
	"sync"
	"testing"
)

// TestNotifierWakesAll: however many wait, and however often each of them has begun to, one
// wake wakes all, and those who come afterwards wait for the next.
func TestNotifierWakesAll(t *testing.T) {
	var n notifier
	n.wake() // nobody waits
	for _, waiting := range []int{1, crowd, crowd + 1, 3*crowd*maxCrowds + 5} {
		var all sync.WaitGroup
		for range waiting {
			ch := n.wait()
			all.Go(func() { <-ch })
		}
		n.wake()
		after := n.wait()
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
		n.wait()
	}
	if len(n.crowds) > maxCrowds {
		t.Errorf("%d channels wait, at most %d may", len(n.crowds), maxCrowds)
	}
}

// TestNotifierWakesInOrder: who came first is woken at once, the others in the order in
// which they came.
func TestNotifierWakesInOrder(t *testing.T) {
	var n notifier
	var all []<-chan struct{}
	for range 10 * crowd {
		all = append(all, n.wait())
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
