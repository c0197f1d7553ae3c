package replica

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
)

// expire makes the API server unreachable, lets change happen and history be
// forgotten, and brings it back: the next watch is answered with 410.
func (r *rig) expire(t *testing.T, change func()) {
	t.Helper()
	r.api.set(func(f *fakeAPI) {
		f.fault = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			status(w, http.StatusServiceUnavailable, "ServiceUnavailable")
			return true
		}
	})
	r.api.cutAll()
	r.becomes(t, cache.Stale)
	change()
	r.api.compact()
	r.api.set(func(f *fakeAPI) { f.requests, f.fault = nil, nil })
}

// manyPods starts a rig on a server with 300 pods, enough to be compared.
func manyPods(t *testing.T, api *fakeAPI, specs ...cache.Spec) *rig {
	t.Helper()
	for n := range 300 {
		api.put(pod(n), "v1")
	}
	r := startRig(t, api, Options{compareLeast: 100}, specs...)
	r.becomes(t, cache.Live)
	return r
}

func pod(n int) cache.Key {
	return cache.Key{Namespace: []string{"team", "team-a", "team-b"}[n%3], Name: fmt.Sprintf("p%03d", n)}
}

// TestRelistByComparison: after a 410, metadata is listed and what changed is
// got; subscribers see what changed and nothing else.
func TestRelistByComparison(t *testing.T) {
	api := newFakeAPI(t)
	r := manyPods(t, api)
	replica, events := follow(t, r.pods().store())
	r.expire(t, func() {
		api.put(pod(3), "v2")
		api.delete(pod(4))
		api.delete(pod(5))
		api.put(pod(5), "recreated")
		api.put(pod(400), "v1")
	})
	r.equal(t)
	r.becomes(t, cache.Live)
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	var got []string
	for _, e := range events() {
		got = append(got, fmt.Sprintf("%s %s", e.Type, e.Object.Key()))
	}
	slices.Sort(got)
	want := []string{"ADDED team-a/p400", "ADDED team-b/p005", "DELETED team-a/p004", "DELETED team-b/p005", "MODIFIED team/p003"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscribers saw more or less than what changed (-want +got):\n%s", diff)
	}
	if lists, pages, gets := api.count("watchlist")+api.count("list"), api.count("metadata"), api.count("fetch"); lists != 0 || pages != 15 || gets != 3 {
		t.Errorf("%d full lists, %d pages of metadata, %d objects got; want 0, 15 and 3", lists, pages, gets)
	}
	if s := r.pods().Status(); s.Expired != 1 || s.Relists != 1 || s.Compared != 1 || s.Fetched != 3 {
		t.Errorf("%d expired, %d relists, %d compared, %d fetched; want 1, 1, 1, 3", s.Expired, s.Relists, s.Compared, s.Fetched)
	}
	api.put(pod(7), "v2") // and the watch goes on
	r.equal(t)
}

