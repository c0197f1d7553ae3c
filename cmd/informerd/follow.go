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
	err = g.Wait()
	return next, err
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
	var no rejected
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-r.moved:
			moved = true
		case <-tick.C:
		}
		if !moved && !r.reached().Follows && disco.Err() == nil && r.status().Reachable {
			continue
		}
		// To read a kubeconfig takes ten times as long as to see that it is the same, and a
		// hundred clusters look once a second.
		if !moved && a.unchanged() {
			said, no = "", rejected{}
			continue
		}
		now, err := r.way()
		if err == nil {
			if now.same(a) {
				said, moved, no = "", false, rejected{}
				a.digest = now.digest
				continue
			}
			var due bool
			if now, due = no.again(now); !due {
				continue
			}
			err = r.check(ctx, a, now)
			no.note(now, err)
		}
		switch {
		case err == nil && r.status().UID == "":
			return nil, errAccessChanged
		case err == nil:
			r.log.Info("kubeconfig changed, connecting again", "kubeconfig", now.source)
			return now, errAccessChanged
		case errors.Is(err, errOtherCluster):
			return nil, err
		case err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			r.log.Warn("the kubeconfig cannot be used, going on with the one before", "err", err)
		}
	}
}

// rejected is a way to reach the cluster that did not work, which is tried again ever more
// seldom: a plugin may ask a person, or a service that counts.
type rejected struct {
	access *access
	pause  time.Duration
	due    time.Time
}

const (
	rejectedPause    = time.Second
	maxRejectedPause = time.Minute
)

// again is what to try of what was read now: the same as before, if that is what it says,
// with what its plugin knows of itself. due is whether it is time.
func (r *rejected) again(now *access) (_ *access, due bool) {
	if r.access == nil || !r.access.same(now) {
		*r = rejected{}
		return now, true
	}
	return r.access, !time.Now().Before(r.due)
}

// note notes what became of it.
func (r *rejected) note(tried *access, err error) {
	if err == nil {
		*r = rejected{}
		return
	}
	r.access, r.pause = tried, min(max(2*r.pause, rejectedPause), maxRejectedPause)
	r.due = time.Now().Add(r.pause)
}
