package replica

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

const (
	// staleFor is how long a copy is stale before the log tells of it. Most are only
	// until their watch is open again.
	staleFor = 15 * time.Second
	// stalePause is the time between looks at what is stale.
	stalePause = 5 * time.Second
)

// tellStale says which clusters have copies that are stale while their API server
// answers, and when they have none any more, until ctx ends: once each, not once for
// each resource. One of several API servers that hangs is noticed by nothing else. Of a
// cluster that does not answer it is said that it does not, which may take longer than
// its copies take to be stale.
func (f *Factory) tellStale(ctx context.Context) {
	told := map[string]bool{}
	for sleep(ctx, stalePause) {
		for _, c := range f.Clusters() {
			stale, of := f.staleOf(c.Name)
			switch {
			case len(stale) > 0 && !told[c.Name] && c.Reachable:
				f.log.Warn("copies are stale, though the API server answers", "cluster", c.Name,
					"stale", len(stale), "resources", of, "example", stale[0].Spec.Name(), "reason", stale[0].Reason)
				told[c.Name] = true
			case len(stale) == 0 && told[c.Name]:
				f.log.Info("no copy is stale any more", "cluster", c.Name)
				told[c.Name] = false
			}
		}
	}
}

// answered is when a cluster last answered what it is asked every two seconds.
func (f *Factory) answered(name string) time.Time {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c := f.clusters[name]
	if c == nil {
		return time.Time{}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.answered
}

// staleOf are the Views of a cluster's copies that were stale for a while when it last
// answered, and of how many watched resources.
func (f *Factory) staleOf(name string) (stale []*cache.View, of int) {
	answered := f.answered(name)
	for _, i := range f.of(name) {
		v := i.View()
		if v.State != cache.Unwatched {
			of++
		}
		if v.State == cache.Stale && answered.Sub(v.Since) > staleFor {
			stale = append(stale, v)
		}
	}
	slices.SortFunc(stale, func(a, b *cache.View) int { return strings.Compare(a.Spec.Name(), b.Spec.Name()) })
	return stale, of
}
