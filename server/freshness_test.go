package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestLeaseWhileWaiting: an answer that waited says what its copy is worth when it is
// given, state and age alike.
func TestLeaseWhileWaiting(t *testing.T) {
	view := &cache.View{State: cache.Live, Proof: time.Now().Add(-77 * time.Second), Lease: 75 * time.Second}
	h := http.Header{}
	setFreshness(h, view, "5")
	if state := h.Get(cache.StateHeader); state != string(cache.Stale) || h.Get("Warning") == "" {
		t.Errorf("at the age of %s it is %s, warned of by %q", h.Get(cache.AgeHeader), state, h.Get("Warning"))
	}
}
