package replica

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

func TestForbiddenFallsBackToNamespaces(t *testing.T) {
	api := newFakeAPI(t)
	rng := rand.New(rand.NewPCG(7, 8))
	churn(api, rng, 100)
	api.deny = func(_, namespace string) bool { return namespace != "team-a" }
	spec := fakeSpec
	spec.Namespaces = []string{"team-*"}
	r := startRig(t, api, Options{}, spec)
	r.becomes(t, cache.Forbidden) // no namespace is known by name
	if reason := r.pods().View().Reason; strings.HasPrefix(reason, "forbidden: ") {
		t.Errorf("the reason repeats the state: %s", reason)
	}
	config := api.config()
	config.Namespaces = []string{"team-a", "other"}
	f := NewFactory(Options{})
	if err := f.Apply("c", []cache.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	if err := f.Connect("c", config); err != nil {
		t.Fatal(err)
	}
	running(t, f)
	i, err := f.Informer(spec.Resource)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "live in one namespace", func() bool { return i.View().State == cache.Live })
	churn(api, rng, 100)
	want := api.truth()
	maps.DeleteFunc(want, func(k, _ string) bool { return k[:6] != "team-a" })
	eventually(t, "that namespace's objects", func() bool { return maps.Equal(held(i.store()), want) })
}

// TestForbiddenNamespace: one of several namespaces that may not be read is
// named, and holds up nobody who waits for a version.
func TestForbiddenNamespace(t *testing.T) {
	for name, revoked := range map[string]bool{"from the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			deny := func(verb, namespace string) bool { return namespace != "team-a" && verb != "get" }
			if !revoked {
				api.set(func(f *fakeAPI) { f.deny = deny })
			}
			api.put(cache.Key{Namespace: "team-a", Name: "p"}, "v1")
			api.put(cache.Key{Namespace: "team-b", Name: "p"}, "v1")
			spec := fakeSpec
			spec.Namespaces = []string{"team-a", "team-b"}
			r := startRig(t, api, Options{}, spec)
			r.becomes(t, cache.Live)
			store := r.pods().store()
			if revoked {
				if missing := r.pods().Status().Missing; len(missing) != 0 || !store.Covers("team-b") {
					t.Errorf("missing are %v while all may be read", missing)
				}
				api.set(func(f *fakeAPI) { f.deny = deny })
				api.cutAll()
			}
			eventually(t, "team-b is missing", func() bool {
				missing := r.pods().Status().Missing
				return len(missing) == 1 && missing[0].Namespace == "team-b" && missing[0].State == cache.Forbidden && missing[0].Reason != ""
			})
			if store.Covers("team-b") || !store.Covers("team-a") {
				t.Errorf("Covers() = %v for the refused namespace, %v for the other", store.Covers("team-b"), store.Covers("team-a"))
			}
			if _, ok := store.Get(cache.Key{Namespace: "team-b", Name: "p"}); ok != revoked {
				t.Errorf("an object of the refused namespace is held: %v, want what was last seen", ok)
			}
			api.put(cache.Key{Namespace: "team-a", Name: "p"}, "v2")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var version string
			api.set(func(f *fakeAPI) { version = strconv.Itoa(f.version) })
			if err := store.WaitVersion(ctx, version); err != nil {
				t.Errorf("WaitVersion(%s) = %v", version, err)
			}
			if err := store.WaitVersionIn(ctx, "team-a", version); err != nil {
				t.Errorf("WaitVersionIn(team-a, %s) = %v", version, err)
			}
			cancel()
			if err := store.WaitVersionIn(ctx, "team-b", "1"); !errors.Is(err, cache.ErrTooNew) {
				t.Errorf("WaitVersionIn(team-b) = %v, want ErrTooNew: nothing is known of it", err)
			}
			api.set(func(f *fakeAPI) { f.deny = nil })
			eventually(t, "team-b is here again", func() bool {
				return len(r.pods().Status().Missing) == 0 && store.Covers("team-b")
			})
		})
	}
}

func TestForbiddenAsksRarely(t *testing.T) {
	api := newFakeAPI(t)
	api.deny = func(string, string) bool { return true }
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Forbidden)
	before := api.count("")
	time.Sleep(300 * time.Millisecond) // long enough for many attempts, if there were any
	if n := api.count("") - before; n > 1 {
		t.Errorf("%d requests while forbidden", n)
	}
}
