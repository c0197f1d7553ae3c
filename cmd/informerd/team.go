package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// team makes of one replica what follows from who leads: how its clusters are reached, whether
// it writes a snapshot that all share, and whether it delivers. A nil *team is of one that is
// alone.
type team struct {
	election *election
	follows  *following

	ctx  context.Context //nolint:containedctx // ends the election, when stop is called
	end  context.CancelFunc
	runs sync.WaitGroup
}

func newTeam(cfg *config.Config, log *slog.Logger) (*team, error) {
	if cfg.Replicas == nil {
		return nil, nil //nolint:nilnil // one that is alone
	}
	e, err := newElection(cfg.Replicas, log)
	if err != nil {
		return nil, err
	}
	t := &team{election: e, follows: &following{options: cfg.Replicas, standing: e.standing, authenticates: cfg.Authentication != nil}}
	t.ctx, t.end = context.WithCancel(context.Background())
	return t, nil
}

// route is that of a fleet.
func (t *team) route() func(cluster string, a *access) (*access, error) {
	if t == nil {
		return nil
	}
	return t.follows.route
}

// leads is that of a server.
func (t *team) leads() func() bool {
	if t == nil {
		return nil
	}
	return t.election.leads
}

// sharedStore is a store that several replicas have, of which one writes.
type sharedStore interface {
	Lead()
	StandBy()
}

// errFollows is why handlers wait on a replica that does not lead.
var errFollows = fmt.Errorf("%w: another replica delivers", cache.ErrAway)

// assertInterval is how often a leader makes sure that it is who writes. Somebody who believed
// to lead, and does not, may have taken the database over.
const assertInterval = 5 * time.Second

// start takes part in the election. What the replica is to be it becomes from now on.
func (t *team) start(db store, d *deliveries, clusters *fleet) {
	if t == nil {
		return
	}
	shared, _ := db.(sharedStore) // nil where each has a file of its own
	t.election.changed = func(s standing) {
		switch {
		case shared == nil:
		case s.own:
			shared.Lead()
		default: // before handlers rest, so that none begins again
			shared.StandBy()
		}
		clusters.move()
		if !s.own {
			d.rest(errFollows)
		}
	}
	t.runs.Go(func() {
		if err := t.election.Run(t.ctx); err != nil {
			t.election.log.Error("this replica takes no part in the election", "err", err)
		}
	})
	if shared == nil {
		return
	}
	t.runs.Go(func() {
		for sleepFor(t.ctx, assertInterval) {
			t.election.whileLeading(shared.Lead)
		}
	})
}

// stop leaves the election.
func (t *team) stop() {
	if t == nil {
		return
	}
	t.end()
	t.runs.Wait()
}
