package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// running runs f until the test ends, and returns the context it runs under.
func running(t *testing.T, f *Factory) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	return ctx
}

// Whoever looks while resources are applied sees none of them or all.
func TestApplyAtOnce(t *testing.T) {
	const resources = 300
	f := NewFactory(Options{})
	running(t, f)

	seen := make(chan map[int]bool, 1)
	applied := make(chan struct{})
	go func() {
		counts := map[int]bool{}
		for {
			counts[len(f.Informers())] = true
			select {
			case <-applied:
				seen <- counts
				return
			default:
			}
		}
	}()
	if err := f.Apply(fakeSpec.Cluster, kinds(resources)); err != nil {
		t.Fatal(err)
	}
	close(applied)
	counts := <-seen
	delete(counts, 0)
	delete(counts, resources)
	if len(counts) > 0 {
		t.Errorf("%d different parts of %d resources were seen", len(counts), resources)
	}
}

// kinds are specs of n resources of one cluster.
func kinds(n int) (specs []cache.Spec) {
	for i := range n {
		spec := fakeSpec
		spec.GVR.Resource = fmt.Sprintf("kind%d", i)
		specs = append(specs, spec)
	}
	return specs
}

// redacting is specs under other rules.
func redacting(specs []cache.Spec) (changed []cache.Spec) {
	for _, spec := range specs {
		spec.Redact = []string{"data"}
		changed = append(changed, spec)
	}
	return changed
}

// watched are Snapshots that tell of each drop.
type watched struct {
	*memory
	dropping func()
}

func (w *watched) Drop(r cache.Resource) error {
	w.dropping()
	return w.memory.Drop(r)
}

// A resource that only gets another informer, because its rule or definition
// changed, is known all the time. One that is gone is unknown at once, and the
// rest stays.
func TestApplyKeepsResourcesKnown(t *testing.T) {
	const resources = 60
	specs := kinds(resources)
	var f *Factory
	var looks atomic.Int64
	look := func() {
		looks.Add(1)
		if n := len(f.Informers()); n != resources {
			t.Errorf("%d resources are known while their rule changes, want %d", n, resources)
		}
		for _, spec := range specs {
			if _, err := f.Lookup("", spec.GVR.Resource); err != nil {
				t.Errorf("Lookup() = %v while a rule changes", err)
			}
			if _, err := f.Informer(spec.Resource); err != nil {
				t.Errorf("Informer() = %v while a rule changes", err)
			}
		}
	}
	db := &watched{newMemory(), func() {}}
	f = NewFactory(Options{Snapshots: db})
	running(t, f)
	if err := f.Apply(fakeSpec.Cluster, specs); err != nil {
		t.Fatal(err)
	}

	db.dropping = look
	done, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-done:
				return
			default:
				look()
			}
		}
	}()
	if err := f.Apply(fakeSpec.Cluster, redacting(specs)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "many looks", func() bool { return looks.Load() >= resources })
	close(done)
	<-looked

	db.dropping = func() {
		if n := len(f.Informers()); n != 1 {
			t.Errorf("%d resources are known while the snapshots of those that are gone are dropped, want 1", n)
		}
		if _, err := f.Lookup("", "kind1"); !errors.Is(err, cache.ErrUnknownResource) {
			t.Errorf("Lookup() = %v of a resource that is gone", err)
		}
	}
	if err := f.Apply(fakeSpec.Cluster, redacting(specs)[:1]); err != nil {
		t.Fatal(err)
	}
}

