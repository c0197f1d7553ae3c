package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

const (
	// keepEvery is how long after one look at all objects the next one begins, keepLook how
	// long after nothing could be looked at.
	keepEvery = 5 * time.Second
	keepLook  = 100 * time.Millisecond
	// keepShare is how many times as long as a look takes the pause after it is, at
	// least: where very much changes, more than a ring holds, all is read anew. That of the
	// first look, which reads everything, does not count.
	keepShare = 20
)

// Prepared says what is computed of all objects before anybody asks for it. It takes memory
// for every object, whether anybody asks or not.
type Prepared struct{ Graph, Search bool }

// keepAll keeps what is computed of all objects up to date until ctx ends, each by itself:
// what takes long does not hold up the others.
func (s *Server) keepAll(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.keepHealth(ctx) })
	if s.Prepare.Graph {
		all.Go(func() { s.keep(ctx, "the graph", s.prepareGraph) })
	}
	if s.Prepare.Search {
		all.Go(func() { s.keep(ctx, "the search", s.prepareSearch) })
	}
	all.Wait()
}

// keepHealth keeps what is known of the health of every cluster up to date until ctx ends.
func (s *Server) keepHealth(ctx context.Context) {
	s.keep(ctx, "health", func(ctx context.Context, cluster string) error {
		_, err := s.relations.health(cluster).Revision(ctx)
		return err
	})
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
// everything.
func (s *Server) keep(ctx context.Context, what string, update func(ctx context.Context, cluster string) error) {
	var took time.Duration
	for pause := keepLook; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if pause = keepLook; s.syncing() {
			continue // which wants the processors, and would have some read twice
		}
		began := time.Now()
		for _, c := range s.Caches.Clusters() {
			if err := update(ctx, c.Name); err != nil && ctx.Err() == nil {
				s.log.Debug("cannot bring "+what+" up to date", "cluster", c.Name, "err", err)
			}
		}
		before := took
		took = time.Since(began)
		pause = max(keepEvery, keepShare*min(took, before))
	}
}

// syncing reports whether there is no data yet of anything, or of everything.
func (s *Server) syncing() bool {
	all := s.Caches.Resources()
	return len(all) == 0 || slices.ContainsFunc(all, func(r Resource) bool { return r.View().State == cache.Syncing })
}
