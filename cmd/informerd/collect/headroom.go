package collect

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// headroom is how much garbage may lie about, in bytes. What a copy holds lives long, and
	// most of it is bytes that the collector need not look into: to let as much garbage lie
	// about as a large copy takes would double its memory for nothing.
	headroom = 224 << 20
	// often is the least percent of what is live, however much that is: each collection looks
	// at all of it.
	often = 20
	// step is what percentages are multiples of: every change stops the process for a moment.
	step = 5
	// lookInterval is the time between looks at what is live.
	lookInterval = 250 * time.Millisecond
)

// expected holds how many bytes are about to be live, see Expect.
var expected = make(chan uint64, 1)

// expectedFor is how long it is waited for them.
const expectedFor = 30 * time.Second

// Expect says that so many bytes are about to be read that stay: while they come, to look at all
// of them again and again would find hardly any garbage. So the next collection is due when
// there is as much, as far as half of the memory limit, and garbage is collected as usual
// then, or after half a minute. It is for a process that Bound is called for, at its start.
func Expect(bytes uint64) {
	select {
	case expected <- bytes:
	default:
	}
}

var (
	// tightened is how many ask for less garbage, see Tighten, and loosened when the last of them
	// ceased to, in nanoseconds.
	tightened atomic.Int32
	loosened  atomic.Int64
	// tightFor is for how long it is tight after that. A variable so that tests need not wait.
	tightFor = time.Minute
)

// Tighten has a quarter as much garbage lie about until loosen is called, which may be called more
// than once, and for a minute after: for a while much more is live than otherwise, as where a
// copy is made beside another, and whoever follows it reads and saves all of it again. All that
// is live is looked at more often for that.
func Tighten() (loosen func()) {
	tightened.Add(1)
	return sync.OnceFunc(func() {
		loosened.Store(time.Now().UnixNano())
		tightened.Add(-1)
	})
}

// isTight reports whether less garbage may lie about.
func isTight() bool {
	return tightened.Load() > 0 || time.Since(time.Unix(0, loosened.Load())) < tightFor
}

// Bound lets garbage lie about as usual, and less of it, for what is live, the more is live,
// and gives memory back that a process at rest does not need, until stop is called. Where GOGC
// says how much may lie about, nothing changes.
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
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	now := usual
	adapt := func(next int) {
		if next != now {
			set(next)
			now = next
		}
	}
	var patience time.Time // until when what is expected is waited for
	var goal uint64        // how many live bytes there are when it is there
	// Percentages are of what is live at each collection, so that they have to shrink with
	// what is still to come: otherwise the next goal would be as many times as large.
	look := func() {
		l := live()
		if time.Now().After(patience) || l >= goal {
			goal = 0
		}
		adapt(max(percentOf(l, isTight()), percentUntil(l, goal)))
	}
	var resting rest
	var quiet lull
	for {
		select {
		case <-ctx.Done():
			return
		case bytes := <-expected:
			patience, goal = time.Now().Add(expectedFor), live()+min(bytes, uint64(debug.SetMemoryLimit(-1))/2)
			look()
		case at := <-tick.C:
			look()
			if goal > 0 {
				resting, quiet = rest{}, lull{}
				continue
			}
			u := usageNow()
			early := quiet.due(u, now)
			if resting.due(at, u) {
				giveBack()
			} else if early {
				collectNow()
			}
		}
	}
}

// percentUntil is with how much garbage, in percent of so many live bytes, the next collection
// comes when there is as much as goal.
func percentUntil(live, goal uint64) int {
	if live >= goal {
		return 0
	}
	return int(min((goal-live)*100/max(live, leastHeap), most))
}

// leastHeap is the heap at which Go begins to collect with 100 %.
const leastHeap = 4 << 20

// most is the most percent that is set, which is without a limit for any copy.
const most = 1 << 20

// live is how many bytes the last collection found to be in use.
func live() uint64 {
	l := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(l)
	return l[0].Value.Uint64()
}

// percentOf is how much garbage may lie about beside so many live bytes, in percent of them.
func percentOf(live uint64, tight bool) int {
	room, least := uint64(headroom), often
	if tight {
		room, least = room/4, least/4
	}
	if live <= room*100/usual {
		return usual
	}
	return max(least, int(room*100/live)/step*step)
}
