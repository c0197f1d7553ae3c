package handlers

import (
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestLanesAfterWait: a wait ends without the lock of the handler, whatever happens to the key
// meanwhile. It is for the race detector.
func TestLanesAfterWait(t *testing.T) {
	h := newRunning(NewManager(Options{}), claimHandler())
	defer h.queue.ShutDown()
	e := h.lineLocked(lineKey{"c", things.GVR.GroupResource()}).newEntry(cache.Key{Namespace: "ns", Name: "a"})
	h.queue.AddAfter(e, 5*time.Millisecond)
	for {
		h.mu.Lock()
		e.set(again)
		e.clear(again)
		h.mu.Unlock()
		select {
		case <-h.some:
			return
		default:
		}
	}
}
