package main

import "time"

// quietTimer runs out when nothing has happened for a while, or has happened for
// long: where somebody writes a log it is never quiet. It belongs to one
// goroutine.
type quietTimer struct {
	*time.Timer
	pause   time.Duration // without anything
	longest time.Duration // after the first of what happened
	first   time.Time     // zero: nothing happened since it ran out
}

func newQuietTimer(pause, longest time.Duration) *quietTimer {
	t := &quietTimer{Timer: time.NewTimer(0), pause: pause, longest: longest}
	t.Stop()
	return t
}

// disturb notes that something happened.
func (t *quietTimer) disturb() {
	if t.first.IsZero() {
		t.first = time.Now()
	}
	t.Reset(min(t.pause, time.Until(t.first.Add(t.longest))))
}

// ranOut begins anew. Call it after receiving from C.
func (t *quietTimer) ranOut() { t.first = time.Time{} }