// TestRelistInFull: where a comparison cannot be trusted, or would cost more,
// everything is listed.
func TestRelistInFull(t *testing.T) {
	for name, change := range map[string]func(*fakeAPI){
		"much changed": func(f *fakeAPI) {
			for n := range 40 {
				f.put(pod(n), "v2")
			}
		},
		"other server version": func(f *fakeAPI) { f.set(func(f *fakeAPI) { f.gitVersion = "v1.37.0" }) },
		"objects refused": func(f *fakeAPI) {
			f.put(pod(3), "v2")
			f.set(func(f *fakeAPI) { f.deny = func(verb, _ string) bool { return verb == "fetch" } })
		},
		// A change that was never told: an object has another version that is no newer
		// than what the copy is complete up to. The newest one is as it was.
		"change missed": func(f *fakeAPI) {
			f.set(func(f *fakeAPI) {
				o := *f.objects[pod(3)]
				o.version, o.value = o.version+1, "missed"
				f.objects[pod(3)] = &o
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := manyPods(t, api)
			replica, _ := follow(t, r.pods().store())
			r.expire(t, func() { change(api) })
			r.equal(t)
			r.becomes(t, cache.Live)
			eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
			if n := api.count("list") + api.count("watchlist"); n != 1 {
				t.Errorf("%d lists, want one", n)
			}
			if s := r.pods().Status(); s.Relists != 2 || s.Compared != 0 {
				t.Errorf("%d relists, %d compared; want 2 and 0", s.Relists, s.Compared)
			}
		})
	}
}

// TestRelistOfCustomResource: another definition may serve the same version of
// an object differently.
func TestRelistOfCustomResource(t *testing.T) {
	api := newFakeAPI(t)
	api.crdGeneration = 1
	spec := fakeSpec
	spec.CRDUID, spec.CRDGeneration = "crd-1", 1
	r := manyPods(t, api, spec)
	r.expire(t, func() { api.put(pod(3), "v2") })
	r.equal(t)
	r.becomes(t, cache.Live)
	if s := r.pods().Status(); s.Relists != 1 || s.Compared != 1 {
		t.Errorf("under the same definition: %d relists, %d compared; want 1 and 1", s.Relists, s.Compared)
	}
	r.expire(t, func() { api.set(func(f *fakeAPI) { f.crdGeneration = 2 }) })
	eventually(t, "a full list", func() bool { return r.pods().Status().Relists == 2 })
	if s := r.pods().Status(); s.Compared != 1 {
		t.Errorf("under another definition: %d compared, want 1", s.Compared)
	}
}

// TestComparisonThroughFaults: what fails for a while is tried again, and does
// not lead to a full list.
func TestComparisonThroughFaults(t *testing.T) {
	api := newFakeAPI(t)
	r := manyPods(t, api)
	r.expire(t, func() {
		for n := range 10 {
			api.put(pod(n), "v2")
		}
		left := map[string]int{"metadata": 2, "fetch": 1}
		var mu sync.Mutex
		api.set(func(f *fakeAPI) {
			f.meanwhile = func(verb string) {
				mu.Lock()
				left[verb]--
				fail := left[verb] >= 0
				mu.Unlock()
				if fail {
					panic(http.ErrAbortHandler)
				}
			}
		})
	})
	r.equal(t)
	r.becomes(t, cache.Live)
	if s := r.pods().Status(); s.Relists != 1 || s.Compared != 1 {
		t.Errorf("%d relists, %d compared; want 1 and 1", s.Relists, s.Compared)
	}
}

// TestComparisonUnderChurn changes objects between any two requests of a relist:
// those that were listed are gone, others or newer by the time they are got. At
// every moment the store must be exactly what the server held at the store's
// version, and subscribers must never see an object go back.
func TestComparisonUnderChurn(t *testing.T) {
	api := newFakeAPI(t)
	r := manyPods(t, api)
	store := r.pods().store()
	replica, events := follow(t, store)
	rng := rand.New(rand.NewPCG(21, 22))
	var mu sync.Mutex // guards rng
	mix := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		for range n {
			// A few objects change often, so that those that changed change again.
			key := pod(rng.IntN(12))
			switch rng.IntN(6) {
			case 0:
				api.delete(key)
			case 1:
				api.delete(key)
				api.put(key, "recreated")
			case 2:
				api.put(pod(rng.IntN(320)), strconv.Itoa(rng.Int()))
			default:
				api.put(key, strconv.Itoa(rng.Int()))
			}
		}
	}
	stop := checkExact(t, api, store)
	for range 15 {
		r.expire(t, func() {
			mix(8)
			api.set(func(f *fakeAPI) {
				f.meanwhile = func(verb string) {
					if verb == "metadata" || verb == "fetch" || verb == "watch" {
						mix(1)
					}
				}
			})
		})
		r.becomes(t, cache.Live)
		api.set(func(f *fakeAPI) { f.meanwhile = nil })
		r.equal(t)
	}
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	if checked := stop(); checked < 5 {
		t.Errorf("only %d states were compared", checked)
	}
	if s := r.pods().Status(); s.Compared < 10 {
		t.Errorf("%d of 15 relists were made by comparison: %+v", s.Compared, s)
	}
	checkForward(t, events())
}

// checkExact compares the store with the history of the server whenever it
// changed, until stop, which says how often.
func checkExact(t *testing.T, api *fakeAPI, store *cache.Store) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		checked, last := 0, ""
		defer func() { done <- checked }()
		for sleep(ctx, time.Millisecond) {
			all, err := store.Select(ctx, cache.Query{})
			if err != nil {
				return
			}
			version := all.Version
			if version == last {
				continue
			}
			last = version
			at, err := strconv.Atoi(version)
			if err != nil {
				t.Errorf("version %q", version)
				return
			}
			got := map[string]string{}
			for _, o := range all.Objects {
				got[o.Key().String()] = describe(o)
			}
			if diff := cmp.Diff(api.truthAt(at), got); diff != "" {
				t.Errorf("at version %d (-server +store):\n%s", at, diff)
				return
			}
			checked++
		}
	}()
	return func() int { cancel(); return <-done }
}

// checkForward fails if an object is seen twice in one version or in a lower one.
func checkForward(t *testing.T, events []cache.Event) {
	t.Helper()
	last := map[cache.Key]cache.Event{}
	for _, e := range events {
		before, ok := last[e.Object.Key()]
		last[e.Object.Key()] = e
		switch {
		case !ok:
		case e.Type == cache.Deleted && before.Type != cache.Deleted && !cache.Older(e.Object.ResourceVersion(), before.Object.ResourceVersion()):
		case e.Type != cache.Deleted && (e.Type == cache.Added) == (before.Type == cache.Deleted) && cache.Newer(e.Object.ResourceVersion(), before.Object.ResourceVersion()):
		default:
			t.Errorf("%s %s in version %s after %s in version %s", e.Type, e.Object.Key(), e.Object.ResourceVersion(), before.Type, before.Object.ResourceVersion())
		}
	}
}
