package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
)

// forgetRetry is how long it is waited before a snapshot is asked again that was out of reach.
const forgetRetry = 5 * time.Second

// forgetter deletes the snapshots of resources that the configuration has left out, or whose
// cluster it has, since they were made: what is not watched is not kept. While the snapshot is
// out of reach it tries on, with the configuration as it is by then.
type forgetter struct {
	db    store // nil: nothing is kept
	log   *slog.Logger
	retry time.Duration
	// present is the configuration that holds; false while it is not certain which clusters
	// there are to be.
	present func() ([]config.Rule, []config.Cluster, bool)
	due     chan struct{} // holds one
}

func newForgetter(db store, present func() ([]config.Rule, []config.Cluster, bool), log *slog.Logger) *forgetter {
	return &forgetter{db: db, log: log, retry: forgetRetry, present: present, due: make(chan struct{}, 1)}
}

// Run tries again until ctx ends.
func (f *forgetter) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.due:
		}
		if !sleepFor(ctx, f.retry) {
			return nil
		}
		if rules, clusters, certain := f.present(); certain {
			f.forget(rules, clusters)
		}
	}
}

// again has Run look once more, a moment later: when the configuration has left something out,
// which whoever watched it deletes, or when that could not be deleted. What nobody watched yet,
// since the snapshot or its cluster was out of reach, is found by looking alone.
func (f *forgetter) again() {
	select {
	case f.due <- struct{}{}:
	default:
	}
}

// forget deletes what rules and clusters leave out.
func (f *forgetter) forget(rules []config.Rule, clusters []config.Cluster) {
	if f.db == nil {
		return
	}
	saved, err := f.db.Saved()
	if err != nil {
		f.failed("cannot read what the snapshot holds", err)
	}
	watched := map[cache.Resource]bool{}
	for _, c := range clusters {
		for _, choice := range plan.Choose(rules, c.Name, plan.Saved(c.Name, saved)) {
			watched[choice.Spec.Resource] = choice.Spec.Watch
		}
	}
	for _, s := range saved {
		if watched[s.Spec.Resource] {
			continue
		}
		err := f.db.Erase(s.Spec.Resource)
		if errors.Is(err, cache.ErrNoSnapshot) {
			continue // whoever watched it was quicker
		}
		if err != nil {
			f.failed("cannot delete the snapshot", err, "gvr", s.Spec.Resource.String())
			continue
		}
		f.log.Info("snapshot deleted, the configuration leaves it out", "gvr", s.Spec.Resource.String())
	}
	if err := f.db.Sweep(); err != nil { // the first save tries again
		f.log.Warn("the snapshot still holds what the configuration leaves out", "err", err)
	}
}

// failed says what went wrong. That the snapshot is out of reach is said by who saves it.
func (f *forgetter) failed(what string, err error, args ...any) {
	if errors.Is(err, cache.ErrAway) {
		f.again()
		return
	}
	f.log.Warn(what, append(args, "err", err)...)
}
