package replica

import (
	"context"
	"slices"
	"time"

	"github.com/informerd/informerd/cache"
)

// takeAwayLimit is how long Apply waits for what a rule takes away to be gone from
// every View. It takes as long as to read what is held once.
const takeAwayLimit = 30 * time.Second

// takeAway cuts out of the present copy what spec newly drops or redacts.
func (i *Informer) takeAway(spec cache.Spec) {
	less, ok := i.less(spec)
	if !ok {
		return
	}
	defer i.factory.tighten()()
	if next := i.made(i.feedNow(), less); next != nil {
		i.takeOver(&succession{reason: "its rule drops or redacts more"}, next)
	}
}

// awaitIdentified returns when the cluster is known, and has rules take away
// meanwhile what is held of a snapshot. It reports false when ctx ended first.
func (i *Informer) awaitIdentified(ctx context.Context) bool {
	for {
		i.takeAway(i.Spec())
		i.mu.Lock()
		i.loaded = true
		i.turnLocked()
		i.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-i.cluster.identified:
			return true
		case <-i.respecified:
		}
	}
}

// turnLocked wakes who waits for another copy.
func (i *Informer) turnLocked() {
	close(i.turned)
	i.turned = make(chan struct{})
}

// awaitTakenAway returns when no View shows what the present rule takes away.
func (i *Informer) awaitTakenAway(ctx context.Context) {
	for {
		i.mu.Lock()
		gone, turned := i.takenAwayLocked(), i.turned
		i.mu.Unlock()
		if gone {
			return
		}
		select {
		case <-turned:
		case <-i.done:
			return
		case <-ctx.Done():
			i.log.Warn("what the rule takes away is still served, until the resource is listed")
			return
		}
	}
}

func (i *Informer) takenAwayLocked() bool {
	f := i.current
	switch {
	case f == nil:
		return true
	case !i.loaded:
		return false
	case sameCopy(common(f.spec, i.spec), f.spec):
		return true
	case f.store.Version() != "":
		return false
	}
	// Nothing is held, and nothing will be once the feed has ended, as it has when
	// its successor is filled.
	select {
	case <-i.cluster.identified:
		return i.next != nil && sameCopy(i.next.spec, i.spec)
	default:
		return true
	}
}

// common is before with what spec drops and redacts taken away, too.
func common(before, spec cache.Spec) cache.Spec {
	less := before
	less.Indexes = spec.Indexes
	less.Drop = slices.Clone(before.Drop)
	for _, path := range spec.Drop {
		if !slices.Contains(less.Drop, path) {
			less.Drop = append(less.Drop, path)
		}
	}
	less.Redact = slices.Clone(before.Redact)
	for _, path := range spec.Redact {
		if !slices.Contains(less.Redact, path) && !slices.Contains(less.Drop, path) {
			less.Redact = append(less.Redact, path)
		}
	}
	return less
}
