package collect

import (
	"context"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// headroom is how much garbage may lie about, in bytes. What a copy holds lives long, and
	// most of it is bytes that the collector need not look into: to let as much garbage lie
	// about as a large copy takes would double its memory for nothing.
	headroom = 256 << 20
	// often is the least percent of what is live, however much that is: each collection looks
	// at all of it.
	often = 20
	// step is what percentages are multiples of: every change stops the process for a moment.
	step = 5
	// lookInterval is the time between looks at what is live.
	lookInterval = 250 * time.Millisecond
)

// Bound lets garbage lie about as usual, and less of it, for what is live, the more is live,
// until stop is called. Where GOGC says how much may, nothing changes.
func Bound() (stop func()) {
	AsUsual()
	if told() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() { look(ctx) })
	return func() { cancel(); looking.Wait() }
}

func look(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for now := usual; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(live)
		if next := percentOf(live[0].Value.Uint64()); next != now {
			set(next)
			now = next
		}
	}
}

// percentOf is how much garbage may lie about beside so many live bytes, in percent of them.
func percentOf(live uint64) int {
	if live <= headroom*100/usual {
		return usual
	}
	return max(often, int(headroom*100/live)/step*step)
}
