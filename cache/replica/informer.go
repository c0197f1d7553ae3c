package replica

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache"
)

// Informer keeps the copy of one resource. All readers share it: however many
// there are, the API server sees one watch (one a namespace, where the cluster
// as a whole may not be watched).
//
// Readers take its View. Its Store stays when the rule or the definition of the
// resource changes: a successor is listed behind it and takes over with the
// differences as events. It is replaced, and the old one closed, only when the
// server is proven to have another history than the copy; readers then see
// ErrStopped and find another Store in the View.
type Informer struct {
	resource cache.Resource
	cluster  *cluster
	factory  *Factory
	log      *slog.Logger
	count    counters

	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	out    atomic.Bool   // the resource is gone: nothing more is saved of it
	// restoring is set while the snapshot is read, or waits to be: see Ahead.
	restoring atomic.Bool
	// respecified wakes run when the spec asks for another copy; it holds one.
	respecified chan struct{}

	view atomic.Pointer[cache.View] // written under mu

	// indexing is held while the indexes of the spec and those of the stores change
	// together, or the one store takes the place of the other: whichever comes second,
	// a reload or a successor, finds what the first has left. What is saved is taken under
	// it too, so that objects and their rule belong together. Taken before mu, and by the
	// saver while it commits: who has it must not wait for that.
	indexing sync.Mutex

	mu      sync.Mutex // guards all below
	spec    cache.Spec // what is wanted; that of current may be older
	current *feed      // what is read from; nil when unwatched
	next    *feed      // what is to take over; mostly nil
	// succession says why next is filled, lost that current is known to be of
	// another history meanwhile.
	succession string
	lost       bool
	foreign    bool          // current is another cluster's
	filled     chan struct{} // tells run that next is complete; holds one
	failure    error         // why there is no feed
	stopped    bool
	expiry     *time.Timer   // settles at the end of the lease
	changed    chan struct{} // closed and replaced when the state changes
	// turned is closed and replaced when another copy is read from, or filled, loaded
	// set when the snapshot was looked at.
	turned   chan struct{}
	loaded   bool
	snapshot snapshotState
	// restored is what the store was filled from, until its identity was checked;
	// restoredProof when that was last proven current.
	restored      cache.Saved
	restoredProof time.Time
	origin        string // UID of the cluster that current is of
	verified      time.Time
	swept         sweep
}

// counters only ever grow; they outlive the stores and sources of an informer.
type counters struct {
	relists, compared, fetched, expired, restarts, undecoded, mended atomic.Uint64
}

// snapshotState is what is known of the informer's snapshot.
type snapshotState struct {
	committed time.Time
	drops     uint64
	reason    string // why the last one was dropped
}

func newInformer(f *Factory, c *cluster, spec cache.Spec) *Informer {
	i := &Informer{
		resource: spec.Resource, cluster: c, factory: f, spec: spec,
		log:         f.log.With("gvr", spec.Resource.String()),
		cancel:      func() {},
		done:        make(chan struct{}),
		respecified: make(chan struct{}, 1),
		filled:      make(chan struct{}, 1),
		changed:     make(chan struct{}),
		turned:      make(chan struct{}),
	}
	if !spec.Watch {
		close(i.done)
	} else if store, err := f.newStore(spec); err != nil {
		i.failure = err
	} else {
		i.current = i.newFeed(spec, store)
	}
	v := i.unstarted()
	v.Since = time.Now()
	i.view.Store(v)
	return i
}

// newFeed is for a store that is of what the cluster's history is known to be now.
func (i *Informer) newFeed(spec cache.Spec, store *cache.Store) *feed {
	return &feed{informer: i, spec: spec, store: store, history: i.cluster.presentHistory()}
}

// follows says when the informer before this one of the same resource ended. It must
// not be called after start.
func (i *Informer) follows(ended time.Time) {
	if i.current != nil {
		i.current.after = ended
	}
}

// unstarted is the View before start.
func (i *Informer) unstarted() *cache.View {
	if i.current == nil {
		return i.viewLocked(time.Now())
	}
	return &cache.View{Spec: i.spec, State: cache.Syncing, Reason: "starting"}
}

// start runs the informer until stop or until ctx ends.
func (i *Informer) start(ctx context.Context) {
	if i.current == nil {
		i.settle()
		if i.failure != nil {
			close(i.done)
		}
		return
	}
	ctx, i.cancel = context.WithCancel(ctx)
	go func() {
		defer close(i.done)
		i.run(ctx)
	}()
}

// halt ends the informer and leaves its store open. It returns when no goroutine of
// it is left.
func (i *Informer) halt() {
	i.cancel()
	<-i.done
	i.mu.Lock()
	i.stopped = true
	if i.expiry != nil {
		i.expiry.Stop()
	}
	i.mu.Unlock()
}

// stop ends the informer and closes its store.
func (i *Informer) stop() {
	i.halt()
	if s := i.feedNow().storeOrNil(); s != nil {
		s.Close()
	}
}

// Resource is what the informer watches.
func (i *Informer) Resource() cache.Resource { return i.resource }

// Spec says how it is to be watched. What is read may still be of the spec before:
// that of the View.
func (i *Informer) Spec() cache.Spec {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.spec
}

// feedNow is what is read from, nil when unwatched.
func (i *Informer) feedNow() *feed {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current
}