// TestGoneIsNowhere: who follows a resource that is gone is told that its objects are
// deleted. Nobody else finds them deleted, neither a reader nor a save: at the version of the
// copy they were there, and a snapshot that lacks them is wrong after a kill.
func TestGoneIsNowhere(t *testing.T) {
	specs := kinds(300) // so many that the others are still going while the first one is looked at
	f := NewFactory(Options{Snapshots: newMemory(), SaveInterval: time.Hour})
	ctx := running(t, f)
	if err := f.Apply(fakeSpec.Cluster, specs); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(specs, func(a, b cache.Spec) int { return a.Resource.Compare(b.Resource) })
	i, err := f.Informer(specs[0].Resource)
	if err != nil {
		t.Fatal(err)
	}
	object, err := i.store().Decode([]byte(`{"metadata":{"namespace":"a","name":"b","uid":"u","resourceVersion":"1"}}`), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	i.store().Replace("", []*cache.Object{object}, "1")
	sub, err := i.store().Watch("1")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	seen := make(chan error, 1)
	go func() {
		events, err := sub.Next(ctx)
		if err != nil || len(events) != 1 || events[0].Type != cache.Deleted {
			seen <- fmt.Errorf("told %v, %w", events, err)
			return
		}
		if _, err := f.Informer(i.resource); !errors.Is(err, cache.ErrUnknownResource) {
			seen <- fmt.Errorf("a reader finds the copy without its objects: %w", err)
			return
		}
		if !i.out.Load() {
			seen <- errors.New("a save that has begun takes the deletion")
			return
		}
		seen <- nil
	}()
	if err := f.Apply(fakeSpec.Cluster, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-seen; err != nil {
		t.Error(err)
	}
}

// Who is told that a store stopped finds none in its place where the resource is
// gone or not watched any more.
func TestStoreStopsWhenReplaced(t *testing.T) {
	specs := kinds(2)
	db := &watched{newMemory(), func() {}}
	f := NewFactory(Options{Snapshots: db})
	ctx := running(t, f)
	if err := f.Apply(fakeSpec.Cluster, specs); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, len(specs))
	for _, spec := range specs {
		i, err := f.Informer(spec.Resource)
		if err != nil {
			t.Fatal(err)
		}
		store := i.store()
		store.Replace("", nil, "1")
		sub, err := store.Watch("")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		go func() {
			if _, err := sub.Next(ctx); !errors.Is(err, cache.ErrStopped) {
				ended <- fmt.Errorf("%s: Next() = %w", spec.Resource, err)
				return
			}
			if now, err := f.Informer(spec.Resource); err == nil && now.View().Store(inside.Cache) == store {
				ended <- fmt.Errorf("%s stopped and is still in its place", spec.Resource)
				return
			}
			ended <- nil
		}()
	}
	// What is slow after the end of a store must not hide that it was replaced.
	var dropped atomic.Bool
	db.dropping = func() {
		if dropped.Swap(true) {
			return
		}
		for range specs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	unwatched := specs[0]
	unwatched.Watch = false
	if err := f.Apply(fakeSpec.Cluster, []cache.Spec{unwatched}); err != nil {
		t.Fatal(err)
	}
	if !dropped.Load() {
		t.Error("no snapshot was dropped")
	}
}

// Before a cluster has told which resources it has, one that is not known may be
// there. What a snapshot knows of it is not all.
func TestUnknownBeforeDiscovery(t *testing.T) {
	f := NewFactory(Options{})
	running(t, f)
	check := func(when string, discovered bool, first, second error) {
		t.Helper()
		if now := f.Clusters(); len(now) != 1 || now[0].Discovered != discovered || errors.Is(now[0].NotDiscovered(), cache.ErrNotSynced) == discovered {
			t.Errorf("%s: clusters are %+v", when, now)
		}
		for name, want := range map[string]error{"kind0": first, "kind1": second} {
			if _, err := f.Lookup("", name); !errors.Is(err, want) {
				t.Errorf("%s: Lookup(%s) = %v, want %v", when, name, err, want)
			}
		}
	}
	if _, err := f.Lookup("", "kind0"); !errors.Is(err, cache.ErrNotSynced) {
		t.Errorf("without a cluster: Lookup() = %v", err)
	}
	specs := kinds(2)
	cluster := fakeSpec.Cluster
	if err := f.Expect(cluster); err != nil {
		t.Fatal(err)
	}
	check("expected", false, cache.ErrNotSynced, cache.ErrNotSynced)
	if err := f.ApplySaved(cluster, specs[:1]); err != nil {
		t.Fatal(err)
	}
	check("from the snapshot", false, nil, cache.ErrNotSynced)
	if err := f.Apply(cluster, specs[:1]); err != nil {
		t.Fatal(err)
	}
	check("discovered", true, nil, cache.ErrUnknownResource)
	if err := f.Apply(cluster, nil); err != nil {
		t.Fatal(err)
	}
	check("empty", true, cache.ErrUnknownResource, cache.ErrUnknownResource)
}

// TestOtherVersion: a resource that is watched in another version from now on, as when
// a definition gets one that is preferred, has lost nothing. Who watches it in the old
// one is not told that its objects were deleted, the watch ends.
func TestOtherVersion(t *testing.T) {
	api := newFakeAPI(t)
	api.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v1")
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	before := r.pods().store()
	sub, err := before.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	other := fakeSpec
	other.GVR.Version = "v2"
	if err := r.Apply("c", []cache.Spec{other}); err != nil {
		t.Fatal(err)
	}
	if told, err := sub.Next(t.Context()); !errors.Is(err, cache.ErrStopped) {
		t.Errorf("readers were told %v, %v", told, err)
	}
}
