package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var fakeSpec = cache.Spec{
	Resource: cache.Resource{Cluster: "c", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	Kind:     "Pod", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true, Watch: true,
	Drop: []string{"metadata.managedFields"},
}

// rig is a running factory on a fake API server.
type rig struct {
	*Factory
	api   *fakeAPI
	begin func() // runs the factory
	stop  func() error
}

func startRig(t *testing.T, api *fakeAPI, options Options, specs ...cache.Spec) *rig {
	t.Helper()
	r := prepareRig(t, api, options, specs...)
	r.begin()
	return r
}

// prepareRig is startRig without begin.
func prepareRig(t *testing.T, api *fakeAPI, options Options, specs ...cache.Spec) *rig {
	t.Helper()
	if options.SaveInterval == 0 {
		options.SaveInterval = 20 * time.Millisecond
	}
	if options.Log == nil {
		options.Log = testLog(t)
	}
	options.verifyGrace = 200 * time.Millisecond
	if options.retry == (retry{}) {
		options.retry = retry{first: time.Millisecond, last: 50 * time.Millisecond}
	}
	f := NewFactory(options)
	if len(specs) == 0 {
		specs = []cache.Spec{fakeSpec}
	}
	if err := f.Apply("c", specs); err != nil {
		t.Fatal(err)
	}
	if err := f.Connect("c", api.config()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	begin := func() { go func() { done <- f.Run(ctx) }() }
	r := &rig{Factory: f, api: api, begin: begin, stop: sync.OnceValue(func() error { cancel(); return <-done })}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// testLog logs to the output of a test until it ends. client-go does not wait for the
// goroutine of a watch that it stops, which may have a last line to log.
func testLog(t *testing.T) *slog.Logger {
	out := &testOutput{w: t.Output()}
	t.Cleanup(out.close)
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testOutput drops what is written after it was closed.
type testOutput struct {
	mu sync.Mutex
	w  io.Writer // nil once it was closed
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *testOutput) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}

func (r *rig) pods() *Informer {
	i, err := r.Informer(fakeSpec.Resource)
	if err != nil {
		panic(err)
	}
	return i
}

func held(s *cache.Store) map[string]string {
	out := map[string]string{}
	for _, o := range s.Holdings("").All() {
		out[o.Key().String()] = describe(o)
	}
	return out
}

// describe is what the truth of the fake API server says of an object.
func describe(o *cache.Object) string {
	var body struct{ Spec struct{ Value string } }
	raw, err := o.JSON()
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s@%s=%s", o.UID(), o.ResourceVersion(), body.Spec.Value)
}

// noMachineMisses bounds waits for what must come. With the race detector, on a machine
// that has other things to do, a few thousand requests take more than a minute.
const noMachineMisses = 5 * time.Minute

// eventually waits for a condition with a deadline no machine misses.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(noMachineMisses)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", noMachineMisses, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *rig) becomes(t *testing.T, state cache.State) {
	t.Helper()
	eventually(t, "state "+string(state), func() bool { return r.pods().View().State == state })
}

// equal waits until the store holds what the server does.
func (r *rig) equal(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(noMachineMisses)
	for {
		diff := cmp.Diff(r.api.truth(), held(r.pods().store()))
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the copy differs (-server +copy):\n%s\n%+v", diff, r.pods().Status())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// follow rebuilds the state from a subscription until the store closes.
func follow(t *testing.T, s *cache.Store) (replica func() map[string]string, events func() []cache.Event) {
	t.Helper()
	sub, err := s.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	state := held(s)
	var seen []cache.Event
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		defer sub.Close()
		for {
			batch, err := sub.Next(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			for _, e := range batch {
				seen = append(seen, e)
				if e.Type == cache.Deleted {
					delete(state, e.Object.Key().String())
					continue
				}
				var body struct{ Spec struct{ Value string } }
				raw, _ := e.Object.JSON()
				_ = json.Unmarshal(raw, &body)
				state[e.Object.Key().String()] = fmt.Sprintf("%s@%s=%s", e.Object.UID(), e.Object.ResourceVersion(), body.Spec.Value)
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() map[string]string { mu.Lock(); defer mu.Unlock(); return maps.Clone(state) },
		func() []cache.Event { mu.Lock(); defer mu.Unlock(); return slices.Clone(seen) }
}

func churn(api *fakeAPI, rng *rand.Rand, n int) {
	for range n {
		key := cache.Key{Namespace: []string{"team-a", "team-b"}[rng.IntN(2)], Name: fmt.Sprintf("p%d", rng.IntN(30))}
		switch rng.IntN(5) {
		case 0:
			api.delete(key)
		case 1:
			api.delete(key)
			api.put(key, "recreated")
		default:
			api.put(key, fmt.Sprint(rng.Uint32()))
		}
	}
}
