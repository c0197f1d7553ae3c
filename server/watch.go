package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

const (
	// stateInterval is how often a stream looks for a change of state.
	stateInterval = time.Second
	// selectTries bounds how often the initial state is taken anew because the
	// store moved on beyond its ring of events meanwhile.
	selectTries = 3
)

// watcher is one event stream: what it watches, where it stands and what it has
// said. It belongs to the goroutine of its request.
type watcher struct {
	*viewed // as of the beginning
	server  *Server
	rights  *rights
	query   *query
	matcher *cache.Matcher
	sub     *cache.Subscription
	out     *eventWriter
	facets  *retold // nil: not asked for

	state   cache.State  // last told
	told    string       // last version told in an id
	toldAt  time.Time    // when
	checked time.Time    // when state was last looked at
	faults  cache.Faults // not told yet

	ahead string    // the version of the client, while the copy has not reached it
	askAt time.Time // when to ask the API server whether it ever was
	mayBe bool      // it has said that it was not undone
}

// beginning is what a stream starts with.
type beginning struct {
	resync  bool          // the version to resume from is gone
	initial *cache.Result // objects to send first; nil when resuming
}

// watchObjects streams the objects that q selects and their changes. Errors
// found before the first byte are plain HTTP answers, later ones ERROR events.
func (s *Server) watchObjects(w http.ResponseWriter, r *http.Request, q *query, find func() (*viewed, error)) error {
	if err := negotiate(w, r, typeEvents); err != nil {
		return err
	}
	res, err := find()
	if err != nil {
		return err
	}
	if err := checkNamespaces(w, res, q.Namespaces); err != nil {
		return err
	}
	release, err := s.takeStream(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()

	ctx, cancel := s.watchContext(r, q)
	defer cancel()
	watch := &watcher{viewed: res, server: s, rights: newRights(res.who), query: q, state: res.view.State, facets: s.watchedFacets(q)}
	start, err := watch.begin(ctx, r)
	if err != nil {
		return err
	}
	defer watch.sub.Close()
	h := w.Header()
	setFreshness(h, res.view, watch.sub.Version())
	setEventHeaders(h)
	if r.Method == http.MethodHead {
		return nil
	}
	watch.out = newEventWriter(w, r, q.view)
	watch.out.mark = res.mark()
	if err := watch.run(ctx, start); err != nil {
		return &abortError{err}
	}
	return nil
}

func setEventHeaders(h http.Header) {
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
}

// watchContext ends with the client, with the server and with timeoutSeconds.
func (s *Server) watchContext(r *http.Request, q *query) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	detach := context.AfterFunc(s.stopping, cancel)
	release := func() { detach(); cancel() }
	if q.duration == 0 {
		return ctx, release
	}
	timed, expire := context.WithTimeout(ctx, q.duration)
	return timed, func() { expire(); release() }
}

// begin opens the subscription. A Last-Event-ID comes from a client that follows
// the stream and cannot do anything about a version that is gone: it gets the
// objects afresh, after an event RESYNC. Whoever names a resourceVersion gets
// 410 instead, as from the API server.
func (w *watcher) begin(ctx context.Context, r *http.Request) (beginning, error) {
	var err error
	if w.matcher, err = w.reader.Matcher(w.query.Query); err != nil {
		return beginning{}, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		return w.resume(ctx, last, w.query.wait)
	}
	if w.query.version == "" {
		return w.restart(ctx, false)
	}
	back, err := w.await(ctx, w.query.version, w.query.wait)
	if back {
		err = cache.ErrExpired
	}
	// A client that waited can still be told in plain HTTP that its rights are others.
	if err = afterWait(ctx, err, w.stillSeen); err != nil {
		return beginning{}, err
	}
	w.sub, err = w.reader.Watch(w.query.version)
	return beginning{}, err
}

// resume goes on after an event that the client has. What it has by other rights is not
// what it may see now, and may be more.
func (w *watcher) resume(ctx context.Context, last string, wait time.Duration) (beginning, error) {
	last, mark, _ := strings.Cut(last, markSeparator)
	last, err := parseVersionText("Last-Event-ID", last)
	if err != nil {
		return beginning{}, err
	}
	if last == "" || mark != w.mark() {
		return w.restart(ctx, true)
	}
	return w.resumeAt(ctx, last, wait)
}

// resumeAt goes on after a version.
func (w *watcher) resumeAt(ctx context.Context, last string, wait time.Duration) (beginning, error) {
	if last == "" || w.query.clock() {
		return w.restart(ctx, true)
	}
	back, err := w.await(ctx, last, wait)
	if err != nil && !errors.Is(err, cache.ErrTooNew) {
		return beginning{}, err
	}
	if back {
		return w.restart(ctx, true)
	}
	w.sub, err = w.reader.Watch(last)
	if errors.Is(err, cache.ErrExpired) {
		return w.restart(ctx, true)
	}
	return beginning{}, err
}

