package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// succession is why the copy that is read from is to have a successor. Until that is
// complete, the copy answers on, as old as its age says.
type succession struct {
	reason string
	// history: the server is proven to have another history. Versions mean nothing
	// from one to the other, so another Store takes the place of the first, and
	// whoever watches has to list.
	history bool
	// foreign: it is another cluster's. Nothing of it is shown any more: who may see what
	// is decided by the cluster that answers now.
	foreign bool
	// replaced: it was the cluster's own until another one answered.
	replaced bool
}

// historyEnded is the succession after an errOtherHistory.
func historyEnded(err error) *succession {
	_, foreign := errors.AsType[*otherClusterError](err)
	return &succession{reason: err.Error(), history: true, foreign: foreign, replaced: foreign}
}

// tend keeps the present copy equal until ctx ends (nil) or it needs a successor.
func (i *Informer) tend(ctx context.Context) *succession {
	if why := i.outdated(); why != nil {
		return why
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, ended := i.feedNow(), make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, errOtherHistory) {
				return historyEnded(err)
			}
			return nil
		case <-i.respecified:
			if why := i.outdated(); why != nil {
				cancel()
				<-ended
				return why
			}
		}
	}
}

// outdated says why the present copy is not the one that is wanted; nil if it is.
func (i *Informer) outdated() *succession {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case sameCopy(i.current.spec, i.spec):
		return nil
	case sameRule(i.current.spec, i.spec):
		return &succession{reason: "the resource was defined anew, being listed"}
	default:
		return &succession{reason: "its rule has changed, being listed"}
	}
}

// succeed fills a successor of the present copy and has it take over. It returns
// nil when that is done, or why another one is needed.
func (i *Informer) succeed(ctx context.Context, why *succession) *succession {
	if i.feedNow().store.Version() != "" { // else there is one copy alone
		defer i.factory.tighten()()
	}
	spec := i.Spec()
	if i.takeAway(spec); !why.history && sameCopy(i.feedNow().spec, spec) {
		return nil
	}
	store, err := i.successor(spec, why)
	if err != nil {
		i.log.Error("cannot use the rule", "err", err) // adopt has checked it
		sleep(ctx, i.factory.options.retry.last)
		return why
	}
	next := i.newFeed(spec, store)
	if current := i.feedNow(); next.history != current.history && !why.history {
		// It ended since, and what is listed now is of the one after, of which the store must
		// have nothing of the copy.
		store.Close()
		return historyEnded(context.Cause(current.history))
	}
	// Another informerd may have been started again, and be behind what is held here.
	next.after = time.Now()
	if current := i.feedNow(); !why.history && current.store.Version() == "" {
		next.after = current.after
	}
	i.begin(why, next)
	defer i.settle()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- next.run(ctx) }()
	for {
		select {
		case err := <-ended:
			i.abandon(next)
			if errors.Is(err, errOtherHistory) {
				return historyEnded(err)
			}
			return why
		case <-i.respecified:
			if !sameCopy(next.spec, i.Spec()) {
				cancel()
				<-ended
				i.abandon(next)
				if why.history {
					return why
				}
				return i.outdated() // none, if what was wanted is back
			}
		case <-i.filled:
			if !next.synced() {
				continue
			}
			cancel()
			<-ended
			return i.takeOver(why, next)
		}
	}
}

// successor is the Store of a copy that is to take over. Where another history is to be listed, or
// nothing is held, it takes the place of the present one.
func (i *Informer) successor(spec cache.Spec, why *succession) (*cache.Store, error) {
	current := i.feedNow().store
	if why.history || current.Version() == "" {
		return i.factory.newStore(spec)
	}
	return current.Successor(spec, i.factory.storeOptions(spec))
}

// begin makes it known that next is being filled.
func (i *Informer) begin(why *succession, next *feed) {
	i.mu.Lock()
	i.lost = i.lost || why.history // nothing of it is saved any more
	i.foreign = i.foreign || why.foreign
	i.mu.Unlock()
	if why.history {
		i.dropSnapshot(why.reason)
	}
	i.mu.Lock()
	select {
	case <-i.filled: // of one before
	default:
	}
	i.next, i.succession = next, why.reason
	i.origin = i.cluster.status().UID
	i.turnLocked()
	i.mu.Unlock()
	i.settle()
}

