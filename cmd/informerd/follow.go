package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/discovery"
)

// errAccessChanged ends following a cluster whose kubeconfig was mended.
var errAccessChanged = errors.New("kubeconfig changed")

// follow discovers what the cluster serves until ctx ends, then it returns nil.
// It returns errAccessChanged when the cluster does not answer and its
// kubeconfig has changed.
func (r *keeper) follow(ctx context.Context, a *access) error {
	disco, err := r.newDiscoverer(a)
	if err != nil {
		return fmt.Errorf("discover resources: %w", err)
	}
	r.log.Info("connecting to the cluster", "server", cache.PublicAddress(a.REST.Host), "kubeconfig", a.source)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return disco.Run(ctx) })
	g.Go(func() error { return r.watchAccess(ctx, a, disco) })
	return g.Wait()
}

func (r *keeper) newDiscoverer(a *access) (*discovery.Discoverer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	disco, err := discovery.New(discovery.Options{
		Config:   a.REST,
		Wrap:     a.Wrap,
		Pins:     r.pins,
		Log:      r.log,
		OnChange: r.setDiscovered,
	})
	if err != nil {
		return nil, err
	}
	r.disco = disco
	return disco, nil
}

// watchAccess looks at the kubeconfig while the cluster does not answer, and at one that
// is the cluster's alone all the time. Any other is left alone while the cluster answers:
// another current context there is no reason to replicate another cluster here.
//
// A file that cannot be read, because it is half written, say, changes nothing.
func (r *keeper) watchAccess(ctx context.Context, a *access, disco *discovery.Discoverer) error {
	tick := time.NewTicker(r.poll)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.moved:
			r.log.Info("the cluster is reached in another way, connecting again")
			return errAccessChanged
		case <-tick.C:
		}
		cluster := r.reached()
		if !cluster.Follows && disco.Err() == nil && r.reachable() {
			continue
		}
		now, err := r.load(cluster)
		switch {
		case err != nil && cluster.Follows && err.Error() != said:
			said = err.Error()
			r.log.Warn("the kubeconfig cannot be used, going on with the one before", "err", err)
		case err == nil && now.content != a.content:
			r.log.Info("kubeconfig changed, connecting again")
			return errAccessChanged
		}
	}
}

func (r *keeper) reachable() bool {
	for _, c := range r.caches.Clusters() {
		if c.Name == r.name {
			return c.Reachable
		}
	}
	return false
}
