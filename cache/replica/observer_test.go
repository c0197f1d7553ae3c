package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// observer is a reader of a resource that believes nothing: whatever it reads is to
// be what etcd held at that version, never less than readable once it was, never
// older than its age, and equal to what a subscriber makes of the events.
type observer struct {
	d        *deceived
	resource string
	last     string // version
	store    *cache.Store
	sub      *cache.Subscription
	state    map[string]string
	readable bool
	stop     func()

	mu       sync.Mutex // guards all below
	replaced int        // other Stores that were met
	expired  int        // subscriptions that ended
	events   []string
}

// observe reads a resource all the time until the test ends.
func (d *deceived) observe(resource string) *observer {
	o := &observer{d: d, resource: resource}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, 70*time.Millisecond) {
			o.look()
		}
		if o.sub != nil {
			o.sub.Close()
		}
	}()
	o.stop = func() { cancel(); <-done }
	d.t.Cleanup(o.stop)
	return o
}

func (o *observer) counts() (replaced, expired int, events []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.replaced, o.expired, append([]string(nil), o.events...)
}

func (o *observer) errorf(format string, args ...any) {
	if !o.d.t.Failed() { // the first one says it
		o.d.t.Errorf(o.resource+": "+format, args...)
	}
}

// look takes one answer and what was told since the last one.
func (o *observer) look() {
	v := o.d.of(o.resource).View()
	if !v.Readable() {
		if o.readable {
			o.errorf("not readable any more: %s, %s", v.State, v.Reason)
		}
		return
	}
	o.readable = true
	got, err := v.Store(inside.Cache).Select(context.Background(), cache.Query{})
	if errors.Is(err, cache.ErrStopped) {
		return // replaced since
	}
	if err != nil {
		o.errorf("an answer of a readable resource: %v", err)
		return
	}
	o.d.isTrue(o.resource, got.Version, describeAll(got.Objects))
	if v.Store(inside.Cache) != o.store {
		o.begin(v.Store(inside.Cache), got)
	} else if cache.Older(got.Version, o.last) {
		o.errorf("versions fell from %s to %s", o.last, got.Version)
	}
	o.last = got.Version
	o.aged(v, got.Version)
	o.listen()
}

// aged holds the age against what the answer lacks.
func (o *observer) aged(v *cache.View, version string) {
	have, _ := strconv.Atoi(version)
	if want := o.d.l.before(o.resource, v.Proof); !v.Proof.IsZero() && have < want {
		age, _ := v.Age()
		o.errorf("%s at %d and said to be %v old; it lacks %d, which is older", v.State, have, age, want)
	}
	if want := o.d.l.before(o.resource, time.Now().Add(-Lease-5*time.Second)); v.State == cache.Live && have < want {
		o.errorf("live at %d without %d, which is older than a lease", have, want)
	}
}

func (o *observer) begin(store *cache.Store, from *cache.Result) {
	o.mu.Lock()
	if o.store != nil {
		o.replaced++
	}
	o.mu.Unlock()
	if o.sub != nil {
		o.drain()
		o.sub.Close()
	}
	o.store = store
	o.subscribe(from)
}

// drain reads what a Store that was replaced has left, which ends with ErrStopped.
func (o *observer) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err := o.sub.Next(ctx); errors.Is(err, cache.ErrStopped) || errors.Is(err, cache.ErrExpired) {
			return
		} else if err != nil {
			o.errorf("a subscription across another history ended with %v", err)
			return
		}
	}
}

func (o *observer) subscribe(from *cache.Result) {
	var err error
	if o.sub, err = o.store.Watch(from.Version); err != nil {
		o.errorf("watch from %s, which was just read: %v", from.Version, err)
		return
	}
	o.state = describeAll(from.Objects)
}

// listen follows the events.
func (o *observer) listen() {
	for o.sub != nil {
		events, err := o.sub.Poll()
		if err != nil {
			o.mu.Lock()
			o.expired++
			o.mu.Unlock()
			o.sub.Close()
			o.sub = nil
			return
		}
		if len(events) == 0 {
			o.d.isTrue(o.resource, o.sub.Version(), o.state)
			return
		}
		for _, e := range events {
			o.enter(e)
		}
	}
	if got, err := o.store.Select(context.Background(), cache.Query{}); err == nil {
		o.subscribe(got)
	}
}

func (o *observer) enter(e cache.Event) {
	key := e.Object.Key().String()
	_, had := o.state[key]
	switch {
	case e.Type == cache.Added && had, e.Type != cache.Added && !had:
		o.errorf("%s %s, and it was there: %v", e.Type, key, had)
	case e.Type == cache.Modified:
		a, _ := e.Old.JSON()
		b, _ := e.Object.JSON()
		if bytes.Equal(a, b) {
			o.errorf("%s was told although it did not change", key)
		}
	}
	o.mu.Lock()
	o.events = append(o.events, fmt.Sprintf("%s %s", e.Type, key))
	o.mu.Unlock()
	if e.Type == cache.Deleted {
		delete(o.state, key)
	} else {
		o.state[key] = describe(e.Object)
	}
}
