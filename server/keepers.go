package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

const (
	// keepEvery is how long after one look at all objects the next one begins, keepLook how
	// long after nothing could be looked at.
	keepEvery = 5 * time.Second
	keepLook  = 100 * time.Millisecond
	// keepShare bounds what looking takes where very much changes, more than a ring holds, so
	// that all is read anew each time: the pause is at least keepShare times the shorter of
	// the last two looks. A single long one, as the first is, does not count.
	keepShare = 20
	// keepPatience is how long data that is still being listed is waited for before the first
	// look: that wants the processors, too, and some would be read twice. A resource that
	// never comes does not hold up the others for longer.
	keepPatience = 30 * time.Second
)

// Prepared says what is computed of all objects before anybody asks for it, each with a third of a
// processor. It takes memory for every object, whether anybody asks or not.
type Prepared struct{ Graph, Search bool }

// keepAll keeps what is computed of all objects up to date until ctx ends, each by itself:
// what takes long does not hold up the others. Of each the clusters follow one another. Graph
// and search are made one after the other at first, as each takes a third of a processor: a
// snapshot is saved for the first time then, too, and events have to be told meanwhile.
func (s *Server) keepAll(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.keepHealth(ctx) })
	one := make(chan struct{}, 1)
	all.Go(func() { s.keep(ctx, "columns", nil, s.fillColumns) })
	if s.Prepare.Graph {
		all.Go(func() { s.keep(ctx, "the graph", one, s.prepareGraph) })
	}
	if s.Prepare.Search {
		all.Go(func() { s.keep(ctx, "the search", one, s.prepareSearch) })
	}
	all.Wait()
}

// keepHealth keeps what is known of the health of every cluster up to date until ctx ends.
func (s *Server) keepHealth(ctx context.Context) {
	s.keep(ctx, "health", nil, func(ctx context.Context, cluster string) error {
		h := s.relations.health(cluster)
		if err := h.Prepare(ctx); err != nil {
			return err
		}
		_, err := h.Revision(ctx) // also where only time has passed
		return err
	})
}

// fillColumns brings the columns of a cluster that are pinned up to date.
func (s *Server) fillColumns(ctx context.Context, cluster string) (failed error) {
	for _, r := range s.relations.resources(cluster) {
		if err := r.View().FillColumns(ctx); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("columns of %s: %w", r.Spec().Resource, err))
		}
	}
	return failed
}

func (s *Server) prepareGraph(ctx context.Context, cluster string) error {
	g, err := s.relations.graph(cluster)
	if err != nil {
		return err
	}
	return g.Prepare(ctx)
}

func (s *Server) prepareSearch(ctx context.Context, cluster string) error {
	e, err := s.relations.search(cluster)
	if err != nil {
		return err
	}
	return e.Prepare(ctx)
}

// keep calls update for every cluster again and again until ctx ends, so that the first
// question about what it keeps is as quick as the others. Without it each question reads what
// has changed since the one before; the first one, and one after long silence, read
// everything. The first look at a cluster is in one, if it is not nil, and alone there.
func (s *Server) keep(ctx context.Context, what string, one chan struct{}, update func(ctx context.Context, cluster string) error) {
	kept := map[string]*keptCluster{}
	for pause := keepLook; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		clusters := s.Caches.Clusters()
		if pause = keepEvery; len(clusters) == 0 {
			pause = keepLook
		}
		s.relations.keepOnly(clusters)
		maps.DeleteFunc(kept, func(name string, _ *keptCluster) bool {
			return !slices.ContainsFunc(clusters, func(c cache.ClusterStatus) bool { return c.Name == name })
		})
		for _, c := range clusters {
			k := kept[c.Name]
			if k == nil {
				k = &keptCluster{}
				kept[c.Name] = k
			}
			if !k.begun && k.waits(s.relations.resources(c.Name)) {
				pause = keepLook
				continue
			}
			if time.Now().Before(k.next) {
				continue
			}
			if err := k.look(ctx, c.Name, one, update); err != nil && ctx.Err() == nil {
				s.log.Debug("cannot bring "+what+" up to date", "cluster", c.Name, "err", err)
			}
		}
	}
}

// keptCluster is what keep knows of a cluster.
type keptCluster struct {
	since time.Time     // when it had a resource first
	begun bool          // it was looked at
	next  time.Time     // when to look again
	took  time.Duration // the last look
}

// waits reports whether there is no resource yet, or no data yet of any.
func (k *keptCluster) waits(all []follow.Resource) bool {
	if len(all) == 0 {
		return true
	}
	if k.since.IsZero() {
		k.since = time.Now()
	}
	return time.Since(k.since) < keepPatience && slices.ContainsFunc(all, func(r follow.Resource) bool { return r.View().State == cache.Syncing })
}

func (k *keptCluster) look(ctx context.Context, cluster string, one chan struct{}, update func(ctx context.Context, cluster string) error) error {
	if one != nil && !k.begun {
		select {
		case one <- struct{}{}:
			defer func() { <-one }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	began := time.Now()
	err := update(ctx, cluster)
	now := time.Now()
	if err != nil { // it is no measure of what a whole look takes
		k.next = now.Add(keepEvery)
		return err
	}
	before := k.took
	k.begun, k.took = true, now.Sub(began)
	k.next = now.Add(max(keepEvery, keepShare*min(k.took, before)))
	return nil
}