// abandon closes a successor that will not take over.
func (i *Informer) abandon(next *feed) {
	i.mu.Lock()
	i.next, i.succession = nil, ""
	i.mu.Unlock()
	next.store.Close()
}

// takeOver puts next in the place of the present feed. In one history the Store
// stays, and gets what is different; in another one it is replaced. If only next
// proves that the history is another, takeOver says so, and nothing has changed.
func (i *Informer) takeOver(why *succession, next *feed) *succession {
	current := i.feedNow()
	after := &feed{
		informer: i, spec: next.spec, store: current.store, history: next.history,
		resuming: &handedOver{next.standings(), next.asListed(), next.known()}, served: next.servedBy(),
	}
	if next.resuming != nil {
		after.resuming, after.served = next.resuming, next.served
	}
	i.indexing.Lock()
	replaced := why.history || current.store.Version() == ""
	if !replaced {
		_, err := current.store.TakeOver(next.store)
		if errors.Is(err, cache.ErrWentBack) && !next.spec.Aggregated {
			i.indexing.Unlock()
			i.abandon(next)
			return i.wentBack(next, err)
		}
		if err != nil {
			i.log.Warn("the new copy cannot follow the old one, watches begin anew", "err", err)
			replaced = true
		}
	}
	if replaced {
		next.store.Abandon(current.store)
		after.store = next.store
	}
	i.mu.Lock()
	after.inheritLocked()
	i.current, i.next, i.succession = after, nil, ""
	i.lost = i.lost && !why.history
	i.foreign = i.foreign && why.replaced && i.cluster.other != nil // until it is removed
	indexes, columns := i.spec.Indexes, i.spec.Columns
	i.mu.Unlock()
	if err := errors.Join(after.store.SetIndexes(indexes), after.store.SetColumns(columns)); err != nil {
		i.log.Error("cannot build the indexes and columns of the new copy", "err", err)
	}
	i.indexing.Unlock()
	i.settle()
	i.mu.Lock()
	i.turnLocked()
	i.mu.Unlock()
	if replaced {
		// Whoever is told that a store stopped finds another in the View.
		current.store.Close()
	}
	level := slog.LevelInfo
	if why.history && i.cluster.presentHistory() != current.history {
		level = slog.LevelDebug // the cluster has said it of all of them
	}
	i.log.Log(context.Background(), level, "copy replaced", "reason", why.reason, "watchesAnew", replaced)
	return nil
}

// wentBack is about a successor whose lists prove that the history is not that of the
// present copy any more. As with a list of the present copy that does, see goesBack,
// it is the copies of the whole cluster that are of the history before.
func (i *Informer) wentBack(next *feed, err error) *succession {
	err = fmt.Errorf("%w: %w", errRewritten, err)
	if !next.ownHistory() {
		i.cluster.rewritten(next.history, err)
	}
	return historyEnded(err)
}

// ownHistory is that of its sources, which are of one resource.
func (f *feed) ownHistory() bool {
	sources, _ := f.running()
	return slices.ContainsFunc(sources, (*source).ownHistory)
}

// asListed reports whether all of its sources, which have ended, hold what they listed.
func (f *feed) asListed() bool {
	sources, _ := f.running()
	return !slices.ContainsFunc(sources, func(s *source) bool { return !s.asListed() })
}

// known is when the history of all its sources, which have ended, was known.
func (f *feed) known() (oldest time.Time) {
	sources, _ := f.running()
	for _, s := range sources {
		if oldest.IsZero() || s.known.Before(oldest) {
			oldest = s.known
		}
	}
	return oldest
}

// inheritLocked gives a feed that has not begun the standings of the one before it,
// so that there is a View of it at once.
func (f *feed) inheritLocked() {
	for namespace, before := range f.resuming.standings {
		s := f.newSource(namespace)
		s.standing, s.served = before, f.served
		f.sources = append(f.sources, s)
	}
}

