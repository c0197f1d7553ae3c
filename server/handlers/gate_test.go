package handlers

import (
	"testing"
	"time"
)

// TestOneOutageIsOneFailure: a sink that goes away while many deliveries are under way is
// tried again as soon as one that goes away while one is; each try that fails makes it wait
// twice as long.
func TestOneOutageIsOneFailure(t *testing.T) {
	var g gate
	now := time.Now()
	for i := range 8 {
		g.down(now.Add(time.Duration(i)*time.Millisecond), "gone", gateMax)
	}
	want := gateBase
	for range 4 {
		closed, wait := g.closed(now)
		if !closed || wait != want {
			t.Fatalf("closed: %v, for %s, want %s", closed, wait, want)
		}
		now = g.until
		if closed, _ := g.closed(now); closed {
			t.Fatal("it is not tried again")
		}
		g.pass()
		g.down(now, "gone", gateMax)
		want *= 2
	}
}
