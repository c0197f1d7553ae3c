package kubeapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
	"github.com/informerd/informerd/server/websocket"
)

const (
	// bookmarkInterval and bookmarkBefore say when a watch that asked for it is
	// told how far it is: now and then, and shortly before its end, as by the
	// API server. A client that comes back then resumes from nearly there.
	bookmarkInterval = time.Minute
	bookmarkBefore   = 2 * time.Second
	// proofGain is how much newer a proof of the copy has to be than the one that was
	// last told for a bookmark to tell of it at once. Another informerd that follows
	// would otherwise hear of it up to a bookmarkInterval later: the API server's
	// bookmarks are as far apart, and the two together are more than a lease.
	proofGain = 2 * time.Second
	// minWatch is how long a watch lasts that does not say; up to twice that,
	// so that clients do not come back all at once.
	minWatch = 30 * time.Minute
	// selectTries bounds how often the present objects are taken anew because
	// the store moved on beyond its ring of events meanwhile.
	selectTries = 3
)

// stream is one watch. It belongs to the goroutine of its request.
type stream struct {
	*target
	api      *API
	media    media
	opts     *internalversion.ListOptions
	query    cache.Query
	matcher  *cache.Matcher
	sub      *cache.Subscription
	proven   string        // the copy is complete up to here, "" for its own version
	initial  *cache.Result // objects to begin with, nil for none
	printer  *printer      // of a watch of tables
	out      *batch
	record   *audit.Record
	deadline time.Time
	bookmark time.Time // when the next is due
	told     time.Time // the proof that the last one told of
}

// watch streams what becomes of the objects that q selects. What is wrong with
// the request is an HTTP error; that it cannot begin where it should is an ERROR
// event, as at the API server.
func (a *API) watch(w http.ResponseWriter, r *http.Request, t *target, m media, opts *internalversion.ListOptions, q cache.Query) error {
	var err error
	if opts.ResourceVersion, err = canonicalVersion(opts.ResourceVersion); err != nil {
		return errVersion(err)
	}
	ctx, cancel := a.watchContext(r, opts)
	defer cancel()
	s := &stream{target: t, api: a, media: m, opts: opts, query: q, record: audit.From(r.Context())}
	s.deadline, _ = ctx.Deadline()
	s.schedule(time.Now())
	if opts.ResourceVersion == "" {
		if s.proven, err = a.reach(r, t, ""); err != nil {
			return err
		}
	}
	if s.matcher, err = t.reader.Matcher(q); err != nil {
		return err
	}
	if m.as == asTable {
		s.printer = a.newPrinter(r, t)
		s.printer.version, s.printer.stream = m.version, true
		if err := s.printer.check(); err != nil {
			return err
		}
	}
	began := s.begin(ctx)
	if began == nil && ctx.Err() == nil && s.rights.changed(ctx) { // it may have waited
		began = errRights()
	}
	if s.sub != nil {
		defer s.sub.Close()
	}
	if errors.Is(began, cache.ErrStopped) {
		return began // another store takes its place, or informerd stops: not the client's doing
	}
	h := w.Header()
	a.Freshness(h, t.view, t.reader.Version())
	if websocket.Asked(r) {
		return s.serveSocket(ctx, w, r, began)
	}
	h.Set("Content-Type", typeJSON)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s.out = newBatch(w)
	return s.serve(ctx, began)
}

// serve writes the stream, or why it does not begin.
func (s *stream) serve(ctx context.Context, began error) error {
	if began != nil {
		return s.fail(began)
	}
	err := s.run(ctx)
	if err == nil || ctx.Err() != nil {
		return nil // what goes wrong after the end concerns nobody
	}
	if known, ok := errors.AsType[*CutError](err); ok {
		return known
	}
	return &CutError{Cause: err}
}

// watchContext ends with the client, with the server and at the timeout.
func (a *API) watchContext(r *http.Request, opts *internalversion.ListOptions) (context.Context, context.CancelFunc) {
	timeout := minWatch + rand.N(minWatch)
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	detach := context.AfterFunc(a.Stopping, cancel)
	return ctx, func() { detach(); cancel() }
}