// await waits until the copy is where the client is. It may be behind for a while,
// whatever its state. Where the cluster went back in time, the version never came to be,
// which is reported: it has to be asked before the new history passes the version, since
// it cannot be told afterwards.
func (w *watcher) await(ctx context.Context, version string, wait time.Duration) (back bool, err error) {
	over := time.Now().Add(wait)
	for {
		soon := min(time.Until(over), kubeapi.SuspectAfter)
		if w.mayBe {
			soon = time.Until(over)
		}
		if err = waitVersion(ctx, w.reader, version, soon); !errors.Is(err, cache.ErrTooNew) {
			return err == nil && w.passed(), err
		}
		w.ahead = version
		if w.wentBack(ctx) {
			return true, nil
		}
		if !time.Now().Before(over) {
			return false, err
		}
	}
}

// wentBack reports whether the client is ahead of the copy at a version that never
// came to be, or may never have. It asks the API server now and then, since nothing
// else would end the wait, and often as long as that has not told.
func (w *watcher) wentBack(ctx context.Context) bool {
	switch {
	case w.ahead == "":
		return false
	case reached(w.reader, w.ahead):
		return w.passed()
	case time.Now().Before(w.askAt):
		return false
	}
	back, err := w.server.kube.WentBack(ctx, w.view, w.ahead)
	again := w.server.Bookmarks
	if w.mayBe = err == nil; !w.mayBe {
		again = min(again, kubeapi.SuspectAfter)
	}
	w.askAt = time.Now().Add(again)
	return back
}

// passed is about a version that the client had, and the copy has now reached. It reports
// whether that may be in another history: the API server was asked, in vain, and it is
// too late to ask again.
func (w *watcher) passed() bool {
	inVain := !w.askAt.IsZero() && !w.mayBe
	w.ahead, w.askAt = "", time.Time{}
	return inVain
}

// reached reports whether a copy is known to be at a version, or beyond.
func reached(reader *cache.Reader, version string) bool {
	c, err := resourceversion.CompareResourceVersion(reader.Version(), version)
	return err == nil && c >= 0
}

// restart takes the present objects and subscribes to what comes after them.
func (w *watcher) restart(ctx context.Context, resync bool) (beginning, error) {
	w.ahead = ""
	var err error
	for range selectTries {
		var now *cache.Result
		if now, err = w.reader.Select(ctx, w.query.Query); err != nil {
			return beginning{}, err
		}
		if w.sub, err = w.reader.Watch(now.Version); err == nil {
			return beginning{resync: resync, initial: now}, nil
		}
		if !errors.Is(err, cache.ErrExpired) {
			return beginning{}, err
		}
	}
	return beginning{}, err
}

// run writes until the stream ends. It returns an error only where the
// connection must be cut: a client that cannot be written to, an object that
// cannot be read.
func (w *watcher) run(ctx context.Context, start beginning) error {
	// It may have taken long to find where to begin: until the copy is where the
	// client is. Nothing has been written yet that was seen by the rights before.
	if err := w.stillSeen(ctx); err != nil {
		return ended(ctx, w.out.voided(statusOf(errRights)))
	}
	if err := w.opening(ctx, start); err != nil {
		return w.failed(ctx, err)
	}
	for {
		next, cancel := context.WithTimeout(ctx, w.pause())
		events, err := w.sub.Next(next)
		cancel()
		switch {
		case ctx.Err() == nil && w.rights.changed(ctx, w.viewed):
			return ended(ctx, w.out.voided(statusOf(errRights)))
		case err == nil && w.wentBack(ctx):
			return ended(ctx, w.out.voided(statusOf(cache.ErrExpired)))
		case err == nil:
			err = w.changes(ctx, events)
		case ctx.Err() != nil:
			// Best effort: a client that comes back resumes from here.
			return ended(ctx, errors.Join(w.bookmark(false), w.out.flush()))
		case errors.Is(err, context.DeadlineExceeded):
			err = nil
		case errors.Is(err, cache.ErrStopped) && w.replaced():
			return ended(ctx, w.out.voided(statusOf(err)))
		case errors.Is(err, cache.ErrStopped):
			// All there will be has been told; resuming begins after it.
			return ended(ctx, errors.Join(w.bookmark(false), w.out.failure(statusOf(err))))
		default:
			return w.out.failure(statusOf(lost(err)))
		}
		if err = errors.Join(err, w.routine(ctx)); err != nil {
			return w.failed(ctx, err)
		}
		if w.wentBack(ctx) {
			return ended(ctx, w.out.voided(statusOf(cache.ErrExpired)))
		}
		if err := w.out.flush(); err != nil {
			return ended(ctx, err)
		}
	}
}

// replaced reports whether the store was closed because another one took its
// place, or none: the same version may be of another selection there.
func (w *watcher) replaced() bool {
	now, ok := w.server.Caches.Resource(w.view.Spec.Resource)
	return !ok || !now.View().SameCopy(w.view)
}

// failed ends the stream with an event where the client can do something.
func (w *watcher) failed(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*cache.CostError](err); ok {
		return w.out.failure(statusOf(err))
	}
	if errors.Is(err, errRights) {
		return ended(ctx, w.out.voided(statusOf(err)))
	}
	return ended(ctx, err)
}

