package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

// caches is what a keeper needs of replica.Factory.
type caches interface {
	Apply(cluster string, specs []cache.Spec) error
	ApplySaved(cluster string, specs []cache.Spec) error
	Connect(cluster string, config replica.ClusterConfig) error
	Unreachable(cluster string, err error)
	Clusters() []cache.ClusterStatus
}

// accessPoll is how often a kubeconfig that does not work is looked at again.
const accessPoll = time.Second

// keeper keeps the informers of one cluster equal to what the rules select of
// what the cluster serves. Rules and discovered sets may change at any time; one
// goroutine of Run turns them into specs.
type keeper struct {
	name   string // of the cluster
	caches caches
	log    *slog.Logger
	load   func(config.Cluster) (*access, error)
	// route is how it is reached instead, where replicas follow each other; nil: as load says.
	route func(cluster string, a *access) (*access, error)
	// identify asks whoever a configuration leads to which cluster it is.
	identify func(ctx context.Context, config replica.ClusterConfig) (string, error)
	// other is called when the configuration leads to another cluster by now. The keeper
	// does nothing more then; nil calls nobody.
	other func()
	// connected is told how the cluster is reached; nil tells nobody.
	connected func(cluster string, config replica.ClusterConfig) error
	// heard is told what the cluster has, before the informers follow; nil tells nobody.
	heard   func(cluster string, set discovery.Set)
	poll    time.Duration
	changed chan struct{} // holds one; wakes the planner
	moved   chan struct{} // holds one; says that the cluster is reached in another way

	mu      sync.Mutex // guards all below
	cluster config.Cluster
	rules   []config.Rule
	// set is news from discovery, nil once planned with.
	set   *discovery.Set
	disco *discovery.Discoverer           // nil until connected
	pins  map[schema.GroupResource]string // what disco was told

	// Of the planner alone.
	known   []discovery.Resource // resources as of the last plan
	learned bool                 // known comes from discovery, not from the snapshot

	discovered chan struct{} // closed when a discovered set was applied
}

func newKeeper(cluster config.Cluster, rules []config.Rule, c caches, log *slog.Logger) *keeper {
	return &keeper{
		name: cluster.Name, cluster: cluster, caches: c, rules: rules, pins: plan.LiteralPins(rules),
		log:        log.With("cluster", cluster.Name),
		load:       loadAccess,
		identify:   replica.Identify,
		poll:       accessPoll,
		changed:    make(chan struct{}, 1),
		moved:      make(chan struct{}, 1),
		discovered: make(chan struct{}),
	}
}

// warm starts the informers of the resources a snapshot holds, so that they are
// served before the cluster is reached. It must not be called after Run.
func (r *keeper) warm(saved []cache.Saved) error {
	r.known = plan.Saved(r.name, saved)
	r.mu.Lock()
	rules := r.rules
	r.mu.Unlock()
	return r.apply(rules)
}

// apply makes the informers what rules select of what is known. Nothing known is
// no empty set before discovery: everything would be gone.
func (r *keeper) apply(rules []config.Rule) error {
	specs := plan.Specs(plan.Choose(rules, r.name, r.known))
	switch {
	case r.learned:
		return r.caches.Apply(r.name, specs)
	case len(specs) > 0:
		return r.caches.ApplySaved(r.name, specs)
	}
	return nil
}

// setRules replaces the rules. It does not wait for what follows.
func (r *keeper) setRules(rules []config.Rule) {
	r.mu.Lock()
	r.rules = rules
	r.mu.Unlock()
	r.wake()
}

// setCluster replaces how the cluster is reached; its name must be the same. Watches go
// on where they were unless it is another cluster that answers. It does not wait.
func (r *keeper) setCluster(c config.Cluster) {
	r.mu.Lock()
	r.cluster = c
	r.mu.Unlock()
	r.move()
}

// move has it found out again how the cluster is reached. Where that is as before, or was
// found out in the meantime, nothing comes of it.
func (r *keeper) move() {
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// way is how the cluster is reached by now.
func (r *keeper) way() (*access, error) {
	c := r.reached()
	a, err := r.load(c)
	if err != nil {
		return nil, err
	}
	a.cluster = c
	if r.route == nil {
		return a, nil
	}
	return r.route(r.name, a)
}

// reached is how the cluster is reached now.
func (r *keeper) reached() config.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cluster
}

// setDiscovered is discovery's OnChange.
func (r *keeper) setDiscovered(set discovery.Set) {
	if r.heard != nil {
		r.heard(r.name, set)
	}
	r.mu.Lock()
	r.set = &set
	r.mu.Unlock()
	r.wake()
}

