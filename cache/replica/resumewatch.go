package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/informerd/informerd/cache"
)

// provingTimeout bounds the first watch after a start or an outage. The server
// sends a bookmark two seconds before the end of a watch, so a short one proves
// soon that nothing was missed; an unbounded one would take a minute
// (kube-apiserver cacher/cache_watcher.go, nextBookmarkTime). A watch of two seconds
// would get none.
const provingTimeout = int64(3)

const (
	// watchTimeout bounds a watch that brings bookmarks.
	watchTimeout = int64(300)
	// bareTimeout bounds one that does not, in seconds: of what the API server keeps
	// no watch cache of, and of aggregated APIs that send none. Its end at its
	// timeout, or the list after it, is the only proof there is, so it has to come
	// within a lease.
	bareTimeout = int64(60)
)

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
	// reading is the streaming list that is on its way in, and release ends it.
	reading *reading
	release func()

	// arrivals date what the open stream brings.
	arrivals arrivals
	// claims are bookmarks of versions that the server is being asked to confirm.
	claims claims
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
	reading, err := s.beginList(ctx)
	if err != nil {
		return nil, err
	}
	s.begin() // only now: how long it had to wait says nothing of how old its objects are
	w := s.newResumeWatch(ctx, opts)
	w.initial = true
	w.reading = reading
	w.release = sync.OnceFunc(func() { s.endList(reading) })
	stream, err := s.openWatch(w.ctx, w.opts)
	if err != nil {
		w.cancel()
		w.release()
		return nil, err
	}
	s.listErr, s.streaming = nil, w
	go w.run(stream)
	return w, nil
}