// begin finds where the stream starts:
//
//	resourceVersion  sendInitialEvents  begins with
//	"", 0            not given          the present objects
//	any              true               the same, not older than that version
//	"", 0            false              changes from now on
//	another          not given, false   changes after it; if it never was, 410
func (s *stream) begin(ctx context.Context) error {
	version, initial := s.opts.ResourceVersion, s.opts.SendInitialEvents
	anywhere := version == "" || version == "0"
	if initial != nil && *initial || initial == nil && anywhere {
		if initial != nil {
			if err := s.api.reachVersion(ctx, s.target, version); err != nil {
				return err
			}
			if !anywhere {
				s.proven = version
			}
		}
		return s.beginWithState(ctx)
	}
	if anywhere {
		version = ""
	} else if s.neverWas(ctx, version) {
		return errTooOld(version, s.reader.Oldest())
	}
	var err error
	if s.sub, err = s.reader.Watch(version); errors.Is(err, cache.ErrExpired) {
		return errTooOld(version, s.reader.Oldest())
	}
	return err
}

// beginWithState takes the present objects and subscribes to what comes after.
func (s *stream) beginWithState(ctx context.Context) (err error) {
	for range selectTries {
		if s.initial, err = selectProven(ctx, s.reader, s.query, s.proven); err != nil {
			return err
		}
		if s.sub, err = s.reader.Watch(s.initial.Version); !errors.Is(err, cache.ErrExpired) {
			return err
		}
	}
	return err
}

// run writes until the stream ends.
func (s *stream) run(ctx context.Context) error {
	if s.opts.AllowWatchBookmarks && s.printer == nil { // no informerd follows tables
		s.sub.FollowProofs()
	}
	if err := s.opening(ctx); err != nil {
		if ctx.Err() == nil && apierrors.IsResourceExpired(err) { // other rights than it began with
			return s.fail(err)
		}
		return err
	}
	for {
		next, cancel := context.WithDeadline(ctx, s.due())
		events, err := s.sub.Next(next)
		cancel()
		switch {
		case ctx.Err() == nil && s.rights.changed(ctx):
			return s.fail(errRights())
		case err == nil:
			err = s.changes(ctx, events)
		case ctx.Err() != nil:
			return nil // time is up, or nobody listens any more
		case errors.Is(err, context.DeadlineExceeded):
			err = nil
		case errors.Is(err, cache.ErrStopped) && !s.replaced():
			return nil // informerd stops: the client comes back and resumes
		default:
			return s.fail(errTooOld(s.sub.Version(), s.reader.Oldest()))
		}
		if err == nil {
			s.routine(ctx, time.Now())
			err = s.out.flush()
		}
		if err != nil {
			return err
		}
	}
}

// replaced reports whether the store was closed because another one took its
// place, or none: versions of this one may mean nothing there, and what was
// selected or redacted may be something else. A store is closed only after that,
// see replica.Factory.
func (s *stream) replaced() bool {
	now, ok := s.api.Caches.Resource(s.spec().Resource)
	return !ok || !now.View().SameCopy(s.view)
}

// opening writes the present objects. The bookmark after them tells a client
// that asked for one that they are complete.
func (s *stream) opening(ctx context.Context) error {
	if s.initial == nil {
		return s.out.flush() // the client waits for the headers
	}
	for n, o := range s.initial.Objects {
		if n%checkEvery == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.rights.changed(ctx) { // the client may have been slow
				return errRights()
			}
		}
		body, err := s.body(ctx, o)
		if err != nil {
			return err
		}
		s.out.add(cache.Added, body)
		s.record.Returned(1)
	}
	version := s.initial.Version
	s.initial = nil
	if s.opts.SendInitialEvents != nil && *s.opts.SendInitialEvents && s.opts.AllowWatchBookmarks {
		s.writeBookmark(ctx, version, true)
	}
	return s.out.flush()
}

// body is the JSON of an object that only this watcher is told of. Of a large one others
// who begin have the same: see batch.add.
func (s *stream) body(ctx context.Context, o *cache.Object) ([]byte, error) {
	if s.printer != nil {
		return s.printer.event(ctx, o, "")
	}
	if o.Size() >= batchBytes {
		return s.api.frames.get(o, s.media.as)
	}
	return appendObject(nil, o, s.media.as)
}

// changes writes events as they look through the selection: an object that
// begins to match is ADDED, one that ceases to is DELETED.
func (s *stream) changes(ctx context.Context, events []cache.Event) error {
	for _, e := range events {
		typ, object, version, err := s.seen(ctx, e)
		if err != nil {
			return err
		}
		if object == nil {
			continue
		}
		body, err := s.changed(ctx, object, version)
		if err != nil {
			return err
		}
		s.out.add(typ, body)
		s.record.Returned(1)
	}
	return nil
}

// changed is the JSON of an event's object, with another version if that is
// not "". Watchers share it.
func (s *stream) changed(ctx context.Context, o *cache.Object, version string) ([]byte, error) {
	if s.printer != nil {
		return s.printer.event(ctx, o, version)
	}
	body, err := s.api.frames.get(o, s.media.as)
	if err != nil || version == "" || version == o.ResourceVersion() {
		return body, err
	}
	return withVersion(body, version)
}

