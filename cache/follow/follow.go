// Package follow tells what changed in stores since it was last asked. It is
// how something computed from their objects is kept up to date with them
// without a goroutine, and without any cost while nobody asks for it.
//
// It refuses to remember objects: whoever follows keeps what it needs.
package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// Resource is one resource; *replica.Informer is one.
type Resource interface {
	Spec() cache.Spec
	View() *cache.View
}

// Delta is one resource and what changed in it.
type Delta struct {
	// View is what was read from. Its Store is nil when there was nothing to read:
	// what was known of the objects must be forgotten.
	View *cache.View
	// Version is one up to which the changes told so far are complete. There may
	// be later ones among them.
	Version string
	// Gone says that there is no such resource any more.
	Gone bool
	// Whole says that Objects are all there are; what is not among them is gone.
	Whole bool
	// Objects are new or changed, each in its latest state. Some may be known
	// already.
	Objects []*cache.Object
	// Deleted may name what was never told of.
	Deleted []cache.Key
}

// Empty reports whether no object changed.
func (d *Delta) Empty() bool {
	return d.View.Readable() && !d.Whole && len(d.Objects) == 0 && len(d.Deleted) == 0
}

// Follower reads the stores of some resources. The zero Follower has read
// nothing. It must not be used concurrently.
type Follower struct {
	positions map[cache.Resource]*position
}

// position is how far one store was read.
type position struct {
	store        *cache.Store
	subscription *cache.Subscription
	revision     uint64
}

// Read returns one Delta for each of resources, after one for each that was
// there before and is not any more. It is complete up to the
// moment of the call, and made of one View of each. After an error nothing is lost: what was not returned
// comes again as a whole.
func (f *Follower) Read(ctx context.Context, resources []Resource) ([]Delta, error) {
	deltas := make([]Delta, 0, len(resources))
	views := make([]*cache.View, len(resources))
	seen := make(map[cache.Resource]bool, len(resources))
	for i, r := range resources {
		views[i] = r.View()
		seen[views[i].Spec.Resource] = true
	}
	for r := range f.positions {
		if !seen[r] {
			f.drop(r)
			deltas = append(deltas, Delta{View: unknown(r), Gone: true})
		}
	}
	for _, view := range views {
		d, err := f.read(ctx, view)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("read %s: %w", view.Spec.Resource, err)
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}

// unknown is the View of a resource that there is not.
func unknown(r cache.Resource) *cache.View { return &cache.View{Spec: cache.Spec{Resource: r}} }

func (f *Follower) read(ctx context.Context, view *cache.View) (Delta, error) {
	d, store := Delta{View: view}, view.Store(inside.Cache)
	if store == nil {
		f.drop(view.Spec.Resource)
		return d, nil
	}
	d.Version = store.Version()
	at := f.positions[view.Spec.Resource]
	if at == nil || at.store != store {
		err := f.begin(ctx, &d) // it changes d, so not within the return
		return d, err
	}
	revision := store.Revision()
	if revision == at.revision {
		return d, nil
	}
	err := at.poll(&d)
	if err == nil {
		at.revision = revision
		return d, nil
	}
	if errors.Is(err, cache.ErrExpired) || errors.Is(err, cache.ErrStopped) {
		err = f.begin(ctx, &d)
	}
	return d, err
}

// begin reads the whole store. It subscribes first: what changes while it lists
// comes again with the next poll.
func (f *Follower) begin(ctx context.Context, d *Delta) error {
	resource, store := d.View.Spec.Resource, d.View.Store(inside.Cache)
	f.drop(resource)
	revision := store.Revision()
	sub, err := store.Watch("")
	if errors.Is(err, cache.ErrStopped) || errors.Is(err, cache.ErrNotSynced) {
		ended := *d.View
		ended.Hold(nil) // its successor, or its data, comes next time
		d.View = &ended
		return nil
	}
	if err != nil {
		return err
	}
	all, err := store.Select(ctx, cache.Query{})
	if err != nil {
		sub.Close()
		return err
	}
	if f.positions == nil {
		f.positions = map[cache.Resource]*position{}
	}
	f.positions[resource] = &position{store: store, subscription: sub, revision: revision}
	d.Whole, d.Objects, d.Deleted = true, all.Objects, nil
	return nil
}

// poll reads the events since the last time, of each object the last one.
func (p *position) poll(d *Delta) error {
	last := map[cache.Key]cache.Event{}
	for {
		events, err := p.subscription.Poll()
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			last[e.Object.Key()] = e
		}
	}
	for key, e := range last {
		if e.Type == cache.Deleted {
			d.Deleted = append(d.Deleted, key)
		} else {
			d.Objects = append(d.Objects, e.Object)
		}
	}
	return nil
}

func (f *Follower) drop(r cache.Resource) {
	if at := f.positions[r]; at != nil {
		at.subscription.Close()
		delete(f.positions, r)
	}
}

// Close forgets everything; the next Read begins anew.
func (f *Follower) Close() {
	for r := range f.positions {
		f.drop(r)
	}
}
