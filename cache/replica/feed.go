package replica

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/informerd/informerd/cache"
)

// feed keeps one Store equal to what a cluster has of a resource, under one Spec
// and in one history. Its informer replaces it, by one that fills behind it, when
// either changes.
type feed struct {
	informer *Informer
	spec     cache.Spec
	store    *cache.Store
	// history is the one of the cluster that the store is of. It ends when another is
	// proven, whichever resource found it out.
	history context.Context
	// after is when a copy of the resource ended of which this one does not know whether
	// it is further: its history, or its informer, did. Zero: there was none.
	after time.Time
	// resuming has the standings of the feed that this one follows.
	resuming *handedOver

	mu      sync.Mutex // guards all below
	sources []*source
	failure error // why there is no source running
	served  string
}

// handedOver is what a feed inherits from the one before it: the standing of each
// source. If what that one holds is just as it was listed a moment ago, versions need
// not be judged again; known is when its history was.
type handedOver struct {
	standings map[string]standing
	listed    bool
	known     time.Time
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

// run keeps the store equal until ctx ends (nil) or the history turns out to be
// another (errOtherHistory).
func (f *feed) run(ctx context.Context) error {
	backoff := f.informer.factory.options.retry.backoff()
	namespaces := f.allowedBefore()
	for ctx.Err() == nil {
		var err error
		if len(namespaces) > 0 {
			err = f.watchUntilRightsChange(ctx, namespaces)
		} else {
			err = f.watch(ctx, f.namespaces())
		}
		if errors.Is(err, errForbidden) || err == nil && len(namespaces) > 0 {
			err = f.watchAllowed(ctx, cmp.Or(err, errForbidden))
		}
		namespaces = nil
		if errors.Is(err, errOtherHistory) {
			return err
		}
		f.fail(err)
		sleep(ctx, backoff.Step())
	}
	return nil
}

// namespaces are the sources of the resource: one for all, unless the
// configuration names a few literally.
func (f *feed) namespaces() []string {
	if !f.spec.Namespaced || len(f.spec.Namespaces) == 0 || len(f.spec.Namespaces) > maxNamespaceSources {
		return []string{""}
	}
	if slices.ContainsFunc(f.spec.Namespaces, cache.IsGlob) {
		return []string{""}
	}
	names := slices.Clone(f.spec.Namespaces)
	slices.Sort(names)
	return slices.Compact(names)
}

// allowedBefore are the namespaces that were watched one by one, since all of them
// might not be, when what is held was saved; none if it is otherwise. To begin with
// all would give up what can be resumed.
func (f *feed) allowedBefore() []string {
	if f.namespaces()[0] != "" {
		return nil
	}
	versions := f.store.Versions()
	if versions[""] != "" {
		return nil
	}
	return slices.Sorted(maps.Keys(versions))
}

// watch runs one source for each namespace until ctx ends or one of them ends
// for a reason that concerns all.
func (f *feed) watch(ctx context.Context, namespaces []string) error {
	f.store.SetSources(namespaces)
	versions := f.store.Versions()
	f.mu.Lock()
	served := f.servedLocked()
	f.mu.Unlock()
	var sources []*source
	for _, ns := range namespaces {
		s := f.newSource(ns)
		if v := versions[ns]; v != "" && !f.spec.Aggregated {
			s.resume, s.served = v, served
			s.standing = f.informer.restoredStanding()
			if h := f.resuming; h != nil {
				if before, ok := h.standings[ns]; ok {
					s.standing, s.judged, s.known = before, h.listed, h.known
				}
			}
		}
		sources = append(sources, s)
	}
	f.resuming = nil
	f.mu.Lock()
	f.sources, f.failure = sources, nil
	f.mu.Unlock()
	f.informer.settle()
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range sources {
		g.Go(func() error { return f.keep(ctx, s) })
	}
	return g.Wait()
}

// servedLocked is the version of the API server that all of the copy was listed
// from, "" if parts of it were listed from different ones.
func (f *feed) servedLocked() string {
	if len(f.sources) == 0 {
		return f.served
	}
	served := f.sources[0].servedBy()
	for _, s := range f.sources[1:] {
		if s.servedBy() != served {
			return ""
		}
	}
	return served
}

func (f *feed) newSource(namespace string) *source {
	i := f.informer
	log := i.log
	if namespace != "" {
		log = log.With("namespace", namespace)
	}
	o := i.factory.options
	return &source{
		namespace: namespace, spec: f.spec, store: f.store, cluster: i.cluster,
		syncs: i.cluster.syncs, intake: i.factory.intake, count: &i.count, changed: i.settle, log: log,
		relist: make(chan relistDemand, 1), renew: make(chan struct{}, 1),
		retry: o.retry, lease: o.lease, pulse: &i.factory.pulse, grace: o.verifyGrace,
		// Aggregated API servers are asked for plain lists: not all of them
		// know streaming ones, and some ignore the parameter in silence.
		noStreaming:  f.spec.Aggregated,
		history:      f.history,
		after:        f.after,
		compareLeast: o.compareLeast,
	}
}

// keep runs a source again and again. A refused namespace is retried slowly and
// leaves the others alone; a refused cluster is the caller's business.
func (f *feed) keep(ctx context.Context, s *source) error {
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
			s.update(func(h *standing) { h.doubted(err) })
			return err
		case errors.Is(err, errForbidden):
			s.update(func(h *standing) { h.refused = true; h.doubted(err) })
			sleep(ctx, refused.Step())
		default:
			s.update(func(h *standing) { h.doubted(err) })
			sleep(ctx, backoff.Step())
		}
		s = f.successor(s)
	}
	return nil
}

