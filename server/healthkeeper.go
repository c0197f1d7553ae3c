package server

import (
	"context"
	"slices"
	"time"

	"github.com/informerd/informerd/cache"
)

const (
	// healthEvery is how long after one look at the health of all objects the next one
	// begins, healthLook how long after nothing could be looked at.
	healthEvery = 5 * time.Second
	healthLook  = 100 * time.Millisecond
	// healthShare is how many times as long as a look takes the pause after it is, at
	// least: where very much changes, more than a ring holds, all is read anew.
	healthShare = 20
)

// keepHealth keeps what is known of the health of every cluster up to date until ctx ends,
// so that the first question about it is as quick as the others. Without it each question
// reads what has changed since the one before; the first one, and one after long silence,
// read everything.
func (s *Server) keepHealth(ctx context.Context) {
	for pause := healthLook; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if pause = healthLook; s.syncing() {
			continue // which wants the processors, and would have some read twice
		}
		began := time.Now()
		for _, c := range s.Caches.Clusters() {
			if _, err := s.relations.health(c.Name).Revision(ctx); err != nil && ctx.Err() == nil {
				s.log.Debug("cannot bring health up to date", "cluster", c.Name, "err", err)
			}
		}
		pause = max(healthEvery, healthShare*time.Since(began))
	}
}

// syncing reports whether there is no data yet of anything, or of everything.
func (s *Server) syncing() bool {
	all := s.Caches.Resources()
	return len(all) == 0 || slices.ContainsFunc(all, func(r Resource) bool { return r.View().State == cache.Syncing })
}
