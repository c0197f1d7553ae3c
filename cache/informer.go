package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Informer keeps the copy of one resource. All readers share it: however many
// there are, the API server sees one watch (one a namespace, where the cluster
// as a whole may not be watched).
//
// Its Store is replaced, and the old one closed, only when the server turns out
// to have another history than the copy; readers then see ErrStopped and ask
// for the Store again.
type Informer struct {
	resource Resource
	cluster  *cluster
	factory  *Factory
	log      *slog.Logger
	count    counters

	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu       sync.Mutex // guards all below
	spec     Spec
	store    *Store // nil when unwatched
	sources  []*source
	failure  error // why there is no store or no source
	state    State
	reason   string
	since    time.Time
	contact  time.Time
	changed  chan struct{} // closed and replaced when state changes
	snapshot snapshotState
	restored Saved // what the store was filled from, until its identity was checked
	origin   origin
	verified time.Time
}

// origin is the cluster that a store is of, and the version of its API server that
// the store was begun with.
type origin struct{ uid, version string }

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

const (
	// forbiddenRetry is how often a refused resource is tried again in the end.
	// It begins sooner: an API server that has just started refuses everybody
	// but its administrators until it has read its roles.
	forbiddenRetry = 5 * time.Minute
	forbiddenFirst = 2 * time.Second
	// maxNamespaceSources bounds the watches one resource is split into; beyond
	// it, one watch of everything filtered here is cheaper for everybody.
	maxNamespaceSources = 16
)

func newInformer(f *Factory, c *cluster, spec Spec) *Informer {
	i := &Informer{
		resource: spec.Resource, cluster: c, factory: f, spec: spec,
		log:     f.log.With("gvr", spec.Resource.String()),
		cancel:  func() {},
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		state:   Unwatched,
		since:   time.Now(),
	}
	if !spec.Watch {
		i.reason = "left out by the configuration"
		close(i.done)
		return i
	}
	i.state = Syncing
	i.store, i.failure = NewStore(spec, StoreOptions{})
	return i
}