// seen is an event as the selection sees it; no object means not at all. An
// object is shown with version where that is not "": the last state of one that
// went away carries the version of its going, so that versions never fall.
func (s *stream) seen(ctx context.Context, e cache.Event) (typ cache.EventType, o *cache.Object, version string, err error) {
	typ, o, err = e.Through(func(o *cache.Object) (bool, error) { return s.matcher.Match(ctx, o) })
	switch {
	case err != nil || o == nil || typ != cache.Deleted:
	case e.Type != cache.Deleted: // as it was in the selection
		version = e.Object.ResourceVersion()
	case e.Old == nil || e.Old.ResourceVersion() == o.ResourceVersion(): // found missing by a list
		version = e.Resume
	}
	return typ, o, version, err
}

// due is when something must be said even if nothing happens.
func (s *stream) due() time.Time {
	next := s.deadline
	if s.opts.AllowWatchBookmarks {
		next = s.bookmark
	}
	if look := s.rights.looked.Add(rightsInterval); !access.Settled(s.rights.who) && look.Before(next) {
		next = look
	}
	return next
}

// routine writes the bookmark that is due, and one for a proof that is to be told.
func (s *stream) routine(ctx context.Context, now time.Time) {
	proven := s.sub.Proven() && s.proof().Sub(s.told) >= proofGain
	if !s.opts.AllowWatchBookmarks || now.Before(s.bookmark) && !proven {
		return
	}
	if version := s.sub.Version(); version != "" {
		s.writeBookmark(ctx, version, false)
	}
	s.schedule(now)
}

// schedule sets when the next bookmark is due.
func (s *stream) schedule(now time.Time) {
	next, last := now.Add(bookmarkInterval), s.deadline.Add(-bookmarkBefore)
	switch {
	case !now.Before(last):
		next = s.deadline.Add(bookmarkInterval) // never
	case next.After(last):
		next = last
	}
	s.bookmark = next
}

// proof is when the copy was last proven to lack nothing of what the stream has told;
// zero if that is not known, as while events wait to be told.
func (s *stream) proof() time.Time {
	now, ok := s.api.Caches.Resource(s.spec().Resource)
	if !ok {
		return time.Time{}
	}
	view := now.View() // before the version: what is proven is no newer
	if !view.SameCopy(s.view) || before(s.sub.Version(), s.reader.Version()) {
		return time.Time{}
	}
	return view.Proof
}

// toldAge is that of a proof, for another informerd that follows the copy.
func toldAge(proof time.Time) string {
	age, known := (&cache.View{Proof: proof}).Age()
	if !known {
		return cache.AgeUnknown
	}
	return strconv.FormatFloat(age.Seconds(), 'f', 3, 64)
}

// writeBookmark tells the version reached; the one after the initial objects is
// marked.
func (s *stream) writeBookmark(ctx context.Context, version string, initial bool) {
	object := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		Kind: s.spec().Kind, APIVersion: s.spec().GVR.GroupVersion().String(),
	}}
	// Of a table it is the object of a row, whole only where that is asked for.
	if as := s.media.as; as == asPartial || as == asPartialList || as == asTable && s.printer.include != metav1.IncludeObject {
		object.TypeMeta = metav1.TypeMeta{Kind: asPartial, APIVersion: "meta.k8s.io/v1"}
	}
	object.ResourceVersion = version
	object.Annotations = map[string]string{}
	if initial {
		object.Annotations[metav1.InitialEventsAnnotationKey] = "true"
	}
	if s.printer == nil { // no informerd follows tables
		// The initial objects are of the View that the stream began with.
		if s.told = s.view.Proof; !initial {
			s.told = s.proof()
		}
		object.Annotations[cache.AgeAnnotation] = toldAge(s.told)
	}
	body, err := reply.JSON(object, false)
	if err == nil && s.printer != nil {
		body, err = s.printer.bookmark(ctx, body, version, initial)
	}
	if err != nil {
		s.api.log.Error("cannot write a bookmark", "gvr", s.spec().Resource.String(), "err", err)
		return // a client can do without
	}
	s.out.add("BOOKMARK", body)
}

// fail ends the stream with an ERROR event.
func (s *stream) fail(err error) error {
	body, merr := reply.JSON(statusOf(err), false)
	if merr != nil {
		return merr
	}
	s.out.add("ERROR", body)
	return s.out.flush()
}
