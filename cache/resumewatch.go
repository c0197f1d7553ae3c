package cache

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// provingTimeout bounds the first watch after a start or an outage. The server
// sends a bookmark two seconds before the end of a watch, so a short one proves
// soon that nothing was missed; an unbounded one would take a minute
// (kube-apiserver cacher/cache_watcher.go, nextBookmarkTime).
const provingTimeout = int64(4)

// resumeWatch is a watch that outlives its connections. client-go's Reflector
// relists on any error but a few; a 503, a 401, a reset or a stream cut early
// would each cost the API server a full list. Here they cost a watch from the
// last resourceVersion seen, and the Reflector hears of a 410 only.
//
// It promises to deliver every event after the version it started from once and
// in order, or an error event that makes the Reflector relist.
type resumeWatch struct {
	src    *source
	result chan apiwatch.Event
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	version string // of the last event delivered; only run touches it
	opts    metav1.ListOptions
	// timeout is what the open stream was asked to last, in seconds.
	timeout int64
	// initial holds during the initial events of a streaming list: they come in
	// no order of versions, so a cut there cannot be resumed.
	initial bool
	release func() // gives back the place among the syncs
}

// watch continues from opts.ResourceVersion.
func (s *source) watch(ctx context.Context, opts metav1.ListOptions) apiwatch.Interface {
	w := s.newResumeWatch(ctx, opts)
	w.version = opts.ResourceVersion
	go w.run(nil)
	return w
}

// watchList opens a streaming list.
func (s *source) watchList(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	s.update(func(h *health) { h.relisting = true })
	w := s.newResumeWatch(ctx, opts)
	w.initial = true
	w.release = sync.OnceFunc(s.release)
	stream, err := s.openWatch(w.ctx, w.opts)
	if err != nil {
		w.cancel()
		w.release()
		return nil, err
	}
	s.cluster.report(nil)
	s.listErr = nil
	go w.run(stream)
	return w, nil
}

