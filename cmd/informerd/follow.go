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

// watchAccess looks at the kubeconfig while the cluster does not answer. While
// it does, a change is left alone: another current context there is no reason
// to replicate another cluster here.
func (r *keeper) watchAccess(ctx context.Context, a *access, disco *discovery.Discoverer) error {
	tick := time.NewTicker(r.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if disco.Err() == nil && r.reachable() {
			continue
		}
		if now, err := r.load(r.cluster); err == nil && now.content != a.content {
			r.log.Info("kubeconfig changed, connecting again")
			return errAccessChanged
		}
	}
}

func (r *keeper) reachable() bool {
	for _, c := range r.caches.Clusters() {
		if c.Name == r.cluster.Name {
			return c.Reachable
		}
	}
	return false
}
