package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
	"github.com/informerd/informerd/cache/names"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Options of a Factory. Every zero value is useful.
type Options struct {
	// Snapshots is where copies are saved and found again; nil: nowhere.
	Snapshots cache.Snapshots
	// SnapshotsDisabled says why Snapshots is nil, for those who ask.
	SnapshotsDisabled string
	// SaveInterval is the time between commits; 1s if 0.
	SaveInterval time.Duration
	// Concurrency bounds how many resources of a cluster sync or relist at once; 8 if 0.
	// Each cluster has places of its own: one that hangs holds up no other. As many lists of
	// all clusters come in at once, or as there are processors: see intake.
	Concurrency int
	// VerifyInterval is the time between comparisons of a resource with the
	// API server; 0 for none.
	VerifyInterval time.Duration
	// Sound is the cache.StoreOptions.Sound of a kind; nil: of none.
	Sound func(kind schema.GroupKind) func(json []byte) bool
	// Tighten, if it is not nil, is called when a copy begins to be made beside the one that is
	// read, so that less garbage may lie about meanwhile; what it returns, when that is over.
	Tighten func() (loosen func())
	// NotForgotten is called when a snapshot that must not be kept could not be deleted, if
	// it is not nil: whoever gave it is to try again.
	NotForgotten func()
	// Other is called when another cluster answers by now than did, and whoever gave the
	// Factory the cluster is to Remove it: nothing of it is shown any more. It must not
	// wait. Nil: the other one takes its place, when everything is listed.
	Other func(cluster string)
	// Log gets state changes; discarded if nil.
	Log *slog.Logger

	// Tests are impatient.
	retry        retry
	verifyGrace  time.Duration
	lease        time.Duration
	upgradePause time.Duration
	compareLeast int
	accessRate   int
}

// retry bounds the exponential backoff after something that failed.
type retry struct{ first, last time.Duration }

// backoff starts anew. It grows over a dozen attempts and stays at the last.
func (r retry) backoff() wait.Backoff {
	return wait.Backoff{Duration: r.first, Factor: 1.7, Jitter: 0.3, Steps: 16, Cap: r.last}
}

// newStore makes the Store of a resource.
func (f *Factory) newStore(spec cache.Spec) (*cache.Store, error) {
	return cache.NewStore(spec, f.storeOptions(spec))
}

func (f *Factory) storeOptions(spec cache.Spec) cache.StoreOptions {
	options := cache.StoreOptions{Alike: f.alike.of(spec.GVR.GroupResource())}
	if f.options.Sound != nil {
		options.Sound = f.options.Sound(schema.GroupKind{Group: spec.GVR.Group, Kind: spec.Kind})
	}
	return options
}

// tighten is Options.Tighten.
func (f *Factory) tighten() (loosen func()) {
	if f.options.Tighten == nil {
		return func() {}
	}
	return f.options.Tighten()
}

// Factory is the dynamic informer factory: it makes the running informers equal
// the wanted set. Unlike client-go's, it stops and restarts one resource without
// touching another (kubernetes#79610), and keeps one shared informer for each.
//
// It is safe for concurrent use. Informers start with Apply and stop with the
// context of Run.
type Factory struct {
	options Options
	log     *slog.Logger
	loads   chan struct{} // semaphore over snapshots being read
	aheads  chan struct{} // semaphore over answers ahead of them: see Informer.Ahead
	intake  *intake       // of the lists of all clusters
	alike   alike

	ctx    context.Context // of all informers; ended by Run
	cancel context.CancelFunc
	saver  saver
	pulse  pulse // beats while Run runs

	listing sync.Mutex  // guards listed, beside mu, which is taken before it
	listed  []*Informer // all informers in order, nil after a change; never modified

	applying sync.Mutex // one Apply at a time; taken before mu
	mu       sync.RWMutex
	// guarded by mu
	clusters  map[string]*cluster
	informers map[cache.Resource]*Informer
	names     map[string]names.Index // by cluster
	// leaving are the clusters that are being removed.
	leaving map[string]bool
	// expected is the identity of each cluster that its snapshots know.
	expected map[string]string
	// discovered are the clusters whose informers are all there are to be.
	discovered map[string]bool
	// ended is when the last informer of a resource that is gone ended.
	ended   map[cache.Resource]time.Time
	running sync.WaitGroup // clusters; Add only under mu
	stopped bool
}

