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

// follow discovers what the cluster serves until ctx ends, then it returns nil. It returns
// errAccessChanged when the cluster is to be reached in another way, which is next if that
// is known to lead to the same cluster; errOtherCluster if it leads to another one.
func (r *keeper) follow(ctx context.Context, a *access) (next *access, err error) {
	disco, err := r.newDiscoverer(a)
	if err != nil {
		return nil, fmt.Errorf("discover resources: %w", err)
	}
	r.log.Info("connecting to the cluster", "server", cache.PublicAddress(a.REST.Host), "kubeconfig", a.source)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return disco.Run(ctx) })
	g.Go(func() (err error) {
		next, err = r.watchAccess(ctx, a, disco)
		return err
	})
	return next, g.Wait()
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
// A file that cannot be used, because it is half written, say, or that leads to nobody who
// answers, changes nothing: what runs goes on.
func (r *keeper) watchAccess(ctx context.Context, a *access, disco *discovery.Discoverer) (next *access, err error) {
	tick := time.NewTicker(r.poll)
	defer tick.Stop()
	said, moved := "", false
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-r.moved:
			moved = true
		case <-tick.C:
		}
		cluster := r.reached()
		if !moved && !cluster.Follows && disco.Err() == nil && r.status().Reachable {
			continue
		}
		now, err := r.load(cluster)
		if err == nil {
			if now.content == a.content && !moved {
				said = ""
				continue
			}
			err = r.check(ctx, now)
		}
		switch {
		case err == nil && r.status().UID == "":
			return nil, errAccessChanged
		case err == nil:
			r.log.Info("kubeconfig changed, connecting again", "kubeconfig", now.source)
			return now, errAccessChanged
		case errors.Is(err, errOtherCluster):
			return nil, err
		case (moved || cluster.Follows) && err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			r.log.Warn("the kubeconfig cannot be used, going on with the one before", "err", err)
		}
	}
}
