package cache

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// source is one watch of a resource: of all namespaces, or of a single one. It
// runs a client-go Reflector whose ListerWatcher and store it is itself:
//
//   - the first "list" of a source that can resume is answered from the
//     snapshot's resourceVersion, with no items and no request, so that the
//     Reflector goes on to watch from there;
//   - the watch it hands out (resumeWatch) outlives the connections under it,
//     so that only an expired resourceVersion leads to a relist;
//   - what the Reflector stores goes straight to the Store, in order, from the
//     one goroutine of the Reflector.
type source struct {
	namespace string // "" for all
	spec      Spec
	store     *Store
	cluster   *cluster
	syncs     chan struct{} // semaphore over initial syncs and relists
	// compareLeast is how many objects make a comparison worth its requests.
	compareLeast int
	count        *counters
	changed      func()        // called after every change of health
	relist       chan struct{} // capacity 1: ends the watch so that the Reflector relists
	retry        retry
	grace        time.Duration // how long a difference found by verification may last
	log          *slog.Logger

	// epoch is the configuration of the cluster under which its history was last
	// found to be the one of the copy. Only the goroutine of the open watch touches
	// it, and reflect before there is one.
	epoch int

	// resume is the version the first watch continues from; "" for none. Only
	// the Reflector's goroutine touches it and the two fields below.
	resume string
	// skipReplace makes the sink ignore the empty answer to the first list.
	skipReplace bool
	// mending marks a relist demanded by verification: what it changes is counted.
	mending bool
	// listErr is what the failed streaming list or comparison said: List answers
	// with it, since a plain LIST would cost the API server more and fare no
	// better.
	listErr error
	// pending is a difference that the next Replace enters.
	pending *difference
	// compareFailures counts comparisons that failed one after the other.
	compareFailures int
	// serving is the version of the API server that a full list is about to be made
	// from, "" if it was not asked.
	serving string
	// noStreaming is set once the server refused a streaming list as such, noPlain
	// once a plain list took too long.
	noStreaming, noPlain bool
	// listing is held during a list, which the Reflector makes in a goroutine
	// that it does not wait for.
	listing sync.Mutex

	end    context.CancelCauseFunc // ends the source
	mu     sync.Mutex
	health health // guarded by mu
	doubts doubts // guarded by mu
}

// health is what one source knows of itself.
type health struct {
	synced    bool   // the store holds this source's objects
	proven    bool   // was caught up at least once in this process
	current   bool   // is caught up, and nothing has failed since
	promised  string // version of the bookmark that proves it caught up, "" for none
	relisting bool
	forbidden bool      // the API server refuses list or watch
	permanent bool      // the last error is none that passes by itself
	refused   time.Time // of the first 403 in a row
	contact   time.Time // last sign that the copy was current
	served    string    // version of the API server that the copy was last listed from in full
	err       error     // why it is not
}

// errForbidden ends a source: the API server refuses list or watch.
var errForbidden = errors.New("forbidden")

// patience, in longest pauses between two attempts, is how long a source that
// has data does not believe that it is refused.
const patience = 2

func (s *source) get() health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

func (s *source) update(f func(*health)) {
	s.mu.Lock()
	f(&s.health)
	refused := s.health.forbidden
	s.mu.Unlock()
	s.store.refuse(s.namespace, refused)
	s.changed()
}

// run keeps the source going until ctx ends (nil), the API server forbids it
// (errForbidden) or its history turns out to be another (errOtherHistory).
func (s *source) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.end = end
	history := s.cluster.presentHistory()
	defer context.AfterFunc(history, func() { end(context.Cause(history)) })()
	err := s.reflect(ctx)
	if errors.Is(err, errRewritten) || isOtherCluster(err) {
		s.cluster.rewritten(history, err)
	}
	return err
}