// ended keeps what went wrong after the stream was over anyway to itself.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lost says what the end of a subscription means to its client.
func lost(err error) error {
	if errors.Is(err, cache.ErrExpired) {
		return fmt.Errorf("this client read too slowly, events it has not seen are forgotten: %w", cache.ErrExpired)
	}
	return err
}

// pause is how long to wait for events before something else is due.
func (w *watcher) pause() time.Duration {
	d := min(stateInterval, w.server.Heartbeat, w.server.Bookmarks, w.rights.pause())
	if w.ahead != "" && !w.mayBe {
		d = min(d, kubeapi.SuspectAfter)
	}
	return max(time.Millisecond, d)
}

// opening says what the client cannot read from headers, then the present
// objects. These have no id: a client cut off among them must not resume as if
// it had them all.
func (w *watcher) opening(ctx context.Context, start beginning) error {
	w.out.comment("informerd")
	if w.state != cache.Live {
		w.out.state(w.view)
	}
	if start.resync {
		w.out.resync(start.initial.Version)
	}
	if start.initial != nil {
		for n, o := range start.initial.Objects {
			if n%checkEvery == 0 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if w.rights.changed(ctx, w.viewed) { // the client may have been slow
					return errRights
				}
			}
			if err := w.out.object(cache.Added, o, ""); err != nil {
				return err
			}
		}
		w.faults = start.initial.Faults
		w.warn()
		w.tell(start.initial.Version)
		w.out.bookmark(w.view.Spec, start.initial.Version, true)
	}
	if err := w.facets.tellDue(ctx, []*viewed{w.viewed}, w.out); err != nil {
		return err
	}
	return w.out.flush()
}

// changes writes events as they look through the selection: an object that
// begins to match is ADDED, one that ceases to is DELETED.
func (w *watcher) changes(ctx context.Context, events []cache.Event) error {
	for _, e := range events {
		typ, object, err := w.seen(ctx, e)
		if err != nil {
			return err
		}
		if object == nil {
			continue
		}
		if err := w.out.object(typ, object, e.Resume); err != nil {
			return err
		}
		w.tell(e.Resume)
	}
	return nil
}

// seen is an event as the selection sees it; no object means not at all. What
// the filter has no value for is counted of new states only: of the old one it
// was when that was new.
func (w *watcher) seen(ctx context.Context, e cache.Event) (cache.EventType, *cache.Object, error) {
	return e.Through(func(o *cache.Object) (bool, error) {
		ok, fault, err := w.match(ctx, o)
		if o == e.Object && e.Type != cache.Deleted {
			w.count(fault, o)
		}
		return ok, err
	})
}

// match also says that the filter has no value for o, which is not an error.
func (w *watcher) match(ctx context.Context, o *cache.Object) (ok bool, fault *cache.EvalError, err error) {
	ok, err = w.matcher.Match(ctx, o)
	if fault, isFault := errors.AsType[*cache.EvalError](err); isFault {
		return false, fault, nil
	}
	return ok, nil, err
}

// count remembers a fault until it is told.
func (w *watcher) count(fault *cache.EvalError, o *cache.Object) {
	if fault == nil {
		return
	}
	if w.faults.Count == 0 {
		w.faults.First, w.faults.Key = fault.Message, o.Key()
	}
	w.faults.Count++
}

func (w *watcher) tell(version string) { w.told, w.toldAt = version, time.Now() }

// routine says what is due by the clock: changes of state, facets, how far the
// stream is, and a sign of life.
func (w *watcher) routine(ctx context.Context) error {
	now := time.Now()
	if now.Sub(w.checked) >= w.pause() {
		w.checked = now
		latest := w.latest()
		if latest.view.State != w.state {
			w.state = latest.view.State
			w.out.state(latest.view)
		}
		w.warn()
		if latest.view.SameCopy(w.view) { // else this stream is about to end
			if err := w.facets.tellDue(ctx, []*viewed{latest}, w.out); err != nil {
				return err
			}
		}
	}
	if now.Sub(w.toldAt) >= w.server.Bookmarks {
		if err := w.bookmark(true); err != nil {
			return err
		}
	}
	if now.Sub(w.out.flushed) >= w.server.Heartbeat {
		w.out.comment("")
	}
	return nil
}

// warn tells what the filter had no value for.
func (w *watcher) warn() {
	if w.faults.Count > 0 {
		w.out.warning(w.faults)
		w.faults = cache.Faults{}
	}
}

// bookmark tells the version reached, if it is not known. The client's own version, while
// the copy has not reached it, is nothing to tell: it may never have been.
func (w *watcher) bookmark(routine bool) error {
	version := w.sub.Version()
	if version == "" || version == w.told || w.ahead != "" {
		if routine {
			w.toldAt = time.Now()
		}
		return nil
	}
	w.tell(version)
	w.out.bookmark(w.view.Spec, version, false)
	return nil
}
