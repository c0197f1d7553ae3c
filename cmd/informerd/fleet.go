package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/discovery"
)

// fleetCaches is what a fleet needs of replica.Factory.
type fleetCaches interface {
	caches
	Expect(cluster string) error
	Remove(cluster string) error
}

const (
	// folderPoll is how often folders of kubeconfigs are looked at.
	folderPoll = time.Second
	// settleAfter is how long after the start it may take until folders hold what they are
	// to hold: what is mounted there may come later, or be written anew just then. Until
	// then nothing that the snapshot has is taken for what the configuration leaves out.
	settleAfter = time.Minute
	// twinPoll is how often it is looked at whether two clusters are the same one.
	twinPoll = 10 * time.Second
)

// fleet keeps what there is of each cluster equal to what the configuration, and the
// folders it names, have: it is the only one to add and remove clusters. Clusters are
// apart: what is wrong with one, its kubeconfig included, changes nothing for the others.
//
// What serves a cluster is there before its copy, and goes after it: nobody sees a copy
// whose door has been taken away.
type fleet struct {
	caches  fleetCaches
	saved   func() []cache.Saved
	folders *folders
	log     *slog.Logger

	// What belongs to each cluster beside its copy; set before start.

	added     []func(cluster string) (run func(context.Context) error) // run may be nil
	connected []func(cluster string, config replica.ClusterConfig) error
	heard     func(cluster string, set discovery.Set)
	removed   []func(cluster string)
	// route is that of each keeper; nil where there are no other replicas.
	route func(cluster string, a *access) (*access, error)
	// changed is called when clusters came or went.
	changed func()
	// settled is called once, when all clusters that there are to be are known.
	settled func(rules []config.Rule, clusters []config.Cluster)

	poll, settleAfter time.Duration
	began             time.Time
	wake              chan struct{} // holds one: another configuration holds, or a cluster has ended

	mu      sync.Mutex // guards all below
	cfg     *config.Config
	found   foundClusters // written by look alone
	isDone  bool          // settled was called: all clusters there are to be are known
	members map[string]*member

	// Of start and, after it, update alone.
	said map[string]bool // what was said to be wrong and is so still
}

// member is one cluster of a fleet.
type member struct {
	cluster config.Cluster
	keeper  *keeper
	runs    []func(context.Context) error
	stop    context.CancelFunc // nil until it runs
	done    chan struct{}      // closed when nothing of it runs any more
	leaving bool               // it is being removed; of update alone

	other atomic.Bool // another cluster answers by now, or its configuration leads to one
}

func newFleet(cfg *config.Config, c fleetCaches, saved func() []cache.Saved, log *slog.Logger) *fleet {
	f := &fleet{
		caches: c, saved: saved, log: log, folders: newFolders(), poll: folderPoll, settleAfter: settleAfter, began: time.Now(), cfg: cfg,
		wake: make(chan struct{}, 1), members: map[string]*member{}, said: map[string]bool{},
		changed: func() {}, settled: func([]config.Rule, []config.Cluster) {},
	}
	f.look()
	return f
}

// knows reports whether a cluster is one of the configuration, or may be one: what a
// folder holds that cannot be read, or may not be there yet, is not known.
func (f *fleet) knows(cluster string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.certainLocked() || slices.ContainsFunc(f.found.all, func(c config.Cluster) bool { return c.Name == cluster })
}

// certainLocked reports whether it is certain which clusters there are not to be.
func (f *fleet) certainLocked() bool {
	return len(f.cfg.Folders) == 0 || f.found.whole && (f.isDone || time.Since(f.began) > f.settleAfter)
}

// discovered reports whether all clusters have told which resources they have.
func (f *fleet) discovered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if !m.keeper.isDiscovered() {
			return false
		}
	}
	return len(f.members) > 0
}

// config is the configuration that holds.
func (f *fleet) config() *config.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg
}

// present are the rules and the clusters that there are to be now; false if that is not
// certain.
func (f *fleet) present() ([]config.Rule, []config.Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg.Resources, f.found.all, f.certainLocked()
}

// configure takes over another configuration. Rules are taken over at once, clusters come
// and go soon after: it does not wait for them.
func (f *fleet) configure(cfg *config.Config) {
	f.mu.Lock()
	f.cfg = cfg
	for _, m := range f.members {
		m.keeper.setRules(cfg.Resources)
	}
	f.mu.Unlock()
	f.wakeUp()
}

// move has every cluster found out again how it is reached.
func (f *fleet) move() {
	for _, m := range f.all() {
		m.keeper.move()
	}
}

func (f *fleet) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// look finds out which clusters there are to be.
func (f *fleet) look() foundClusters {
	found := f.folders.clusters(f.config())
	f.say(found.wrong)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = found
	return found
}

// say tells what is wrong when it begins to be.
func (f *fleet) say(wrong []error) {
	said := map[string]bool{}
	for _, err := range wrong {
		said[err.Error()] = true
		if !f.said[err.Error()] {
			f.log.Error("some clusters are not as the configuration says", "err", err)
		}
	}
	f.said = said
}

// start begins with the clusters there are, from what the snapshot knows of them. It must
// be called once, before Run.
func (f *fleet) start() {
	for _, c := range f.found.all {
		f.add(c)
	}
	f.settle()
}

// settle calls settled when it is certain which clusters there are, and reports whether
// that was now.
func (f *fleet) settle() bool {
	f.mu.Lock()
	certain := f.certainLocked() && !f.isDone
	f.isDone = f.isDone || certain
	f.mu.Unlock()
	if certain {
		f.settled(f.config().Resources, f.found.all)
	}
	return certain
}

