package handlers

import (
	"fmt"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestWaitsAreNotLookedForAllTheTime: who asks for the status of a handler over and over does not
// hold up its deliveries by looking at all keys, and what is counted on the way is right.
func TestWaitsAreNotLookedForAllTheTime(t *testing.T) {
	h := newRunning(NewManager(Options{}), claimHandler())
	defer h.queue.ShutDown()
	l := h.lineLocked(lineKey{"c", things.GVR.GroupResource()})
	for i := range 100 {
		e := l.entryLocked(cache.Key{Namespace: "ns", Name: fmt.Sprint("o", i)})
		if i%2 == 0 {
			e.tell(unsure)
			e.tell(digest(7 + i))
		}
		if i >= 90 {
			h.pendLocked(e)
		}
		if i >= 97 {
			e.with().attempts = 1
		}
	}
	s := h.status()
	if s.Known != 50 || s.Pending != 10 || s.Retrying != 3 || s.OldestSeconds < 0 {
		t.Errorf("status %+v", s)
	}
	h.waits.until = time.Now().Add(time.Hour)
	l.keys.each(func(e *entry) { e.with().attempts = 1 })
	if s = h.status(); s.Retrying != 3 {
		t.Errorf("all keys were looked at again: %+v", s)
	}
	h.waits.until = time.Time{}
	if s = h.status(); s.Retrying != 10 {
		t.Errorf("status %+v", s)
	}
	l.keys.each(h.forgetLocked)
	if s = h.status(); s.Known != 0 || s.Pending != 0 || s.Retrying != 0 || s.OldestSeconds != 0 {
		t.Errorf("status %+v", s)
	}
}