// NewFactory makes a factory with nothing to watch yet.
func NewFactory(options Options) *Factory {
	if options.SaveInterval <= 0 {
		options.SaveInterval = time.Second
	}
	if options.Concurrency <= 0 {
		options.Concurrency = 8
	}
	if options.retry.first <= 0 {
		options.retry = retry{first: 100 * time.Millisecond, last: 10 * time.Second}
	}
	if options.verifyGrace <= 0 {
		options.verifyGrace = verifyGrace
	}
	if options.upgradePause <= 0 {
		options.upgradePause = surveyPause
	}
	if options.lease <= 0 {
		options.lease = Lease
	}
	if options.accessRate <= 0 {
		options.accessRate = accessRate
	}
	if options.compareLeast <= 0 {
		options.compareLeast = compareLeast
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	f := &Factory{
		options:    options,
		log:        options.Log,
		loads:      make(chan struct{}, cache.Workers()),
		aheads:     make(chan struct{}, 1),
		intake:     newIntake(max(options.Concurrency, cache.Workers())),
		clusters:   map[string]*cluster{},
		informers:  map[cache.Resource]*Informer{},
		names:      map[string]names.Index{},
		leaving:    map[string]bool{},
		discovered: map[string]bool{},
		ended:      map[cache.Resource]time.Time{},
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.expected = expectedIdentities(options)
	return f
}

// expectedIdentities are those the snapshots of each cluster were made under.
func expectedIdentities(options Options) map[string]string {
	expected := map[string]string{}
	if options.Snapshots == nil {
		return expected
	}
	saved, err := options.Snapshots.Saved()
	if err != nil {
		options.Log.Warn("cannot read which clusters the snapshot holds", "err", err)
	}
	for _, s := range saved {
		expected[s.Spec.Cluster] = s.ClusterUID
	}
	return expected
}

// Run saves snapshots until ctx ends, then stops all informers, saves what is
// left, and returns when no goroutine of the factory remains. Snapshots may be
// closed after it.
func (f *Factory) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { f.repackLoop(ctx) })
	beside.Go(func() { f.tellStale(ctx) })
	beside.Go(func() { f.pulse.run(ctx) })
	f.saveLoop(ctx)
	beside.Wait()
	f.applying.Lock()
	defer f.applying.Unlock()
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.cancel()
	informers := f.Informers()
	for _, i := range informers {
		<-i.done
	}
	f.running.Wait()
	err := f.save()
	for _, i := range informers {
		i.stop()
	}
	return err
}

// repackInterval is the time between looks at how well objects are compressed.
const repackInterval = time.Second

// repackLoop keeps the objects of all stores compressed well until ctx ends. One
// goroutine does it for all, so that it never takes more than one processor.
func (f *Factory) repackLoop(ctx context.Context) {
	for sleep(ctx, repackInterval) {
		for _, i := range f.Informers() {
			if s := i.store(); s != nil && ctx.Err() == nil {
				s.Repack(ctx)
			}
		}
	}
}

// errFactoryStopped is returned to those who come too late.
var errFactoryStopped = errors.New("factory stopped")

// Expect makes a cluster known of which nothing else is known yet.
func (f *Factory) Expect(name string) error {
	_, err := f.cluster(name)
	return err
}