// successor is the source that goes on where s ended.
func (f *feed) successor(s *source) *source {
	next := f.newSource(s.namespace)
	next.noStreaming, next.noPlain = s.noStreaming, s.noPlain
	next.relist = s.relist // what was demanded of s is not lost
	next.apart.Store(s.apart.Load())
	next.bookmarked.Store(s.bookmarked.Load())
	next.standing, next.served = s.get(), s.servedBy()
	if v := s.store.Versions()[s.namespace]; v != "" && !f.spec.Aggregated {
		next.resume = v
	}
	f.mu.Lock()
	if at := slices.Index(f.sources, s); at >= 0 {
		f.sources = slices.Clone(f.sources)
		f.sources[at] = next
	}
	f.mu.Unlock()
	return next
}

// watchAllowed watches the namespaces that may be read where the cluster may
// not, until the rights change.
func (f *feed) watchAllowed(ctx context.Context, cause error) error {
	refused := refusedBackoff()
	for ctx.Err() == nil {
		allowed, err := f.allowed(ctx, f.progress(cause))
		if err != nil {
			f.informer.log.Debug("cannot find out which namespaces may be read", "err", err)
		}
		if slices.Contains(allowed, "") {
			return nil // all of them again
		}
		if len(allowed) == 0 {
			f.fail(cause)
			sleep(ctx, refused.Step())
			continue
		}
		f.informer.log.Debug("watching only the namespaces that may be read", "namespaces", allowed)
		if err := f.watchUntilRightsChange(ctx, allowed); err != nil {
			return err
		}
	}
	return nil
}

// watchUntilRightsChange asks for the rights now and then, beside the watch.
func (f *feed) watchUntilRightsChange(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		refused := refusedBackoff()
		for sleep(ctx, refused.Step()) {
			if now, err := f.allowed(ctx, func(int, int) {}); err == nil && !slices.Equal(now, namespaces) {
				cancel()
			}
		}
	})
	defer cancel()
	return f.watch(ctx, namespaces)
}

func refusedBackoff() wait.Backoff {
	return wait.Backoff{Duration: forbiddenFirst, Factor: 2.5, Jitter: 0.2, Steps: 8, Cap: forbiddenRetry}
}

// fail notes why there is no source running.
func (f *feed) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	f.mu.Lock()
	f.failure = err
	f.mu.Unlock()
	f.informer.settle()
}

// running are the sources, and why there are none.
func (f *feed) running() ([]*source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sources, f.failure
}

// synced reports whether every source that may be read has delivered its
// objects. Half of a resource is never saved and never takes over.
func (f *feed) synced() bool {
	sources, _ := f.running()
	for _, s := range sources {
		if h := s.get(); !h.held && !h.refused {
			return false
		}
	}
	return len(sources) > 0
}

// standings are those of the sources now, for a feed that goes on with the store.
func (f *feed) standings() map[string]standing {
	sources, _ := f.running()
	all := make(map[string]standing, len(sources))
	for _, s := range sources {
		all[s.namespace] = s.get()
	}
	return all
}
