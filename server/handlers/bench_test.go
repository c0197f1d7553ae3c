package handlers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// BenchmarkPendingMemory is the memory of a key that waits, its name aside, which the copy
// has: bar 150 bytes.
func BenchmarkPendingMemory(b *testing.B) {
	const keys = 1_000_000
	all := make([]cache.Key, keys)
	for i := range all {
		all[i] = cache.Key{Namespace: "namespace", Name: strconv.Itoa(i)}
	}
	for b.Loop() {
		before := heap()
		m := NewManager(Options{})
		h := newRunning(m, claimHandler())
		l := h.lineLocked(lineKey{"c", things.GVR.GroupResource()})
		l.ready = true
		for _, k := range all {
			e := l.entryLocked(k)
			h.stayedLocked(e)
			h.pendLocked(e)
		}
		h.changed = map[*entry]struct{}{} // saved
		b.ReportMetric(float64(heap()-before)/keys, "B/key")
		h.queue.ShutDown()
		runtime.KeepAlive(h)
	}
	runtime.KeepAlive(all)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDelivery is the time from an event to its delivery, at 500 a second, with saves
// that take 3 ms.
func BenchmarkDelivery(b *testing.B) {
	w := newWorld(b)
	s := &timed{at: map[string]time.Time{}}
	h := handler(s)
	h.Concurrency = 8
	slow := func() error { time.Sleep(3 * time.Millisecond); return w.save(false) }
	w.manager = NewManager(Options{Caches: w, Ledgers: w, SaveNow: slow})
	if err := w.manager.Apply([]Handler{h}); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.manager.Run(ctx) }()
	w.idle()
	began := map[string]time.Time{}
	n := 0
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		n++
		o := w.truth.put(fmt.Sprint("o", n%5000), fmt.Sprint(n))
		began[strconv.Itoa(o.Version)] = time.Now()
		w.all()
	}
	b.StopTimer()
	w.idle()
	stop()
	<-done
	var took []time.Duration
	for version, at := range s.at {
		took = append(took, at.Sub(began[version]))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// timed notes when each version was delivered.
type timed struct {
	mu sync.Mutex // guards at
	at map[string]time.Time
}

func (s *timed) Deliver(_ context.Context, d *Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[d.ResourceVersion] = time.Now()
	return nil
}

func (*timed) Close() error { return nil }
