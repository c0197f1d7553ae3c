package cache

import (
	"runtime"
	"time"
)

// Yielder lets goroutines that wait for a processor have this one, about once a millisecond, in
// the course of long work that nobody waits for. Without it a goroutine that computes keeps its
// processor for 10 ms (forcePreemptNS in Go's runtime/proc.go), and an event waits for it. It
// goes by the time, and not by what was done: where the others keep a processor for 10 ms, whoever
// gives way more often gets next to nothing done.
//
// The zero Yielder is ready. Not safe for concurrent use.
type Yielder struct{ since time.Time }

// yieldAfter is how long a processor is kept.
const yieldAfter = time.Millisecond

// Yield is called between two small parts of the work.
func (y *Yielder) Yield() {
	now := time.Now()
	switch {
	case y.since.IsZero():
		y.since = now
	case now.Sub(y.since) >= yieldAfter:
		runtime.Gosched()
		y.since = time.Now()
	}
}