// Connect tells how a cluster is reached. Until then, and until the cluster
// answered who it is, its resources are served from their snapshots.
func (f *Factory) Connect(name string, config ClusterConfig) error {
	c, err := f.cluster(name)
	if err != nil {
		return err
	}
	if err := c.connect(config); err != nil {
		return fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	return nil
}

// Unreachable notes why a cluster cannot be connected to yet: a kubeconfig that
// is missing, for one.
func (f *Factory) Unreachable(name string, err error) {
	if c, cerr := f.cluster(name); cerr == nil {
		c.setError(err)
	}
}

// cluster returns the named cluster, started if it is new.
func (f *Factory) cluster(name string) (*cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.clusters[name]; ok {
		return c, nil
	}
	if f.stopped {
		return nil, errFactoryStopped
	}
	if f.leaving[name] {
		return nil, fmt.Errorf("cluster %s is being removed", name)
	}
	c := newCluster(name, f.expected[name], f.options.retry, f.log)
	c.rights = newRights(f.options.accessRate)
	c.syncs = make(chan struct{}, f.options.Concurrency)
	if f.options.Other != nil {
		c.other = func() { f.options.Other(name) }
	}
	f.clusters[name] = c
	ctx, cancel := context.WithCancel(f.ctx)
	c.end = cancel
	f.running.Go(func() {
		defer close(c.ended)
		c.run(ctx)
	})
	return c, nil
}

// Remove makes a cluster unknown: nobody finds it any more when it begins, nothing is asked
// of it any more when it returns, and nothing is kept of it, in the snapshots neither. Its
// objects are not deleted by that, they are only not known here: who follows them is not
// told of deletions but cut off, with ErrStopped, and finds no resource any more. A cluster
// that does not end, since something it waits for does not, holds up no other; until it has
// ended there can be none of its name. A cluster that is not known is none to remove.
func (f *Factory) Remove(name string) error {
	c, informers := f.takeOut(name)
	if c == nil {
		return nil
	}
	defer f.hasLeft(name)
	c.end()
	c.disconnect() // what waits for an answer waits no longer
	halt(informers)
	for _, i := range informers {
		i.stop()
	}
	var errs []error
	for _, i := range informers {
		if i.store() == nil {
			continue
		}
		if err := f.forget(i.resource, true); err != nil {
			errs = append(errs, fmt.Errorf("delete the snapshot of %s: %w", i.resource, err))
		}
	}
	<-c.ended
	f.log.Info("cluster removed", "cluster", name)
	return errors.Join(errs...)
}

// takeOut makes a cluster and its informers unknown, all at once. The cluster is nil if
// it was not known. Its name is taken until hasLeft.
func (f *Factory) takeOut(name string) (*cluster, []*Informer) {
	f.applying.Lock() // nobody starts informers of it meanwhile
	defer f.applying.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[name]
	if c == nil {
		return nil, nil
	}
	informers := f.ofLocked(name)
	for _, i := range informers {
		i.out.Store(true)
		delete(f.informers, i.resource)
		// Whoever finds the resource again one day finds another copy, which has a later
		// beginning by itself.
		f.ended[i.resource] = time.Now()
	}
	f.listed = nil
	f.leaving[name] = true
	delete(f.clusters, name)
	delete(f.names, name)
	delete(f.discovered, name)
	delete(f.expected, name)
	return c, informers
}

func (f *Factory) hasLeft(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.leaving, name)
}

// Apply makes the informers of a cluster equal specs: it starts what is new,
// stops what is not there any more, and restarts what cannot be changed in
// place; all others go on undisturbed. It is idempotent. What a rule newly drops or
// redacts is in no View any more when it returns.
//
// specs is everything known of the cluster, unwatched resources included. A
// resource missing from it is gone: its objects are deleted, with events, and
// its snapshot too.
func (f *Factory) Apply(clusterName string, specs []cache.Spec) error {
	return f.apply(clusterName, specs, true)
}

