package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// kindsWatch is one event stream about many resources. It belongs to the
// goroutine of its request; each resource has a goroutine that waits for its
// events and hands them over one batch at a time.
type kindsWatch struct {
	server    *Server
	rights    *rights
	params    params
	clusters  []string // asked about at the beginning: one where its reader is nobody any more ends the stream
	query     *query
	out       *eventWriter
	batches   chan batch
	followers map[string]*follower // by the name of the resource
	told      map[string]kindState // of every resource, what was said last
	// versions say how far a client that has read all is, by the name of the
	// resource. It has nothing of one at void, and objects that nothing can be
	// resumed from of one at "".
	versions map[string]string
	// marks are of the rights that what a client has was seen by.
	marks     map[string]string
	refreshed time.Time
	resumed   bool      // the client may have objects of resources not among versions
	waiting   time.Time // until when resources are waited for that are behind the client
	written   bool      // something, since the last id
	toldAt    time.Time // when an id was written
	facets    *retold   // nil: not asked for
	running   sync.WaitGroup
}

// void is the version of a resource of which the client was told to forget all.
// In an id it is that of every resource that cannot be resumed.
const void = "0"

// batch is what happened to one resource, up to version.
type batch struct {
	*follower
	events  []cache.Event
	version string
	err     error
}

