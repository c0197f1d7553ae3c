package handlers

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"github.com/informerd/informerd/cache"
)

// running is one handler as it runs: its lines, its keys, and who delivers them.
type running struct {
	m    *Manager
	name string
	// some is told, without waiting, when there may be a key to take.
	some chan struct{}
	// removed ends when the handler is taken out of the configuration: who waits for a claim
	// of it waits for nothing.
	removed context.Context
	remove  context.CancelFunc

	mu      sync.Mutex // guards all below, and the keys of its lines
	spec    Handler
	limiter *rate.Limiter
	lines   map[lineKey]*line
	stops   map[lineKey]context.CancelFunc
	queue   workqueue.TypedDelayingInterface[*entry]
	gate    gate
	claims  map[string]*claim
	began   map[*entry]time.Time // deliveries under way
	meta    meta
	pending int // keys to deliver, dead ones included
	dead    map[*entry]struct{}
	counts  counts
	waits   waits

	// What the ledger does not have yet.
	changed map[*entry]struct{}
	moved   map[*line]struct{}
	anew    bool // all of it
	noted   bool // meta
	erase   bool // what is replaced must not be kept

	unread error // why what is saved of it could not be read yet: it waits

	ctx    context.Context // of all that runs; nil: nothing does
	begun  bool            // what the ledger must know before the first delivery is saved
	stop   context.CancelFunc
	retire context.CancelFunc // ends the workers of the sink

	lineWork, workers sync.WaitGroup
}

// meta is what is saved of a handler as a whole.
type meta struct {
	// Born is when the handler was first loaded.
	Born time.Time `json:"born"`
	// Salt is part of every digest. It never changes, and nobody else knows it.
	Salt []byte `json:"salt,omitempty"`
	// Sequence is of the last delivery.
	Sequence uint64 `json:"sequence"`
	Paused   bool   `json:"paused,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it is paused
}

func newRunning(m *Manager, spec Handler) *running {
	h := &running{
		m: m, name: spec.Name, spec: spec,
		some:    make(chan struct{}, 1),
		lines:   map[lineKey]*line{},
		stops:   map[lineKey]context.CancelFunc{},
		claims:  map[string]*claim{},
		began:   map[*entry]time.Time{},
		counts:  counts{observed: m.metrics.of(spec.Name)},
		dead:    map[*entry]struct{}{},
		changed: map[*entry]struct{}{},
		moved:   map[*line]struct{}{},
		meta:    meta{Born: time.Now().UTC(), Salt: []byte(rand.Text())},
		noted:   true,
	}
	h.removed, h.remove = context.WithCancel(context.Background())
	h.limiter = newLimiter(spec)
	h.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*entry]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[*entry]{Queue: &lanes{pushed: h.signal}}),
	})
	return h
}

func newLimiter(spec Handler) *rate.Limiter {
	if spec.Rate <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(spec.Rate), max(1, int(spec.Rate)))
}

// signal says that there may be a key to take.
func (h *running) signal() {
	select {
	case h.some <- struct{}{}:
	default:
	}
}

// asked is what the handler asks now.
func (h *running) asked() *Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	spec := h.spec
	return &spec
}

func (h *running) salt() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meta.Salt
}

func (h *running) isSelected(l *line, k cache.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := l.keys.find(k)
	return e != nil && (e.is(selected) || e.told != untold)
}

// start runs the handler until its context ends.
func (h *running) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.stop = context.WithCancel(ctx)
	h.lineWork.Go(func() { h.findLines(h.ctx) })
	h.lineWork.Go(func() { h.begin(h.ctx) })
	h.startWorkersLocked()
}

// begin lets deliveries begin once the numbers that they will have are saved as taken: a
// restart goes on after them, even if it ends before anything else was saved.
func (h *running) begin(ctx context.Context) {
	if h.durable(ctx) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	h.signal()
}

// end stops the handler and its sink, and returns when nothing of it runs.
func (h *running) end() {
	h.halt()
	if sink := h.asked().Sink; sink != nil {
		_ = sink.Close()
	}
}

// halt is end, but for the sink.
func (h *running) halt() {
	if h.stop != nil {
		h.stop()
	}
	h.lineWork.Wait()
	h.workers.Wait()
	h.mu.Lock()
	for _, c := range h.claims {
		c.timer.Stop()
	}
	h.mu.Unlock()
	h.queue.ShutDown()
}

// resourcesInterval is how often a handler looks for resources that came or went.
const resourcesInterval = time.Second

// findLines follows every resource that the handler names.
func (h *running) findLines(ctx context.Context) {
	for ctx.Err() == nil {
		h.matchLines(ctx)
		sleep(ctx, resourcesInterval)
	}
	h.mu.Lock()
	stops := h.stops
	h.stops = map[lineKey]context.CancelFunc{}
	h.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

func (h *running) matchLines(ctx context.Context) {
	spec := h.asked()
	wanted := h.m.options.Caches.Match(spec.Clusters, spec.Resources)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil || ctx.Err() != nil {
		return
	}
	for _, r := range wanted {
		h.lineLocked(lineKey{r.Cluster, r.GVR.GroupResource()})
	}
	for key, l := range h.lines {
		if _, runs := h.stops[key]; runs {
			continue
		}
		run, stop := context.WithCancel(h.ctx)
		h.stops[key] = stop
		h.lineWork.Go(func() { l.run(run) })
	}
}

func (h *running) lineLocked(key lineKey) *line {
	l := h.lines[key]
	if l == nil {
		l = &line{h: h, key: key, state: lineWaiting, reason: "not looked at yet"}
		h.lines[key] = l
	}
	return l
}

// change takes over another question or another sink.
func (h *running) change(next Handler) {
	h.mu.Lock()
	old := h.spec
	h.spec = next
	h.dropLinesLocked()
	if next.SinkDigest == old.SinkDigest {
		h.spec.Sink = old.Sink // what it was made of is the same
	}
	h.mu.Unlock()
	if next.SinkDigest == old.SinkDigest {
		if next.Sink != nil && next.Sink != old.Sink {
			_ = next.Sink.Close()
		}
		return
	}
	h.replaceWorkers(old, next)
}

// dropLinesLocked forgets the lines of resources that are not asked for any more. What was
// delivered of them is forgotten without an end: they did not leave, they are not asked for.
// One that is asked for and not known now stays: its objects may have gone, or nobody has told
// yet.
func (h *running) dropLinesLocked() {
	for key, l := range h.lines {
		if h.m.options.Caches.Names(h.spec.Clusters, h.spec.Resources, key.cluster, key.GroupResource) {
			continue
		}
		if stop := h.stops[key]; stop != nil {
			stop()
			delete(h.stops, key)
		}
		l.keys.each(h.forgetLocked)
		l.cursor = cursor{}
		h.moved[l] = struct{}{}
		delete(h.lines, key)
	}
}

// droppedLocked reports whether the resource is not asked for any more. Who runs the line may
// not have noticed yet, and must not find anything for it to deliver.
func (l *line) droppedLocked() bool { return l.h.lines[l.key] != l }

func (h *running) replaceWorkers(old, next Handler) {
	h.mu.Lock()
	retire := h.retire
	h.mu.Unlock()
	if retire != nil {
		retire()
		h.workers.Wait()
	}
	if old.Sink != nil {
		_ = old.Sink.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limiter = newLimiter(next)
	h.gate = gate{}
	h.startWorkersLocked()
	h.signal()
}