func (s *source) reflect(ctx context.Context) error {
	s.epoch = s.cluster.configured()
	if s.resume != "" {
		s.update(func(h *health) { h.synced = true })
		if err := s.checkHistory(ctx); err != nil {
			return err
		}
	}
	// The Reflector's own messages are about single attempts; the ones an
	// operator needs are logged here, once per change.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet{s.log.Handler()}))
	backoff := s.retry.backoff()
	r := toolscache.NewReflectorWithOptions(s, &item{}, sink{s}, toolscache.ReflectorOptions{
		Name:            s.spec.String(),
		TypeDescription: s.spec.Kind,
		Backoff:         &backoff,
	})
	r.RunWithContext(ctx)
	s.listing.Lock() // ctx has ended, and no list begins after that
	defer s.listing.Unlock()
	if err := context.Cause(ctx); errors.Is(err, errForbidden) || errors.Is(err, errOtherHistory) {
		return err
	}
	return nil
}

func (s *source) decode(raw []byte) (*Object, error) {
	return s.store.Decode(raw, s.spec.GVR.GroupVersion().String(), s.spec.Kind)
}

// checkHistory retries until the server says whether resume is in its past.
func (s *source) checkHistory(ctx context.Context) error {
	backoff := s.retry.backoff()
	for {
		err := s.sameHistory(ctx, s.resume)
		if err == nil || errors.Is(err, errOtherHistory) {
			return err
		}
		s.cluster.report(err)
		s.update(func(h *health) { h.current, h.err = false, err })
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff.Step()):
		}
	}
}

// sink is the store the Reflector writes to.
type sink struct{ *source }

var (
	_ toolscache.ReflectorStore         = sink{}
	_ toolscache.ReflectorBookmarkStore = sink{}
)

func (s sink) Add(obj any) error    { return s.apply(Added, obj) }
func (s sink) Update(obj any) error { return s.apply(Modified, obj) }
func (s sink) Delete(obj any) error { return s.apply(Deleted, obj) }
func (s sink) Resync() error        { return nil }

// apply never returns an error: the Reflector would log it and go on, with the
// object lost and the resourceVersion past it.
func (s sink) apply(t EventType, obj any) error {
	if it, ok := obj.(*item); ok && it.obj != nil {
		s.store.Apply(s.namespace, t, it.obj)
	}
	return nil
}

func (s sink) Bookmark(version string) error {
	s.store.Bookmark(s.namespace, version)
	if s.get().promised == version && s.undoubted() {
		s.prove(version)
	}
	return nil
}

func (s sink) Replace(items []any, version string) error {
	if s.skipReplace {
		s.skipReplace = false
		return nil
	}
	s.setDoubts(nil) // a list is the truth
	listedFrom := ""
	if d := s.pending; d != nil {
		s.pending = nil
		gone, come := d.lists()
		s.store.Amend(s.namespace, gone, come, d.version)
		s.count.compared.Add(1)
	} else {
		s.replace(items, version)
		listedFrom = s.serving
	}
	now := time.Now()
	var was string
	s.update(func(h *health) {
		h.synced, h.proven, h.current = true, true, true
		was, h.served = h.served, cmp.Or(listedFrom, h.served)
		h.relisting, h.forbidden, h.permanent = false, false, false
		h.refused = time.Time{}
		h.contact, h.err = now, nil
	})
	if listedFrom != "" && listedFrom != was {
		// The objects may have been saved a moment ago, as of the older server.
		s.store.saveVersions()
	}
	return nil
}

// replace enters a full list.
func (s sink) replace(items []any, version string) {
	objs := make([]*Object, 0, len(items))
	for _, i := range items {
		if it, ok := i.(*item); ok && it.obj != nil {
			objs = append(objs, it.obj)
		}
	}
	stats := s.store.Replace(s.namespace, objs, version)
	s.count.relists.Add(1)
	s.compareFailures = 0
	if s.mending {
		s.mending = false
		s.count.mended.Add(uint64(stats.Added + stats.Modified + stats.Deleted))
	}
}