func (s *source) newResumeWatch(ctx context.Context, opts metav1.ListOptions) *resumeWatch {
	s.selectors(&opts)
	opts.AllowWatchBookmarks = true
	if opts.TimeoutSeconds == nil {
		opts.TimeoutSeconds = ptr.To(int64(300))
	}
	w := &resumeWatch{
		src: s, opts: opts, timeout: *opts.TimeoutSeconds,
		result:  make(chan apiwatch.Event),
		done:    make(chan struct{}),
		release: func() {},
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

func (w *resumeWatch) ResultChan() <-chan apiwatch.Event { return w.result }

// Stop ends the watch and waits for its goroutine.
func (w *resumeWatch) Stop() {
	w.cancel()
	<-w.done
}

// run owns the result channel and closes it.
func (w *resumeWatch) run(stream apiwatch.Interface) {
	defer close(w.done)
	defer close(w.result)
	defer w.release()
	defer w.cancel()
	backoff := &reopenBackoff{retry: w.src.retry}
	backoff.reset()
	for {
		if stream == nil {
			if stream = w.reopen(backoff); stream == nil {
				return
			}
		}
		more := w.forward(stream, backoff)
		stream.Stop()
		if !more {
			return
		}
		stream = nil
	}
}

// forward delivers the events of one connection. It reports whether the watch
// is to be continued on another.
func (w *resumeWatch) forward(stream apiwatch.Interface, backoff *reopenBackoff) bool {
	opened, events := time.Now(), 0
	for {
		select {
		case <-w.ctx.Done():
			return false
		case <-w.src.relist:
			w.src.mending = true
			w.endExpired("verification found differences, relisting")
			return false
		case event, ok := <-stream.ResultChan():
			if !ok {
				return w.closed(opened, events, backoff)
			}
			events++
			if event.Type == apiwatch.Error {
				return w.failed(event, backoff)
			}
			backoff.reset()
			if event.Type == apiwatch.Bookmark {
				w.bookmark(event)
			}
			if !w.deliver(event) {
				return false
			}
		}
	}
}

// deliver hands one event on. An object that could not be decoded is counted and
// its version passed on as a bookmark, so that the stream goes on after it.
func (w *resumeWatch) deliver(event apiwatch.Event) bool {
	it, ok := event.Object.(*item)
	if !ok {
		return true
	}
	if it.err != nil {
		w.src.undecoded(it.err)
		if it.resourceVersion == "" || w.initial {
			return true
		}
		event = apiwatch.Event{Type: apiwatch.Bookmark, Object: &item{resourceVersion: it.resourceVersion}}
	}
	if !w.send(event) {
		return false
	}
	if !w.initial {
		w.version = it.resourceVersion
		w.src.touch()
	}
	return true
}

// bookmark notes that the server has sent everything up to a version.
func (w *resumeWatch) bookmark(event apiwatch.Event) {
	it, ok := event.Object.(*item)
	if !ok {
		return
	}
	if w.initial {
		if it.initialEventsEnd {
			w.initial = false
			w.release()
		}
		return // the sink says live, once the store has them
	}
	w.src.promise(it.resourceVersion)
}

// closed decides what a stream that ended without an error means.
func (w *resumeWatch) closed(opened time.Time, events int, backoff *reopenBackoff) bool {
	if w.initial {
		return false // the Reflector starts the streaming list again
	}
	lasted := time.Since(opened)
	if events == 0 && lasted < time.Second {
		backoff.failed = true // accepted and closed at once: do not spin
		return w.resumable()
	}
	backoff.reset()
	// The server ends a watch at its timeout after sending all it has. That is
	// as good a proof as a bookmark, and the only one on an idle server.
	if lasted >= time.Duration(w.timeout)*time.Second-500*time.Millisecond {
		w.src.promise(w.version)
		if !w.send(apiwatch.Event{Type: apiwatch.Bookmark, Object: &item{resourceVersion: w.version}}) {
			return false
		}
	}
	return w.resumable()
}

// failed decides what an error event means: only an expired version is the
// Reflector's business, all else is retried from the last version.
func (w *resumeWatch) failed(event apiwatch.Event, backoff *reopenBackoff) bool {
	err := apierrors.FromObject(event.Object)
	if w.initial {
		w.src.note(err)
		w.send(event)
		return false
	}
	if isExpired(err) {
		w.expired()
		return false
	}
	backoff.failed = true
	w.src.note(err)
	return w.resumable()
}

// resumable reports whether the watch may go on from its last version. Some
// aggregated API servers accept any version and then miss what happened before,
// so their resources are relisted instead.
func (w *resumeWatch) resumable() bool {
	if w.src.spec.Aggregated {
		w.endExpired("watch of an aggregated API ended, relisting")
		return false
	}
	return true
}

// expired tells the Reflector to relist because the server said 410.
func (w *resumeWatch) expired() {
	w.src.count.expired.Add(1)
	w.src.log.Debug("resourceVersion expired, relisting", "resourceVersion", w.version)
	w.endExpired("resourceVersion expired, relisting")
}

// endExpired ends the watch with the one error after which the Reflector relists
// from the last resourceVersion on (reflector.go, watch).
func (w *resumeWatch) endExpired(reason string) {
	w.src.update(func(h *health) { h.current, h.promised, h.err = false, "", errors.New(reason) })
	status := apierrors.NewResourceExpired(reason).Status()
	w.send(apiwatch.Event{Type: apiwatch.Error, Object: &status})
}

// send reports false when the watch was stopped before the event was taken.
func (w *resumeWatch) send(event apiwatch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// reopen watches again from the last version until it gets a stream. It returns
// nil when the watch is over.
func (w *resumeWatch) reopen(backoff *reopenBackoff) apiwatch.Interface {
	for {
		if !backoff.wait(w.ctx) {
			return nil
		}
		if (backoff.outage || w.src.epoch != w.src.cluster.configured()) && !w.sameHistory(backoff) {
			if w.ctx.Err() != nil {
				return nil
			}
			continue
		}
		stream, err := w.src.openWatch(w.ctx, w.options())
		if err == nil {
			w.src.count.restarts.Add(1)
			w.src.cluster.report(nil)
			w.src.accepted()
			return stream
		}
		if w.ctx.Err() != nil {
			return nil
		}
		if isExpired(err) {
			w.expired()
			return nil
		}
		backoff.failed = true
		backoff.outage = true
		w.src.note(err)
	}
}

// sameHistory makes sure, after an outage or with another configuration, that the
// server that answers now is the one it was and has not gone back in time. It
// reports whether the watch may be reopened.
func (w *resumeWatch) sameHistory(backoff *reopenBackoff) bool {
	epoch := w.src.cluster.configured()
	err := w.src.sameHistory(w.ctx, w.version)
	if errors.Is(err, errOtherHistory) {
		w.src.end(err)
		w.cancel()
		return false
	}
	if err != nil {
		backoff.failed = true
		w.src.note(err)
		return false
	}
	backoff.outage, w.src.epoch = false, epoch
	return true
}

// options are those of a plain watch from the last version: a short one as long
// as the copy is not known to be current.
func (w *resumeWatch) options() metav1.ListOptions {
	w.timeout = provingTimeout
	if w.src.get().current {
		w.timeout = *w.opts.TimeoutSeconds
	}
	opts := metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true, TimeoutSeconds: &w.timeout}
	w.src.selectors(&opts)
	return opts
}

func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.ReasonForError(err) == metav1.StatusReasonExpired ||
		statusCode(err) == http.StatusGone
}

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// promise notes that the bookmark of a version proves the copy current. It does
// when the sink has it: events before it may still be on their way to the store.
func (s *source) promise(version string) {
	s.mu.Lock()
	s.health.promised = version
	s.mu.Unlock()
}

// prove notes that the copy was current just now, if the bookmark that the sink
// has is the one promised, and nothing has failed since.
func (s *source) prove(version string) {
	s.update(func(h *health) {
		if h.promised != version || version == "" {
			return
		}
		h.proven, h.current, h.forbidden, h.permanent = true, true, false, false
		h.contact, h.promised, h.err = time.Now(), "", nil
	})
}

// touch notes an event: the copy is as fresh as it, if it was current before.
func (s *source) touch() {
	now := time.Now()
	s.mu.Lock()
	s.health.contact = now
	s.mu.Unlock()
}

// reopenBackoff waits between attempts to reopen a watch. The first one after a
// regular end is immediate.
type reopenBackoff struct {
	wait.Backoff
	retry  retry
	failed bool // the last attempt failed: wait before the next
	outage bool // the server could not be reached: check its history first
}

// reset starts anew, after a connection that was good for something.
func (b *reopenBackoff) reset() { b.Backoff = b.retry.backoff() }

// wait reports false when ctx ended.
func (b *reopenBackoff) wait(ctx context.Context) bool {
	if !b.failed {
		return ctx.Err() == nil
	}
	b.failed = false
	t := time.NewTimer(b.Step())
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