// ApplySaved is Apply as long as the cluster has not told which resources it has:
// specs are those that are known of a snapshot. All others are unknown, which is
// not the same as not there. Once Apply was called it is the same as Apply.
func (f *Factory) ApplySaved(clusterName string, specs []cache.Spec) error {
	return f.apply(clusterName, specs, false)
}

func (f *Factory) apply(clusterName string, specs []cache.Spec, all bool) error {
	adopted, err := f.exchangeAll(clusterName, specs, all)
	// To read a whole copy anew may take long, and other clusters go on meanwhile.
	ctx, cancel := context.WithTimeout(f.ctx, takeAwayLimit)
	defer cancel()
	for _, i := range adopted {
		i.awaitTakenAway(ctx)
	}
	return err
}

// exchangeAll makes the informers of a cluster equal specs, and returns those that went
// on, by another rule perhaps.
func (f *Factory) exchangeAll(clusterName string, specs []cache.Spec, all bool) (adopted []*Informer, err error) {
	f.applying.Lock()
	defer f.applying.Unlock()
	c, err := f.cluster(clusterName)
	if err != nil {
		return nil, err
	}
	var errs []error
	wanted := make(map[cache.Resource]cache.Spec, len(specs))
	for _, spec := range specs {
		if spec.Cluster != clusterName {
			errs = append(errs, fmt.Errorf("apply %s: it is of another cluster than %q", spec.Resource, clusterName))
			continue
		}
		if !spec.Namespaced {
			spec.Namespaces = nil // a rule for many resources may name some
		}
		wanted[spec.Resource] = spec
	}
	var gone, replaced []*Informer
	for _, i := range f.of(clusterName) {
		spec, ok := wanted[i.resource]
		if !ok {
			gone = append(gone, i)
			continue
		}
		kept, err := i.adopt(spec)
		errs = append(errs, err)
		if kept || err != nil {
			delete(wanted, i.resource)
			adopted = append(adopted, i)
			continue
		}
		replaced = append(replaced, i)
	}
	f.exchange(c, gone, replaced, wanted, all)
	return adopted, errors.Join(errs...)
}

// exchange takes out the informers of resources that are gone and puts those of
// specs in the place of the replaced ones and beside the rest; all says whether
// these are all that the cluster has. The caller holds applying, so that nobody
// else starts or stops informers meanwhile.
//
// Readers look at any time, and must neither take a part for the whole nor a
// resource that only gets another informer for one that does not exist. So a
// resource is known all the time, and the known ones change at once:
//
//  1. What ends is stopped, with its store still open.
//  2. Under one lock the new informers take the places of the old ones. They hold
//     nothing yet and do not run.
//  3. Subscribers of a resource that is gone see its objects deleted. They do not
//     where it is only watched in another version from now on: its objects are
//     there, and subscribers just end. Nobody else sees them deleted, neither a
//     list nor a save: at the version of the store they were there.
//  4. Only then are the old stores closed: whoever is told that a store stopped
//     finds another, or none, in its place, and knows that it must not go on
//     there from a version of this one. A store that is still in its place when
//     it stops is that of a Factory that ends.
//  5. The old snapshots are forgotten, which no save brings back: it sees the new
//     informers only, that have nothing to save before they start.
//  6. The new informers start.
func (f *Factory) exchange(c *cluster, gone, replaced []*Informer, specs map[cache.Resource]cache.Spec, all bool) {
	var added []*Informer
	for _, spec := range specs {
		added = append(added, newInformer(f, c, spec))
	}
	halt(slices.Concat(gone, replaced))
	f.noteEnded(slices.Concat(gone, replaced))
	f.put(c.name, gone, added, all)
	for _, i := range gone {
		i.out.Store(true) // a save may have begun before
		if s := i.store(); s != nil && !elsewhere(i, added) {
			s.DeleteAll(s.Version())
		}
	}
	for _, i := range slices.Concat(gone, replaced) {
		i.stop()
	}
	f.discard(gone, true)
	f.discard(replaced, false)
	for _, i := range added {
		i.follows(f.endedAt(i.resource))
		i.start(f.ctx)
	}
}

