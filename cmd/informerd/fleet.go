package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	// changed is called when clusters came or went.
	changed func()
	// settled is called once, when all clusters that there are to be are known.
	settled func(rules []config.Rule, clusters []config.Cluster)

	poll time.Duration
	wake chan struct{} // holds one: another configuration holds

	mu      sync.Mutex // guards all below
	cfg     *config.Config
	wanted  []config.Cluster // written by look alone
	whole   bool             // every folder could be read; written by look alone
	members map[string]*member

	// Of start and, after it, update alone.
	said   map[string]bool // what was said to be wrong and is so still
	isDone bool            // settled was called
}

// member is one cluster of a fleet.
type member struct {
	cluster config.Cluster
	keeper  *keeper
	runs    []func(context.Context) error
	stop    context.CancelFunc // nil until it runs
	done    chan struct{}      // closed when nothing of it runs any more
}

func newFleet(cfg *config.Config, c fleetCaches, saved func() []cache.Saved, log *slog.Logger) *fleet {
	f := &fleet{
		caches: c, saved: saved, log: log, folders: newFolders(), poll: folderPoll, cfg: cfg,
		wake: make(chan struct{}, 1), members: map[string]*member{}, said: map[string]bool{},
		changed: func() {}, settled: func([]config.Rule, []config.Cluster) {},
	}
	f.look()
	return f
}

// knows reports whether a cluster is one of the configuration, or may be one: what a
// folder holds that cannot be read is not known.
func (f *fleet) knows(cluster string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.whole || slices.ContainsFunc(f.wanted, func(c config.Cluster) bool { return c.Name == cluster })
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

// configure takes over another configuration. Rules are taken over at once, clusters come
// and go soon after: it does not wait for them.
func (f *fleet) configure(cfg *config.Config) {
	f.mu.Lock()
	f.cfg = cfg
	for _, m := range f.members {
		m.keeper.setRules(cfg.Resources)
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// look finds out which clusters there are to be.
func (f *fleet) look() []config.Cluster {
	wanted, wrong, whole := f.folders.clusters(f.config())
	f.say(wrong)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted, f.whole = wanted, whole
	return wanted
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
	for _, c := range f.wanted {
		f.add(c)
	}
	f.settle()
}

// settle calls settled when it is certain which clusters there are.
func (f *fleet) settle() {
	if f.whole && !f.isDone {
		f.isDone = true
		f.settled(f.config().Resources, f.wanted)
	}
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

// update makes the clusters those that there are to be now.
func (f *fleet) update(ctx context.Context, g *errgroup.Group) {
	wanted := f.look()
	changed := false
	for _, m := range f.all() {
		if !slices.ContainsFunc(wanted, func(c config.Cluster) bool { return c.Name == m.cluster.Name }) {
			f.remove(m)
			changed = true
		}
	}
	for _, c := range wanted {
		f.mu.Lock()
		m := f.members[c.Name]
		f.mu.Unlock()
		switch {
		case m == nil:
			f.run(ctx, g, f.add(c))
			f.log.Info("cluster added", "cluster", c.Name, "kubeconfig", c.Kubeconfig)
			changed = true
		case !m.cluster.Equal(c):
			m.cluster = c
			m.keeper.setCluster(c)
		}
	}
	f.settle()
	if changed {
		f.changed()
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
	f.mu.Lock()
	m.keeper = newKeeper(c, f.cfg.Resources, f.caches, f.log)
	f.members[c.Name] = m
	f.mu.Unlock()
	m.keeper.heard = f.heard
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

// remove forgets all there is of a cluster.
func (f *fleet) remove(m *member) {
	name := m.cluster.Name
	m.stop()
	<-m.done
	f.mu.Lock()
	delete(f.members, name)
	f.mu.Unlock()
	if err := f.caches.Remove(name); err != nil {
		f.log.Error("the snapshot still holds something of a cluster that was removed", "cluster", name, "err", err)
	}
	for _, removed := range f.removed {
		removed(name)
	}
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