// Run follows the configuration until ctx ends; then nothing of any cluster runs.
func (f *fleet) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range f.all() {
		f.run(ctx, g, m)
	}
	g.Go(func() error {
		tick := time.NewTicker(f.poll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-f.wake:
			case <-tick.C:
			}
			f.update(ctx, g)
		}
	})
	g.Go(func() error { return f.sayTwins(ctx) })
	return g.Wait()
}

func (f *fleet) all() (all []*member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		all = append(all, m)
	}
	return all
}

// update makes the clusters those that there are to be now. While a folder cannot be read
// none is removed: nobody knows what it holds.
func (f *fleet) update(ctx context.Context, g *errgroup.Group) {
	found := f.look()
	changed := false
	for _, m := range f.all() {
		kept := !found.readable && m.cluster.Follows || slices.ContainsFunc(found.all, func(c config.Cluster) bool { return c.Name == m.cluster.Name })
		if !m.leaving && (!kept || m.other.Load()) {
			m.leaving = true
			g.Go(func() error {
				f.remove(ctx, m)
				return nil
			})
			changed = true
		}
	}
	for _, c := range found.all {
		f.mu.Lock()
		m := f.members[c.Name]
		f.mu.Unlock()
		switch {
		case m == nil:
			f.run(ctx, g, f.add(c))
			f.log.Info("cluster added", "cluster", c.Name, "kubeconfig", c.Kubeconfig)
			changed = true
		case !m.leaving && !m.cluster.Equal(c):
			m.cluster = c
			m.keeper.setCluster(c)
		}
	}
	if f.settle() || changed { // handlers know by then which clusters they need not wait for
		f.changed()
	}
}

// other is told that another cluster answers by now than did: it is begun anew, since who
// is let in, and by whom, was told by the first. It does not wait.
func (f *fleet) other(cluster string) {
	f.mu.Lock()
	m := f.members[cluster]
	f.mu.Unlock()
	if m != nil && !m.other.Swap(true) {
		f.log.Warn("another cluster answers, everything of the one before is forgotten", "cluster", cluster)
		f.wakeUp()
	}
}

// add makes all there is of a cluster, and begins with what the snapshot knows of it.
func (f *fleet) add(c config.Cluster) *member {
	m := &member{cluster: c, done: make(chan struct{})}
	for _, add := range f.added {
		if run := add(c.Name); run != nil {
			m.runs = append(m.runs, run)
		}
	}
	if err := f.caches.Expect(c.Name); err != nil {
		f.log.Warn("cannot start a cluster", "cluster", c.Name, "err", err)
	}
	m.keeper = newKeeper(c, nil, f.caches, f.log)
	m.keeper.other = func() {
		m.other.Store(true)
		f.wakeUp()
	}
	f.mu.Lock()
	m.keeper.setRules(f.cfg.Resources)
	f.members[c.Name] = m
	f.mu.Unlock()
	m.keeper.heard = f.heard
	m.keeper.route = f.route
	m.keeper.connected = func(cluster string, config replica.ClusterConfig) error {
		var errs []error
		for _, connected := range f.connected {
			errs = append(errs, connected(cluster, config))
		}
		return errors.Join(errs...)
	}
	m.runs = append(m.runs, m.keeper.Run)
	if err := m.keeper.warm(f.saved()); err != nil {
		f.log.Warn("cannot start all of the snapshot's resources warm", "cluster", c.Name, "err", err)
	}
	return m
}

// run runs all there is of a cluster until it is removed, or ctx ends.
func (f *fleet) run(ctx context.Context, g *errgroup.Group, m *member) {
	ctx, m.stop = context.WithCancel(ctx)
	g.Go(func() error {
		defer close(m.done)
		all, ctx := errgroup.WithContext(ctx)
		for _, run := range m.runs {
			all.Go(func() error { return run(ctx) })
		}
		return all.Wait()
	})
}

// remove forgets all there is of a cluster. It may take long, where something that the
// cluster waits for does not end; nothing else waits for it.
func (f *fleet) remove(ctx context.Context, m *member) {
	name := m.cluster.Name
	m.stop()
	select {
	case <-m.done: // nobody connects it, or applies rules to it, after this
	case <-ctx.Done(): // Run waits for it
		return
	}
	if err := f.caches.Remove(name); err != nil {
		f.log.Error("the snapshot still holds something of a cluster that was removed", "cluster", name, "err", err)
	}
	for _, removed := range f.removed {
		removed(name)
	}
	f.mu.Lock()
	delete(f.members, name)
	f.mu.Unlock()
	f.wakeUp()
}

// sayTwins warns of clusters that are the same one by two names: what there is of it is
// held, and told of, twice.
func (f *fleet) sayTwins(ctx context.Context) error {
	said := map[string]bool{}
	for sleepFor(ctx, twinPoll) {
		for _, names := range twins(f.caches.Clusters()) {
			if text := strings.Join(names, ", "); !said[text] {
				said[text] = true
				f.log.Warn("these are the same cluster, which is held once for each name", "clusters", text)
			}
		}
	}
	return nil
}

// twins are the names of each cluster that has several.
func twins(clusters []cache.ClusterStatus) (all [][]string) {
	byUID := map[string][]string{}
	var uids []string
	for _, c := range clusters {
		if c.UID == "" {
			continue
		}
		if byUID[c.UID] == nil {
			uids = append(uids, c.UID)
		}
		byUID[c.UID] = append(byUID[c.UID], c.Name)
	}
	for _, uid := range uids {
		if len(byUID[uid]) > 1 {
			all = append(all, byUID[uid])
		}
	}
	return all
}

// sleepFor reports false when ctx ended first.
func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