// elsewhere reports whether the resource of an informer that ends is among those that
// begin, in another version.
func elsewhere(ends *Informer, begin []*Informer) bool {
	return slices.ContainsFunc(begin, func(i *Informer) bool {
		return i.resource.GVR.GroupResource() == ends.resource.GVR.GroupResource()
	})
}

// halt ends informers and leaves their stores open. It returns when no goroutine
// of theirs is left.
func halt(informers []*Informer) {
	for _, i := range informers {
		i.cancel()
	}
	for _, i := range informers {
		i.halt()
	}
}

// noteEnded notes when informers ended, for those of the same resources later.
func (f *Factory) noteEnded(informers []*Informer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range informers {
		f.ended[i.resource] = time.Now()
	}
}

func (f *Factory) endedAt(r cache.Resource) time.Time {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ended[r]
}

// put makes the change known, all of it at once.
func (f *Factory) put(cluster string, gone, added []*Informer, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range gone {
		delete(f.informers, i.resource)
	}
	for _, i := range added {
		f.informers[i.resource] = i
	}
	f.listed = nil
	f.names[cluster] = names.New(specsOf(f.ofLocked(cluster)))
	f.discovered[cluster] = f.discovered[cluster] || all
}

func specsOf(informers []*Informer) []cache.Spec {
	specs := make([]cache.Spec, len(informers))
	for n, i := range informers {
		specs[n] = i.Spec()
	}
	return specs
}

// discard forgets the snapshots of informers that were stopped and taken out.
func (f *Factory) discard(informers []*Informer, gone bool) {
	for _, i := range informers {
		if i.store() != nil {
			if err := f.forget(i.resource, !gone); err != nil {
				i.log.Warn("cannot delete the snapshot", "err", err)
				if f.options.NotForgotten != nil {
					f.options.NotForgotten()
				}
			}
		}
		i.log.Info("informer stopped", "gone", gone)
	}
}

// Informer returns the informer of a resource.
func (f *Factory) Informer(r cache.Resource) (*Informer, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i, ok := f.informers[r]
	if !ok {
		return nil, fmt.Errorf("%w: %s", cache.ErrUnknownResource, r)
	}
	return i, nil
}

// Informers are all informers, those of unwatched resources included, in the
// order of Resource.Compare. Callers share the slice, which nobody may modify.
func (f *Factory) Informers() []*Informer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.listing.Lock()
	defer f.listing.Unlock()
	// To put thousands in order, or to copy them, takes longer than most of what is asked of
	// them, and many ask.
	if f.listed == nil {
		f.listed = slices.SortedFunc(maps.Values(f.informers), func(a, b *Informer) int { return a.resource.Compare(b.resource) })
	}
	return slices.Clip(f.listed)
}

func (f *Factory) of(cluster string) []*Informer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ofLocked(cluster)
}

func (f *Factory) ofLocked(cluster string) []*Informer {
	var out []*Informer
	for r, i := range f.informers {
		if r.Cluster == cluster {
			out = append(out, i)
		}
	}
	return out
}

// Clusters are all clusters, by name.
func (f *Factory) Clusters() []cache.ClusterStatus {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]cache.ClusterStatus, 0, len(f.clusters))
	for _, c := range f.clusters {
		out = append(out, f.statusLocked(c))
	}
	slices.SortFunc(out, func(a, b cache.ClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (f *Factory) statusLocked(c *cluster) cache.ClusterStatus {
	s := c.status()
	s.Discovered = f.discovered[c.name]
	return s
}

// namespaceStore is the copy of a cluster's namespaces, nil if there is none.
func (f *Factory) namespaceStore(cluster string) *cache.Store {
	i, err := f.Informer(cache.Resource{Cluster: cluster, GVR: namespaces})
	if err != nil {
		return nil
	}
	return i.View().Store(inside.Cache)
}
