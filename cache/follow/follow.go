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
)

// Resource is one resource; *cache.Informer is one.
type Resource interface {
	Spec() cache.Spec
	Status() cache.Status
	// Store is nil while the resource is not watched.
	Store() *cache.Store
}

// Delta is the state of one resource and what changed in it.
type Delta struct {
	Status cache.Status
	// Store is nil when the resource cannot be read: what was known of its
	// objects must be forgotten.
	Store *cache.Store
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
	return d.Store != nil && !d.Whole && len(d.Objects) == 0 && len(d.Deleted) == 0
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
// moment of the call. After an error nothing is lost: what was not returned
// comes again as a whole.
func (f *Follower) Read(ctx context.Context, resources []Resource) ([]Delta, error) {
	deltas := make([]Delta, 0, len(resources))
	statuses := make([]cache.Status, len(resources))
	seen := make(map[cache.Resource]bool, len(resources))
	for i, r := range resources {
		statuses[i] = r.Status()
		seen[statuses[i].Spec.Resource] = true
	}
	for r := range f.positions {
		if !seen[r] {
			f.drop(r)
			deltas = append(deltas, Delta{Status: cache.Status{Spec: cache.Spec{Resource: r}}, Gone: true})
		}
	}
	for i, r := range resources {
		d, err := f.read(ctx, statuses[i], r.Store())
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("read %s: %w", statuses[i].Spec.Resource, err)
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}

func (f *Follower) read(ctx context.Context, status cache.Status, store *cache.Store) (Delta, error) {
	d := Delta{Status: status}
	if store == nil || !status.State.Readable() {
		f.drop(status.Spec.Resource)
		return d, nil
	}
	d.Store = store
	at := f.positions[status.Spec.Resource]
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
	resource := d.Status.Spec.Resource
	f.drop(resource)
	revision := d.Store.Revision()
	sub, err := d.Store.Watch("")
	if errors.Is(err, cache.ErrStopped) {
		d.Store = nil // its successor comes next time
		return nil
	}
	if err != nil {
		return err
	}
	all, err := d.Store.Select(ctx, cache.Query{})
	if err != nil {
		sub.Close()
		return err
	}
	if f.positions == nil {
		f.positions = map[cache.Resource]*position{}
	}
	f.positions[resource] = &position{store: d.Store, subscription: sub, revision: revision}
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