func (f *feed) storeOrNil() *cache.Store {
	if f == nil {
		return nil
	}
	return f.store
}

// store is the one that is read from, synced or not; nil when unwatched.
func (i *Informer) store() *cache.Store { return i.feedNow().storeOrNil() }

// WaitForSync returns when there is data to answer from, or ctx ended, or the
// informer was stopped.
func (i *Informer) WaitForSync(ctx context.Context) error {
	for {
		i.mu.Lock()
		state, changed := i.view.Load().State, i.changed
		i.mu.Unlock()
		switch {
		case state.Readable():
			return nil
		case state == cache.Unwatched:
			return cache.ErrNotWatched
		}
		select {
		case <-changed:
		case <-i.done:
			return cache.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (i *Informer) run(ctx context.Context) {
	i.restore()
	i.settle()
	if !i.awaitIdentified(ctx) {
		return
	}
	why := i.checkIdentity()
	var beside sync.WaitGroup
	beside.Go(func() { i.verifyLoop(ctx) })
	beside.Go(func() { i.followUpgrades(ctx) })
	defer beside.Wait()
	for ctx.Err() == nil {
		if why == nil {
			why = i.tend(ctx)
		}
		if why != nil && ctx.Err() == nil {
			why = i.succeed(ctx, why)
		}
	}
}

// Status is the View with the counts of the resource.
func (i *Informer) Status() cache.Status {
	v := i.View()
	i.mu.Lock()
	s := cache.Status{
		View:    *v,
		Relists: i.count.relists.Load(), Compared: i.count.compared.Load(), Fetched: i.count.fetched.Load(), Expired: i.count.expired.Load(), Restarts: i.count.restarts.Load(),
		Undecoded: i.count.undecoded.Load(), Mended: i.count.mended.Load(), Verified: i.verified,
		SnapshotAt: i.snapshot.committed, SnapshotDrops: i.snapshot.drops, SnapshotReason: i.snapshot.reason,
	}
	store := i.current.storeOrNil()
	i.mu.Unlock()
	if store == nil {
		return s
	}
	stats := store.Stats()
	s.Objects, s.Bytes, s.RawBytes = stats.Objects, stats.Bytes, stats.RawBytes
	s.ColumnBytes = stats.ColumnBytes
	s.Dictionaries, s.Trainings, s.Repacked = stats.Dictionaries, stats.Trainings, stats.Repacked
	s.Templates = stats.Templates
	s.ResourceVersion, s.LastEvent = store.Version(), stats.LastEvent
	s.Events, s.Unextracted, s.Subscribers = stats.Events, stats.Unextracted, stats.Subscribers
	for _, info := range store.Indexes() {
		s.Indexes = append(s.Indexes, info.Name)
	}
	return s
}

// adopt takes over a spec that asks for nothing that needs another copy: names, or
// indexes, which are built in place. A copy that needs listing is left to run, which
// is woken. It reports false for a resource that begins or ceases to be watched.
// Only Apply, of which there is one at a time, changes the spec.
func (i *Informer) adopt(spec cache.Spec) (bool, error) {
	before := i.Spec()
	if kept, err := i.respecify(before, spec); err != nil || !kept {
		return false, err
	}
	if !sameCopy(before, spec) {
		select {
		case i.respecified <- struct{}{}:
		default:
		}
	}
	i.settle()
	return true, nil
}

// respecify makes spec the one that is wanted, and its indexes those of the stores.
// It reports false for one that needs another informer.
func (i *Informer) respecify(before, spec cache.Spec) (bool, error) {
	i.indexing.Lock()
	defer i.indexing.Unlock()
	i.mu.Lock()
	feeds := []*feed{i.current, i.next}
	i.mu.Unlock()
	if before.Watch != spec.Watch || feeds[0] == nil && spec.Watch {
		return false, nil
	}
	if !sameCopy(before, spec) {
		if err := cache.CheckSpec(spec); err != nil {
			return false, fmt.Errorf("change %s: %w", i.resource, err)
		}
	}
	for _, f := range feeds {
		if f == nil {
			continue
		}
		// A Store that is being written makes this wait, and all else that is to be applied.
		if !reflect.DeepEqual(before.Columns, spec.Columns) {
			if err := f.store.SetColumns(spec.Columns); err != nil {
				return false, fmt.Errorf("change columns of %s: %w", i.resource, err)
			}
		}
		if maps.Equal(before.Indexes, spec.Indexes) {
			continue
		}
		if err := f.store.SetIndexes(spec.Indexes); err != nil {
			return false, fmt.Errorf("change indexes of %s: %w", i.resource, err)
		}
	}
	i.mu.Lock()
	i.spec = spec
	i.mu.Unlock()
	return true, nil
}

// sameCopy reports whether a copy made under a is also the copy b asks for:
// the same objects, with the same paths cut, under the same definition.
func sameCopy(a, b cache.Spec) bool {
	return sameRule(a, b) && a.CRDUID == b.CRDUID && a.CRDGeneration == b.CRDGeneration
}

// sameRule is sameCopy but for the definition of a custom resource.
func sameRule(a, b cache.Spec) bool {
	return a.Resource == b.Resource && a.Kind == b.Kind && a.Namespaced == b.Namespaced &&
		a.SameSelection(b) &&
		slices.Equal(a.Drop, b.Drop) && slices.Equal(a.Redact, b.Redact) &&
		a.Aggregated == b.Aggregated
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