func (r *keeper) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// isDiscovered tells whether the informers follow what the cluster serves.
func (r *keeper) isDiscovered() bool {
	select {
	case <-r.discovered:
		return true
	default:
		return false
	}
}

// Run keeps the informers so until ctx ends.
func (r *keeper) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.planLoop(ctx) })
	g.Go(func() error { return r.connectLoop(ctx) })
	return g.Wait()
}

func (r *keeper) planLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
			r.plan()
		}
	}
}

// plan applies the rules to what is known now.
func (r *keeper) plan() {
	r.mu.Lock()
	rules, set := r.rules, r.set
	r.set = nil
	r.mu.Unlock()
	if set != nil {
		r.known = plan.Merge(r.known, *set)
		r.learned = true
	}
	repinned := r.pin(rules)
	if repinned && r.learned && !r.isDiscovered() {
		// The set with the pinned versions follows soon: do not sync others first.
		return
	}
	if err := r.apply(rules); err != nil {
		r.log.Error("some resources are not as the configuration says", "err", err)
	}
	if r.learned && !r.isDiscovered() {
		close(r.discovered)
	}
}

// pin tells discovery which versions to report. It reports whether a set with
// other versions than the last is to be expected.
func (r *keeper) pin(rules []config.Rule) bool {
	pins := plan.LiteralPins(rules)
	maps.Copy(pins, plan.Pins(rules, r.known))
	r.mu.Lock()
	disco, same := r.disco, maps.Equal(pins, r.pins)
	r.pins = pins
	r.mu.Unlock()
	if disco == nil || same {
		return false
	}
	disco.SetPins(pins)
	return slices.ContainsFunc(r.known, func(k discovery.Resource) bool {
		v, pinned := pins[k.GroupResource()]
		return pinned && v != k.GVR.Version
	})
}

// connect tells everybody who asks the cluster how it is reached.
func (r *keeper) connect(a *access) error {
	if a.plugin != nil {
		a.plugin.log = r.log
	}
	if r.connected != nil {
		if err := r.connected(r.name, a.upstream()); err != nil {
			return err
		}
	}
	return r.caches.Connect(r.name, a.ClusterConfig)
}

// connectLoop connects to the cluster, and again whenever it is to be reached in another
// way. To another cluster than it was it never connects: all there is of the one that was,
// and who may see it, is not that one's.
func (r *keeper) connectLoop(ctx context.Context) error {
	var last string  // what was wrong
	var next *access // found to lead to the same cluster
	var held *access // by which it was connected to last
	for {
		a, err := next, error(nil)
		if next == nil {
			if a, err = r.way(); err == nil {
				err = r.check(ctx, held, a)
			}
		}
		if err == nil {
			err = r.connect(a)
		}
		next = nil
		if err == nil {
			last, held = "", a
			if next, err = r.follow(ctx, a); err == nil {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errOtherCluster):
			r.log.Warn("the kubeconfig leads to another cluster, everything of the one before is forgotten")
			if r.other != nil {
				r.other()
			}
			<-ctx.Done()
			return nil
		case next != nil:
			continue
		case err != errAccessChanged:
			r.caches.Unreachable(r.name, err)
			if err.Error() != last {
				r.log.Warn("cannot connect to the cluster, trying on", "err", err)
				last = err.Error()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.moved:
		case <-time.After(r.poll):
		}
	}
}

// errOtherCluster says that a configuration leads to another cluster than that which is
// held.
var errOtherCluster = errors.New("it leads to another cluster")

// check makes sure that a configuration can be used, and leads to the cluster that is held,
// if it is known which one that is. held is how that is reached. Two UIDs of kube-system
// that differ prove another cluster. Where one of them may not be read, which comes and goes
// with a role, it is the place that tells.
func (r *keeper) check(ctx context.Context, held, now *access) error {
	uid := r.status().UID
	if uid == "" {
		return nil
	}
	if now.plugin != nil {
		now.plugin.log = r.log
	}
	found, err := r.identify(ctx, now.ClusterConfig)
	switch {
	case err != nil:
		return fmt.Errorf("which cluster it leads to cannot be told: %w", err)
	case replica.Named(uid) && replica.Named(found):
		if uid != found {
			return errOtherCluster
		}
	case now.direct != nil || held != nil && held.direct != nil:
		return errors.New("whether the replica that leads has the same cluster cannot be told: replicas must be allowed to get the namespace kube-system")
	case held == nil || !replica.SamePlace(held.ClusterConfig, now.ClusterConfig):
		return errOtherCluster
	}
	return nil
}

// status is what is known of the cluster.
func (r *keeper) status() cache.ClusterStatus {
	for _, c := range r.caches.Clusters() {
		if c.Name == r.name {
			return c
		}
	}
	return cache.ClusterStatus{}
}