// watchKinds streams what q selects of many resources. Resources that come, go,
// or begin to be readable join and leave the stream.
func (s *Server) watchKinds(w http.ResponseWriter, r *http.Request, q *query) error {
	if err := negotiate(w, r, typeEvents); err != nil {
		return err
	}
	views, err := s.see(r.Context(), paramsOf(r), q)
	if err == nil {
		err = refusedAll(views, q.Namespaces)
	}
	if err != nil {
		return err
	}
	since, marks, err := parseVersions(r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	if err := checkKinds(views, q.Query); err != nil {
		return err
	}
	// A resource that joins later is not counted: there are few, and seldom.
	release, err := s.takeStream(r.Context(), len(views))
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.watchContext(r, q)
	defer cancel()
	setEventHeaders(w.Header())
	if r.Method == http.MethodHead {
		return nil
	}
	k := &kindsWatch{
		server: s, rights: newRights(access.From(r.Context())), params: paramsOf(r), clusters: s.clustersOf(r.Context(), paramsOf(r)), query: q, out: newEventWriter(w, r, q.view), batches: make(chan batch),
		followers: map[string]*follower{}, told: map[string]kindState{},
		versions: since, marks: marks, resumed: len(since) > 0, waiting: time.Now().Add(q.wait),
		facets: s.watchedFacets(q),
	}
	err = k.run(ctx, views)
	cancel()
	k.running.Wait()
	if err := ended(ctx, err); err != nil && r.Context().Err() == nil {
		return &abortError{err}
	}
	return nil
}

// checkKinds refuses a question that no resource can answer.
func checkKinds(kinds []*viewed, q cache.Query) error {
	var refused error
	for _, k := range kinds {
		err := k.refused(q.Namespaces)
		if err == nil && k.reader == nil {
			continue
		}
		if err == nil {
			_, err = k.lacking(q.Namespaces)
		}
		if err == nil {
			_, err = k.reader.Matcher(q)
		}
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

// run writes until the stream ends.
func (k *kindsWatch) run(ctx context.Context, kinds []*viewed) error {
	k.out.comment("informerd")
	if err := k.out.flush(); err != nil { // what follows may wait
		return err
	}
	k.dropMissing(kinds)
	if err := k.join(ctx, kinds); err != nil {
		return k.failed(err)
	}
	if err := k.rejoin(ctx); err != nil {
		return k.failed(err)
	}
	k.bookmark(true)
	if err := k.facets.tellDue(ctx, kinds, k.out); err != nil {
		return k.failed(err)
	}
	tick := time.NewTicker(max(time.Millisecond, min(stateInterval, k.server.Heartbeat, k.server.Bookmarks, k.rights.pause())))
	defer tick.Stop()
	for {
		if err := k.out.flush(); err != nil {
			return err
		}
		var err error
		switch b, happened := k.await(ctx, tick.C); {
		case ctx.Err() != nil:
			k.bookmark(false) // a client that comes back resumes from here
			return k.out.flush()
		case happened:
			err = k.take(ctx, b)
		default:
			err = k.routine(ctx)
		}
		if err != nil {
			return k.failed(err)
		}
		if k.written {
			k.bookmark(false)
		}
	}
}

// await waits for something to happen, for the clock, or for the end of ctx.
func (k *kindsWatch) await(ctx context.Context, tick <-chan time.Time) (b batch, happened bool) {
	defer cache.Pause(ctx)()
	select {
	case b = <-k.batches:
		return b, true
	case <-tick:
	case <-ctx.Done():
	}
	return b, false
}

// failed ends the stream with an event where the client can do something.
func (k *kindsWatch) failed(err error) error {
	if _, ok := errors.AsType[*cache.CostError](err); ok || isStatus(err) {
		return k.out.failure(statusOf(err))
	}
	return err
}

// join says the state of every resource and begins to follow those that can be
// read and are not followed yet.
func (k *kindsWatch) join(ctx context.Context, kinds []*viewed) error {
	for _, res := range kinds {
		name := res.view.Spec.Resource.String()
		if k.followers[name] != nil {
			k.state(name, newKindState(res.view), true)
			continue
		}
		answered, err := k.follow(ctx, name, res)
		if err != nil {
			return err
		}
		k.state(name, newKindState(res.view), answered)
	}
	return nil
}

// state says how far a resource can be trusted, if that is news. A live one need
// not be mentioned.
func (k *kindsWatch) state(name string, state kindState, answered bool) {
	state.Answered = answered
	before, known := k.told[name]
	k.told[name] = state
	if state == before || !known && answered && state.State == cache.Live {
		return
	}
	k.out.message("", message{Type: "STATE", Resource: name, State: state.State, Reason: state.Reason, Answered: &state.Answered})
	k.written = true
}

// forget says that nothing told of a resource holds any more, unless the client
// has nothing of it.
func (k *kindsWatch) forget(name string) {
	since, known := k.versions[name]
	if since == void || !known && !k.resumed {
		return
	}
	k.versions[name] = void
	k.out.message("", message{Type: "RESYNC", Resource: name})
	k.written = true
}

func (k *kindsWatch) warn(f *follower) {
	if f.faults.Count > 0 {
		k.out.message("", message{Type: "WARNING", Resource: f.name, FilterErrors: faultsOf(f.faults)})
		f.faults = cache.Faults{}
		k.written = true
	}
}

// take writes a batch. A resource that moved on too fast, or is replaced by
// another, begins anew: its objects are void, and come again when it can be read.
func (k *kindsWatch) take(ctx context.Context, b batch) error {
	if k.followers[b.name] != b.follower {
		return nil // of one that left
	}
	switch {
	case errors.Is(b.err, cache.ErrStopped) && k.shown(b.follower):
		// informerd stops, and the client resumes from here after it; or the
		// resource is about to be replaced, which refresh sees.
		k.versions[b.name] = b.version
		return nil
	case b.err != nil:
		k.leave(b.follower)
		return k.refresh(ctx)
	}
	if b.follower.wentBack(ctx) {
		k.leave(b.follower)
		return k.refresh(ctx)
	}
	for _, e := range b.events {
		typ, object, err := b.seen(ctx, e)
		if err != nil {
			return err
		}
		if object == nil {
			continue
		}
		if err := k.out.objectOf(b.name, typ, object, e.Resume); err != nil {
			return err
		}
		k.written = true
	}
	k.warn(b.follower)
	k.versions[b.name] = b.version
	return nil
}

// refresh looks for resources that came, went, were replaced or changed state, and for
// those of which something else may be seen than before.
func (k *kindsWatch) refresh(ctx context.Context) error {
	k.refreshed = time.Now()
	found, err := k.server.resourcesOf(ctx, k.params)
	if err != nil { // the last of them is gone, or one named in full
		k.leaveGone()
		return k.regrant(ctx)
	}
	kinds, err := seeAll(ctx, found, k.query)
	if err != nil {
		return k.refuse(err)
	}
	for _, res := range kinds {
		if f := k.followers[res.view.Spec.Resource.String()]; f != nil && (f.left(res.view) || f.mark() != res.mark()) {
			k.leave(f)
		}
	}
	k.dropMissing(kinds)
	if err := k.join(ctx, kinds); err != nil {
		return err
	}
	if err := k.rejoin(ctx); err != nil {
		return err
	}
	return k.facets.tellDue(ctx, kinds, k.out)
}

// leaveGone ends the following of resources that are gone.
func (k *kindsWatch) leaveGone() {
	for _, name := range k.known() {
		f := k.followers[name]
		if f == nil {
			continue
		}
		if now, ok := k.server.Caches.Resource(f.view.Spec.Resource); !ok || f.left(now.View()) {
			k.leave(f)
		}
	}
}

// dropMissing ends what was told of resources that are not among kinds.
func (k *kindsWatch) dropMissing(kinds []*viewed) {
	present := map[string]bool{}
	for _, r := range kinds {
		present[r.view.Spec.Resource.String()] = true
	}
	for _, name := range k.known() {
		if present[name] {
			continue
		}
		if f := k.followers[name]; f != nil {
			k.leave(f)
		}
		k.forget(name)
		k.state(name, kindState{State: cache.Unwatched, Reason: "the resource is gone"}, false)
		delete(k.told, name)
		delete(k.versions, name)
		delete(k.marks, name)
	}
}

// known are the names of all resources that the client knows of.
func (k *kindsWatch) known() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(k.told)), maps.Keys(k.versions))
	slices.Sort(names)
	return slices.Compact(names)
}

// routine says what is due by the clock.
func (k *kindsWatch) routine(ctx context.Context) error {
	for _, name := range k.known() {
		if f := k.followers[name]; f != nil && f.wentBack(ctx) {
			k.leave(f)
		}
	}
	if k.moved(ctx) || time.Since(k.refreshed) >= min(stateInterval, k.server.Heartbeat, k.server.Bookmarks) {
		if err := k.refresh(ctx); err != nil {
			return err
		}
	}
	if time.Since(k.toldAt) >= k.server.Bookmarks {
		k.bookmark(false)
	}
	if time.Since(k.out.flushed) >= k.server.Heartbeat {
		k.out.comment("")
	}
	return nil
}

// bookmark tells in an id how far each resource is. The first one marks the end
// of the initial objects.
func (k *kindsWatch) bookmark(initial bool) {
	k.out.message(formatVersions(k.versions, k.marks), message{Type: "BOOKMARK", Initial: initial})
	k.written, k.toldAt = false, time.Now()
}
