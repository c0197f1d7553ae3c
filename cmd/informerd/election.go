package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// standing is what a replica knows of who leads. Its zero value is that nobody is known.
type standing struct {
	leader string // the URL of who leads
	own    bool   // it is this one
}

// election finds out which replica leads, by a Lease. It decides one thing: whom a replica
// follows. What must never be done by two is fenced where it is done, see persist.Postgres: a
// Lease is held by the clocks of processes, which may be stopped for any time.
//
// Nobody else being known is no reason to change anything: a leader that cannot reach the API
// server goes on with what it has until it hears of another one, and who follows waits.
type election struct {
	url     string
	self    string // who holds the Lease while this one leads: its URL, and what tells it from others
	options *config.Replicas
	leases  coordinationv1.LeasesGetter
	log     *slog.Logger
	began   time.Time

	// changed is called with what is known by then, one call at a time. It is set before Run.
	changed func(standing)
	telling sync.Mutex    // one call of changed at a time; taken before mu
	known   chan struct{} // closed when it is known for the first time who leads

	mu      sync.Mutex // guards all below
	now     standing
	elector *leaderelection.LeaderElector // the present one
}

// newElection makes one for the cluster that the Lease is in. It asks nobody.
func newElection(r *config.Replicas, log *slog.Logger) (*election, error) {
	leases, err := leasesOf(r)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster of the replicas' lease: %w", err)
	}
	return &election{
		url: r.URL, self: r.URL + "#" + rand.Text(), options: r, leases: leases, log: log, began: time.Now(),
		changed: func(standing) {}, known: make(chan struct{}),
	}, nil
}

func leasesOf(r *config.Replicas) (coordinationv1.LeasesGetter, error) {
	a, err := loadAccess(config.Cluster{Name: "replicas", Kubeconfig: r.Kubeconfig, Context: r.Context})
	if err != nil {
		return nil, err
	}
	rc := rest.CopyConfig(a.REST)
	// A request that hangs must not take all the time there is to renew a lease.
	rc.Timeout = electionTimes(r.LeaseDuration).renew / 2
	client, err := httpClientOf(replica.ClusterConfig{REST: rc, Wrap: a.Wrap})
	if err != nil {
		return nil, err
	}
	return coordinationv1.NewForConfigAndClient(rc, client)
}

// leaseTimes are how long a Lease lasts, how long it is tried to renew it, and how often.
type leaseTimes struct{ lease, renew, retry time.Duration }

// electionTimes are of such a part of each other that another leads, at the latest, after
// about 1.4 times the duration of the lease.
func electionTimes(lease time.Duration) leaseTimes {
	return leaseTimes{lease, lease * 6 / 10, lease * 15 / 100}
}

// knownAfter is how long who asks at the start waits for the first answer of the API server.
const knownAfter = 2 * time.Second

// standing is what is known now.
func (e *election) standing() standing {
	select {
	case <-e.known:
	case <-time.After(max(0, time.Until(e.began.Add(knownAfter)))):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// leads reports whether this replica does, as far as it knows.
func (e *election) leads() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now.own
}

// whileLeading calls do if this replica leads, and it goes on to lead until do returns, as far
// as it knows.
func (e *election) whileLeading(do func()) {
	e.telling.Lock()
	defer e.telling.Unlock()
	if e.leads() {
		do()
	}
}

// Run takes part until ctx ends; then it gives the Lease back, so that another one need not
// wait until it is over.
func (e *election) Run(ctx context.Context) error {
	t := electionTimes(e.options.LeaseDuration)
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: e.options.Namespace, Name: e.options.Name},
				Client:     e.leases,
				LockConfig: resourcelock.ResourceLockConfig{Identity: e.self},
			},
			LeaseDuration: t.lease, RenewDeadline: t.renew, RetryPeriod: t.retry,
			ReleaseOnCancel: true,
			Name:            "informerd",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {},
				OnStoppedLeading: func() {},
				OnNewLeader:      func(string) { e.look() },
			},
		})
		if err != nil {
			return fmt.Errorf("election of a leading replica: %w", err)
		}
		e.mu.Lock()
		e.elector = elector
		e.mu.Unlock()
		elector.Run(ctx) // until the lease is lost
		if ctx.Err() == nil {
			e.log.Warn("the lease of the replicas could not be renewed in time, trying on", "lease", e.lease())
		}
	}
	return nil
}

func (e *election) lease() string { return e.options.Namespace + "/" + e.options.Name }

// look takes over what the elector has observed. Its callbacks come in any order: what counts
// is what it knows now.
func (e *election) look() {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	before, holder := e.now, e.elector.GetLeader()
	next := before
	switch url, _, _ := strings.Cut(holder, "#"); {
	case holder == "": // nobody holds it, for now
	case holder == e.self:
		next = standing{leader: e.url, own: true}
	default:
		next = standing{leader: url}
	}
	e.now = next
	e.mu.Unlock()
	if next == before {
		return
	}
	if before == (standing{}) {
		close(e.known)
	}
	if next.own {
		e.log.Info("this replica leads", "lease", e.lease())
	} else {
		e.log.Info("another replica leads, following it", "leader", next.leader, "lease", e.lease())
	}
	e.changed(next)
}