// start runs the informer until stop or until ctx ends.
func (i *Informer) start(ctx context.Context) {
	if i.store == nil {
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

// stop ends the informer and closes its store. It returns when no goroutine of
// it is left.
func (i *Informer) stop() {
	i.cancel()
	<-i.done
	if s := i.Store(); s != nil {
		s.Close()
	}
}

// Resource is what the informer watches.
func (i *Informer) Resource() Resource { return i.resource }

// Spec says how it is watched.
func (i *Informer) Spec() Spec {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.spec
}

// Store holds the objects; nil for a resource that is not watched. It may hold
// nothing yet: Status says whether it can be read.
func (i *Informer) Store() *Store {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.store
}

// WaitForSync returns when there is data to answer from, or ctx ended, or the
// informer was stopped.
func (i *Informer) WaitForSync(ctx context.Context) error {
	for {
		i.mu.Lock()
		state, changed := i.state, i.changed
		i.mu.Unlock()
		switch {
		case state.Readable():
			return nil
		case state == Unwatched:
			return ErrNotWatched
		}
		select {
		case <-changed:
		case <-i.done:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (i *Informer) run(ctx context.Context) {
	i.restore()
	i.settle()
	select {
	case <-ctx.Done():
		return
	case <-i.cluster.identified:
	}
	i.checkIdentity()
	var verifying sync.WaitGroup
	verifying.Go(func() { i.verifyLoop(ctx) })
	defer verifying.Wait()
	backoff := i.factory.options.retry.backoff()
	namespaces := i.allowedBefore()
	for ctx.Err() == nil {
		var err error
		if len(namespaces) > 0 {
			err = i.watchUntilRightsChange(ctx, namespaces)
		} else {
			err = i.watch(ctx, i.namespaces())
		}
		if errors.Is(err, errForbidden) || err == nil && len(namespaces) > 0 {
			err = i.watchAllowed(ctx, cmp.Or(err, errForbidden))
		}
		namespaces = nil
		if errors.Is(err, errOtherHistory) {
			i.startOver(err.Error())
		}
		i.fail(err)
		sleep(ctx, backoff.Step())
	}
}

// namespaces are the sources of the resource: one for all, unless the
// configuration names a few literally.
func (i *Informer) namespaces() []string {
	spec := i.Spec()
	if !spec.Namespaced || len(spec.Namespaces) == 0 || len(spec.Namespaces) > maxNamespaceSources {
		return []string{""}
	}
	if slices.ContainsFunc(spec.Namespaces, isGlob) {
		return []string{""}
	}
	names := slices.Clone(spec.Namespaces)
	slices.Sort(names)
	return slices.Compact(names)
}

// allowedBefore are the namespaces that were watched one by one, since all of them
// might not be, when what is held was saved; none if it is otherwise. To begin with
// all would give up what can be resumed.
func (i *Informer) allowedBefore() []string {
	if i.namespaces()[0] != "" {
		return nil
	}
	versions := i.Store().sourceVersions()
	if versions[""] != "" {
		return nil
	}
	return slices.Sorted(maps.Keys(versions))
}

// watch runs one source for each namespace until ctx ends or one of them ends
// for a reason that concerns all.
func (i *Informer) watch(ctx context.Context, namespaces []string) error {
	store, spec := i.Store(), i.Spec()
	store.SetSources(namespaces)
	versions := store.sourceVersions()
	i.mu.Lock()
	served := i.servedLocked()
	i.mu.Unlock()
	var sources []*source
	for _, ns := range namespaces {
		s := i.newSource(store, spec, ns)
		if v := versions[ns]; v != "" && !spec.Aggregated {
			s.resume = v
			s.health.synced, s.health.served = true, served
		}
		sources = append(sources, s)
	}
	i.mu.Lock()
	i.sources, i.failure = sources, nil
	i.mu.Unlock()
	i.settle()
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range sources {
		g.Go(func() error { return i.keep(ctx, s) })
	}
	return g.Wait()
}

// servedLocked is the version of the API server that all of the copy was listed
// from, "" if parts of it were listed from different ones.
func (i *Informer) servedLocked() string {
	if len(i.sources) == 0 {
		return i.origin.version
	}
	served := i.sources[0].get().served
	for _, s := range i.sources[1:] {
		if s.get().served != served {
			return ""
		}
	}
	return served
}

func (i *Informer) newSource(store *Store, spec Spec, namespace string) *source {
	log := i.log
	if namespace != "" {
		log = log.With("namespace", namespace)
	}
	return &source{
		namespace: namespace, spec: spec, store: store, cluster: i.cluster,
		syncs: i.factory.syncs, count: &i.count, changed: i.settle, log: log,
		relist: make(chan struct{}, 1), retry: i.factory.options.retry, grace: i.factory.options.verifyGrace,
		// Aggregated API servers are asked for plain lists: not all of them
		// know streaming ones, and some ignore the parameter in silence.
		noStreaming: spec.Aggregated,

		compareLeast: i.factory.options.compareLeast,
		health:       health{served: i.cluster.status().Version},
	}
}

// keep runs a source again and again. A refused namespace is retried slowly and
// leaves the others alone; a refused cluster is the caller's business.
func (i *Informer) keep(ctx context.Context, s *source) error {
	backoff, refused := s.retry.backoff(), refusedBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		err := s.run(ctx)
		if time.Since(began) > forbiddenRetry {
			refused = refusedBackoff()
		}
		switch {
		case err == nil:
		case errors.Is(err, errOtherHistory):
			return err
		case errors.Is(err, errForbidden) && s.namespace == "":
			// Some namespaces may be allowed all the same: not forbidden yet.
			s.update(func(h *health) { h.current, h.err = false, err })
			return err
		case errors.Is(err, errForbidden):
			s.update(func(h *health) { h.forbidden, h.current, h.err = true, false, err })
			sleep(ctx, refused.Step())
		default:
			s.update(func(h *health) { h.current, h.err = false, err })
			sleep(ctx, backoff.Step())
		}
		s = i.successor(s)
	}
	return nil
}

// successor is the source that goes on where s ended.
func (i *Informer) successor(s *source) *source {
	next := i.newSource(s.store, s.spec, s.namespace)
	next.noStreaming, next.noPlain = s.noStreaming, s.noPlain
	next.health = s.get()
	if v := s.store.sourceVersions()[s.namespace]; v != "" && !s.spec.Aggregated {
		next.resume = v
	}
	i.mu.Lock()
	if at := slices.Index(i.sources, s); at >= 0 {
		i.sources = slices.Clone(i.sources)
		i.sources[at] = next
	}
	i.mu.Unlock()
	return next
}

// watchAllowed watches the namespaces that may be read where the cluster may
// not, until the rights change.
func (i *Informer) watchAllowed(ctx context.Context, cause error) error {
	refused := refusedBackoff()
	for ctx.Err() == nil {
		allowed, err := i.allowed(ctx)
		if err != nil {
			i.log.Debug("cannot find out which namespaces may be read", "err", err)
		}
		if slices.Contains(allowed, "") {
			return nil // all of them again
		}
		if len(allowed) == 0 {
			i.fail(cause)
			sleep(ctx, refused.Step())
			continue
		}
		i.log.Debug("watching only the namespaces that may be read", "namespaces", allowed)
		if err := i.watchUntilRightsChange(ctx, allowed); err != nil {
			return err
		}
	}
	return nil
}

// watchUntilRightsChange asks for the rights now and then, beside the watch.
func (i *Informer) watchUntilRightsChange(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		refused := refusedBackoff()
		for sleep(ctx, refused.Step()) {
			if now, err := i.allowed(ctx); err == nil && !slices.Equal(now, namespaces) {
				cancel()
			}
		}
	})
	defer cancel()
	return i.watch(ctx, namespaces)
}

func refusedBackoff() wait.Backoff {
	return wait.Backoff{Duration: forbiddenFirst, Factor: 2.5, Jitter: 0.2, Steps: 8, Cap: forbiddenRetry}
}

// fail notes why there is no source running.
func (i *Informer) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	i.mu.Lock()
	i.failure = err
	i.mu.Unlock()
	i.settle()
}

// settle works out the state from the sources' health, and tells and logs it if
// it changed.
func (i *Informer) settle() {
	i.mu.Lock()
	state, reason, contact := i.judgeLocked()
	before := i.state
	changed := state != before
	if changed {
		i.state, i.since = state, time.Now()
		close(i.changed)
		i.changed = make(chan struct{})
	}
	i.reason = reason
	if contact.After(i.contact) {
		i.contact = contact
	}
	i.mu.Unlock()
	if changed {
		i.logState(before, state, reason)
	}
}

// judgeLocked is the state machine. A resource of several sources is as good as
// the worst of those that may be read.
func (i *Informer) judgeLocked() (state State, reason string, contact time.Time) {
	switch {
	case !i.spec.Watch:
		return Unwatched, "left out by the configuration", contact
	case i.store == nil:
		return Failed, i.failure.Error(), contact
	case errors.Is(i.failure, errForbidden):
		return Forbidden, i.failure.Error(), contact
	}
	if len(i.sources) == 0 {
		if i.store.Version() == "" {
			return Syncing, i.waitingForLocked(), contact
		}
		return Warm, i.waitingForLocked(), i.snapshot.committed
	}
	var reasons []string
	refused := 0
	for _, s := range i.sources {
		h := s.get()
		if h.contact.After(contact) {
			contact = h.contact
		}
		if h.err != nil {
			reasons = append(reasons, h.err.Error())
		}
		if h.forbidden {
			refused++
			continue
		}
		if v := h.state(); state == "" || rank(v) > rank(state) {
			state = v
		}
	}
	if refused == len(i.sources) {
		state = Forbidden
	}
	slices.Sort(reasons)
	reason = strings.Join(slices.Compact(reasons), "; ")
	if reason == "" {
		reason = defaultReason(state)
	}
	return state, reason, contact
}

func (i *Informer) waitingForLocked() string {
	if i.failure != nil {
		return i.failure.Error()
	}
	select {
	case <-i.cluster.identified:
		return "starting"
	default:
		return "waiting for the API server: " + i.cluster.status().Err
	}
}

func defaultReason(state State) string {
	switch state {
	case Syncing:
		return "first sync under way"
	case Warm:
		return "resuming from the snapshot, not yet proven caught up"
	case Stale:
		return "catching up after an outage"
	}
	return ""
}

// rank orders states from good to bad.
func rank(s State) int { return slices.Index([]State{Live, Warm, Stale, Syncing, Failed}, s) }

func (h health) state() State {
	switch {
	case !h.synced && h.permanent:
		return Failed
	case !h.synced:
		return Syncing
	case h.current:
		return Live
	case h.proven:
		return Stale
	default:
		return Warm
	}
}

// logState says what an operator wants to know: once a change, and not once a
// resource when the API server as a whole is away.
func (i *Informer) logState(before, after State, reason string) {
	level := slog.LevelInfo
	switch {
	case after == Forbidden || after == Failed:
		level = slog.LevelWarn
	case after == Live && before != Stale, after == Warm, after == Syncing:
		level = slog.LevelDebug
	case !i.cluster.status().Reachable || before == Stale || after == Stale:
		level = slog.LevelDebug
	}
	i.log.Log(context.Background(), level, "state changed", "from", before, "to", after, "reason", reason)
}

// Status is what is known of the resource now.
func (i *Informer) Status() Status {
	i.mu.Lock()
	s := Status{
		Spec: i.spec, State: i.state, Reason: i.reason, Since: i.since, Contact: i.contact,
		Relists: i.count.relists.Load(), Compared: i.count.compared.Load(), Fetched: i.count.fetched.Load(), Expired: i.count.expired.Load(), Restarts: i.count.restarts.Load(),
		Undecoded: i.count.undecoded.Load(), Mended: i.count.mended.Load(), Verified: i.verified,
		SnapshotAt: i.snapshot.committed, SnapshotDrops: i.snapshot.drops, SnapshotReason: i.snapshot.reason,
	}
	store, sources := i.store, i.sources
	for _, src := range i.sources {
		if c := src.get().contact; c.After(s.Contact) {
			s.Contact = c
		}
	}
	i.mu.Unlock()
	if store == nil {
		return s
	}
	s.Missing = missing(store, sources)
	stats := store.Stats()
	s.Objects, s.Bytes, s.RawBytes = stats.Objects, stats.Bytes, stats.RawBytes
	s.Dictionaries, s.Trainings, s.Repacked = stats.Dictionaries, stats.Trainings, stats.Repacked
	s.ResourceVersion, s.LastEvent = store.Version(), stats.LastEvent
	s.Events, s.Unextracted, s.Subscribers = stats.Events, stats.Unextracted, stats.Subscribers
	for _, info := range store.Indexes() {
		s.Indexes = append(s.Indexes, info.Name)
	}
	return s
}

// missing says of each namespace that is not held why that is so.
func missing(store *Store, sources []*source) (all []MissingNamespace) {
	if len(sources) == 1 && sources[0].namespace == "" {
		return nil // as nearly always, and asked for with each request
	}
	for _, held := range store.Sources() {
		if held.Held || held.Namespace == "" {
			continue
		}
		m := MissingNamespace{Namespace: held.Namespace, State: Syncing, Reason: defaultReason(Syncing)}
		for _, src := range sources {
			if src.namespace == held.Namespace {
				m.State, m.Reason = src.get().missing()
			}
		}
		all = append(all, m)
	}
	return all
}

// missing is why a source's objects are not there.
func (h health) missing() (State, string) {
	state := h.state()
	if h.forbidden {
		state = Forbidden
	}
	if h.err != nil {
		return state, h.err.Error()
	}
	return state, defaultReason(state)
}

// adopt takes over a spec that asks for nothing that needs another store. It
// reports false when it does. Nobody waits while indexes are built: mu is not held
// then, and only Apply, of which there is one at a time, changes the spec.
func (i *Informer) adopt(spec Spec) (bool, error) {
	for {
		i.mu.Lock()
		before, store := i.spec, i.store
		i.mu.Unlock()
		if before.Watch != spec.Watch || !sameScope(before, spec) || store == nil && spec.Watch {
			return false, nil
		}
		if store != nil && !maps.Equal(before.Indexes, spec.Indexes) {
			if err := store.SetIndexes(spec.Indexes); err != nil {
				return false, fmt.Errorf("change indexes of %s: %w", i.resource, err)
			}
		}
		i.mu.Lock()
		replaced := i.store != store // meanwhile, by one with the indexes of before
		if !replaced {
			i.spec = spec
		}
		i.mu.Unlock()
		if !replaced {
			return true, nil
		}
	}
}

// sameScope reports whether a copy made under a is also the copy b asks for:
// the same objects, with the same paths cut, under the same definition.
func sameScope(a, b Spec) bool {
	return a.Resource == b.Resource && a.Kind == b.Kind && a.Namespaced == b.Namespaced &&
		slices.Equal(a.Namespaces, b.Namespaces) &&
		a.LabelSelector == b.LabelSelector && a.FieldSelector == b.FieldSelector &&
		slices.Equal(a.Drop, b.Drop) && slices.Equal(a.Redact, b.Redact) &&
		a.Aggregated == b.Aggregated &&
		a.CRDUID == b.CRDUID && a.CRDGeneration == b.CRDGeneration
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
