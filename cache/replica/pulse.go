package replica

import (
	"context"
	"sync"
	"time"
)

const (
	// beatPause is the time between two beats of a pulse.
	beatPause = 250 * time.Millisecond
	// missedBeat is how late a beat is if the process did not run: it was stopped, or the
	// machine had no time for it.
	missedBeat = time.Second
)

// pulse knows when the process was last held up. What other processes sent meanwhile
// waits in the kernel and looks as if it had just come; clocks go on. A nil pulse knows
// of nothing. It is safe for concurrent use.
type pulse struct {
	mu       sync.Mutex // guards all below
	beat     time.Time  // the last one; zero before the first
	from, to time.Time  // the last hold-up; zero if there was none
}

// run beats until ctx ends.
func (p *pulse) run(ctx context.Context) {
	p.start(time.Now())
	for sleep(ctx, beatPause) {
		p.heldUp(time.Now())
	}
}

func (p *pulse) start(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat = now
}

// heldUp is when the process was last held up, as of now. It finds out about a hold-up
// that has just ended as the next beat would: whoever asks may be the first to run again.
func (p *pulse) heldUp(now time.Time) (from, to time.Time) {
	if p == nil {
		return time.Time{}, time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.beat)
	if p.beat.IsZero() || since < beatPause {
		return p.from, p.to
	}
	if since >= beatPause+missedBeat {
		p.from, p.to = p.beat, now
	}
	p.beat = now
	return p.from, p.to
}