func (f *feed) servedBy() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servedLocked()
}

// less is the rule of a copy that can be made of what is held now for spec: spec itself, or, if that
// asks for more as well, the most that both it and the present rule let be seen, for what is to be
// seen by nobody does not wait for the API server. false if there is nothing to take away.
func (i *Informer) less(spec cache.Spec) (less cache.Spec, ok bool) {
	current := i.feedNow()
	less = common(current.spec, spec)
	if takesAway(current.spec, spec) {
		less = spec
	}
	return less, !sameCopy(less, current.spec) && current.store.Version() != ""
}

// made is a copy of what is held under a rule that takes away from it.
func (i *Informer) made(current *feed, spec cache.Spec) *feed {
	store, err := current.store.Successor(spec, i.factory.storeOptions(spec))
	if err != nil {
		return nil
	}
	versions := current.store.Versions()
	var names []string
	for name := range versions {
		names = append(names, name)
	}
	store.SetSources(names)
	for _, name := range names {
		objs, err := reducedObjects(store, current.store.Holdings(name), spec)
		if err != nil {
			i.log.Warn("cannot apply the rule to what is held, listing", "err", err)
			store.Close()
			return nil
		}
		store.Replace(name, objs, versions[name])
	}
	return &feed{
		informer: i, spec: spec, store: store, history: current.history,
		resuming: &handedOver{standings: current.standings()}, served: current.servedBy(),
	}
}

// reducedObjects are what is held as the rule of store has it.
func reducedObjects(store *cache.Store, held cache.Holdings, spec cache.Spec) ([]*cache.Object, error) {
	objs := make([]*cache.Object, 0, held.Len())
	for _, o := range held.All() {
		objs = append(objs, o)
	}
	var workers errgroup.Group
	workers.SetLimit(cache.Workers())
	for part := range slices.Chunk(objs, reducedAtOnce) {
		workers.Go(func() error { return reduceObjects(store, part, spec) })
	}
	return objs, workers.Wait()
}

// reducedAtOnce is how many objects one processor reads one after the other: siblings are beside
// each other.
const reducedAtOnce = 256

// reduceObjects puts what store makes of objects in their place.
func reduceObjects(store *cache.Store, objs []*cache.Object, spec cache.Spec) error {
	var others cache.Yielder
	for n, o := range objs {
		others.Yield()
		err := o.ReadJSON(func(plain []byte) (err error) {
			objs[n], err = store.Decode(plain, spec.GVR.GroupVersion().String(), spec.Kind)
			return err
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", o.Key(), err)
		}
	}
	return nil
}

// dropsLastApplied reports whether spec says itself that the annotation of kubectl apply
// is to be dropped. Wherever something is redacted it is dropped, too.
func dropsLastApplied(spec cache.Spec) bool {
	return slices.ContainsFunc(spec.Drop, func(text string) bool {
		path, err := rawjson.ParsePath(text)
		if err != nil {
			return false
		}
		_, within := rawjson.LastApplied.Below(path)
		return within
	})
}

// takesAway reports whether spec asks for the objects of a copy made under before,
// with less of each. Indexed values are taken before paths are cut, so that an index
// over a path that was cut asks for more than is held.
func takesAway(before, spec cache.Spec) bool {
	alike := spec
	alike.Drop, alike.Redact = before.Drop, before.Redact
	if !sameCopy(before, alike) {
		return false
	}
	for _, path := range before.Drop {
		if !slices.Contains(spec.Drop, path) {
			return false
		}
	}
	if len(before.Redact) > 0 && len(spec.Redact) == 0 && !dropsLastApplied(spec) {
		return false // it was dropped with what was redacted
	}
	for _, path := range before.Redact {
		if !slices.Contains(spec.Redact, path) && !slices.Contains(spec.Drop, path) {
			return false
		}
	}
	for _, indexed := range spec.Indexes {
		for _, path := range slices.Concat(before.Drop, before.Redact) {
			if strings.HasPrefix(indexed, path) {
				return false
			}
		}
	}
	return true
}