func (s *source) newResumeWatch(ctx context.Context, opts metav1.ListOptions) *resumeWatch {
	s.selectors(&opts)
	opts.AllowWatchBookmarks = true
	if opts.TimeoutSeconds == nil {
		opts.TimeoutSeconds = ptr.To(watchTimeout)
	}
	w := &resumeWatch{
		src: s, opts: opts, timeout: *opts.TimeoutSeconds,
		result:  make(chan apiwatch.Event),
		done:    make(chan struct{}),
		release: func() {},
		claims:  claims{answers: make(chan claim)},
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
	defer w.claims.asking.Wait()
	defer w.cancel()
	re := newReopening(w)
	for {
		if stream == nil {
			if stream = re.open(); stream == nil {
				return
			}
		}
		more := w.forward(stream, re)
		stream.Stop()
		re.ended = time.Now()
		if !more {
			return
		}
		stream = nil
	}
}

// forward delivers the events of one connection. It reports whether the watch
// is to be continued on another.
func (w *resumeWatch) forward(stream apiwatch.Interface, re *reopening) bool {
	silence := w.silence()
	defer silence.Stop()
	w.arrivals = arrivals{pulse: w.src.pulse, opened: re.opened}
	w.arrivals.paused(re.opened, time.Now())
	for {
		left := time.Now()
		select {
		case <-w.ctx.Done():
			return false
		case demand := <-w.src.relist:
			w.src.demand = demand
			w.endExpired(demand.reason)
			return false
		case <-w.src.renew:
			re.regular = true
			re.prove = true
			return w.resumable()
		case <-silence.C:
			return w.silent(re)
		case c := <-w.claims.answers:
			came := time.Now()
			if !w.answered(c) {
				return false
			}
			w.arrivals.paused(came, time.Now())
			if c.refuted() && !cache.Newer(c.version, w.version) {
				// The copy itself has what etcd has not: that is judged.
				re.regular = false
				return w.resumable()
			}
		case event, ok := <-stream.ResultChan():
			if !ok {
				return w.closed(re)
			}
			came := time.Now()
			w.arrivals.waited(left, came)
			if event.Type == apiwatch.Error {
				return w.failed(event, re)
			}
			if event.Type == apiwatch.Bookmark && !w.behind(event) {
				silence.Reset(w.src.lease)
			}
			if more, end := w.deliver(event, re); end {
				return more
			}
			if event.Type == apiwatch.Bookmark && time.Since(re.opened) >= quickEnd {
				re.reset() // it is good for something
			}
			w.arrivals.paused(came, time.Now())
		}
	}
}

// behind reports whether a bookmark is of a version that the copy has passed. It proves
// nothing, and a server that sends only such ones is as good as silent.
func (w *resumeWatch) behind(event apiwatch.Event) bool {
	it, ok := event.Object.(*item)
	return ok && !w.initial && cache.Older(it.resourceVersion, w.version)
}

// silence fires when the server has sent no bookmark of use for a lease, on a watch
// that has to bring them.
func (w *resumeWatch) silence() *time.Timer {
	if w.initial || !w.src.bringsBookmarks() {
		return time.NewTimer(time.Hour)
	}
	return time.NewTimer(w.src.lease)
}

// bringsBookmarks reports whether the server sends bookmarks of the resource: it
// does of what it keeps a watch cache of, and some aggregated APIs do.
func (s *source) bringsBookmarks() bool {
	return s.bookmarked.Load() || !s.spec.Aggregated && !isUncached(s.spec.GVR.GroupResource())
}

// silent gives up a connection on which nothing proves the copy current any more:
// the server at its other end may be frozen, or cut off, and another may be behind
// the same address.
func (w *resumeWatch) silent(re *reopening) bool {
	w.src.note(errSilent)
	re.failed = true
	return w.resumable()
}

// errSilent is a network error, so that it is taken for one.
var errSilent = fmt.Errorf("the watch brought no bookmark: %w", errLate)

// deliver hands one event on. end says that the stream is to be left, more whether
// the watch goes on.
func (w *resumeWatch) deliver(event apiwatch.Event, re *reopening) (more, end bool) {
	it, ok := event.Object.(*item)
	switch {
	case !ok:
		return true, false
	case it.fault(event.Type) != nil:
		return w.undecodable(it.fault(event.Type), re)
	case event.Type == apiwatch.Bookmark:
		return false, !w.bookmark(it, event)
	}
	if !w.send(event) || w.initial && w.reading.took(it.obj.Size()) != nil {
		return false, true
	}
	if !w.initial {
		// The differences that another informerd tells may have versions of before, from
		// which it cannot be resumed. An aggregated API, which is not resumed, may begin
		// anew with its versions.
		if w.src.spec.Aggregated || !cache.Older(it.resourceVersion, w.version) {
			w.version = it.resourceVersion
		}
		if w.src.undecodable != "" && w.version != w.src.undecodable {
			w.src.undecodable = ""
		}
	}
	return true, false
}

// undecodable is about an event that the decoder refuses. The watch begins again
// before it: what was broken on its way comes whole then. What is still broken is
// the server's, and the resource is listed anew; meanwhile the copy is in doubt,
// since it may lack the object or have an old one.
func (w *resumeWatch) undecodable(fault error, re *reopening) (more, end bool) {
	if w.initial {
		w.src.undecoded(fault)
		return true, false
	}
	if again := w.src.undecodable != "" && w.src.undecodable == w.version; !again {
		w.src.undecodable = w.version
		w.src.log.Warn("an event cannot be decoded, watching again from before it", "resourceVersion", w.version, "err", fault)
		w.src.note(fmt.Errorf("an event cannot be decoded: %w", fault))
		re.failed = true
		return w.resumable(), true
	}
	w.src.undecodable = ""
	w.src.undecoded(fault)
	w.endExpired(fmt.Sprintf("an event cannot be decoded, relisting: %v", fault))
	return false, true
}

// bookmark is about a word of the server that it has sent everything up to a
// version. It reports false when the watch was stopped.
func (w *resumeWatch) bookmark(it *item, event apiwatch.Event) bool {
	if w.initial {
		if it.initialEventsEnd {
			w.initial = false
			w.release()
			w.src.asked, w.src.copied = w.src.asked.Add(-it.age), it.copied
		}
		if !w.send(event) { // the sink says live, once the store has them
			return false
		}
		w.version = it.resourceVersion
		return true
	}
	w.src.bookmarked.Store(true)
	if w.behind(event) {
		return true
	}
	c := claim{version: it.resourceVersion, told: w.arrivals.date(time.Now()).Add(-it.age), copied: it.copied}
	if w.src.spec.Aggregated || c.copied || w.src.confirmed(c.version) {
		return w.prove(c)
	}
	w.claims.ask(w.ctx, w.src, c)
	return true
}

// prove sends on a bookmark that is believed. Events after it may have been sent
// before: then it proves what it says, and the version is theirs.
func (w *resumeWatch) prove(c claim) bool {
	if cache.Newer(c.version, w.version) {
		w.version = c.version
	}
	w.src.promise(promise{w.version, c.told, c.copied})
	return w.send(apiwatch.Event{Type: apiwatch.Bookmark, Object: &item{resourceVersion: w.version}})
}

// answered is about a bookmark that the server was asked to confirm. One from the
// future of its own etcd is not believed: what a copy says it is complete up to is
// passed on, and waited for.
func (w *resumeWatch) answered(c claim) bool {
	switch {
	case c.err != nil:
		w.src.cluster.report(c.err)
	case c.confirmed:
		return w.prove(c)
	case cache.Newer(c.version, w.version):
		w.src.log.Warn("a bookmark is beyond what the API server has reached, ignored", "resourceVersion", c.version)
	}
	return true
}

// closed decides what a stream that ended without an error means.
func (w *resumeWatch) closed(re *reopening) bool {
	if w.initial {
		return false // the Reflector starts the streaming list again
	}
	lasted, asked := time.Since(re.opened), time.Duration(w.timeout)*time.Second
	re.regular = lasted >= asked-500*time.Millisecond && lasted <= asked+lateEnd
	if !re.regular {
		re.failed = lasted < quickEnd
		return w.resumable()
	}
	re.reset()
	w.src.known = re.opened.Add(asked)
	// The server ends a watch at its timeout after sending all it has. Where it sends
	// no bookmarks there is no other proof.
	if !w.src.bringsBookmarks() && !w.prove(claim{version: w.version, told: re.opened.Add(asked)}) {
		return false
	}
	return w.resumable()
}

// lateEnd is how much later than asked for a stream may end and still have been ended by
// its server. The end of one that was held on its way comes with whatever held it, and
// etcd may have been restored meanwhile.
const lateEnd = 2 * time.Second

// quickEnd is how long a stream has to last for the next one to be opened at once.
const quickEnd = 2 * time.Second

// failed decides what an error event means: only an expired version is the
// Reflector's business, all else is retried from the last version.
func (w *resumeWatch) failed(event apiwatch.Event, re *reopening) bool {
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
	re.failed = true
	w.src.note(err)
	return w.resumable()
}

// resumable reports whether the watch may go on from its last version. Some
// aggregated API servers accept any version and then miss what happened before,
// so their resources are relisted instead.
func (w *resumeWatch) resumable() bool {
	if w.src.spec.Aggregated {
		// What is held stays as current as it was: nothing is known to be wrong.
		w.relist("watch of an aggregated API ended, relisting")
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

// endExpired relists what is not current any more, or not known to be.
func (w *resumeWatch) endExpired(reason string) {
	w.src.breakPromise()
	w.src.update(func(h *standing) { h.doubted(errors.New(reason)) })
	w.relist(reason)
}

// relist ends the watch with the one error after which the Reflector relists
// (reflector.go, watch).
func (w *resumeWatch) relist(reason string) {
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
