package replica

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
)

// TestFollowsThroughFaults holds the promise of resumeWatch: whatever the
// connection does, nothing is lost, and only an expired version costs a relist.
func TestFollowsThroughFaults(t *testing.T) {
	for name, c := range map[string]struct{ server, list string }{
		"after a plain list":     {"v1.36.3", "list"},
		"after a streaming list": {"v1.32.0", "watchlist"},
	} {
		t.Run(name, func(t *testing.T) { followThroughFaults(t, c.server, c.list) })
	}
}

func followThroughFaults(t *testing.T, server, list string) {
	api := newFakeAPI(t)
	api.gitVersion = server
	rng := rand.New(rand.NewPCG(1, 2))
	churn(api, rng, 100)
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	replica, _ := follow(t, r.pods().store())
	faults := []func(w http.ResponseWriter) bool{
		func(w http.ResponseWriter) bool { status(w, 503, "ServiceUnavailable"); return true },
		func(w http.ResponseWriter) bool { status(w, 401, "Unauthorized"); return true },
		func(w http.ResponseWriter) bool { status(w, 500, "InternalError"); return true },
		func(w http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) bool { return true }, // an empty stream that ends at once
		func(w http.ResponseWriter) bool {
			fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", statusJSON(500, "InternalError"))
			return true
		},
		func(w http.ResponseWriter) bool {
			fmt.Fprint(w, `{"type":"ADDED","object":{"metadata":{"na`)
			return true
		},
	}
	for round := range 30 {
		fault := faults[round%len(faults)]
		left := 1 + rng.IntN(2)
		api.set(func(f *fakeAPI) {
			f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
				f.mu.Lock()
				left--
				now := left >= 0
				f.mu.Unlock()
				if !now {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				return fault(w)
			}
		})
		churn(api, rng, 20)
		api.cutAll()
		churn(api, rng, 20)
		eventually(t, "the fault to be met", func() bool { api.mu.Lock(); defer api.mu.Unlock(); return left <= 0 })
	}
	api.set(func(f *fakeAPI) { f.fault = nil })
	r.equal(t)
	r.becomes(t, cache.Live)
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	if all, first := api.count("list")+api.count("watchlist"), api.count(list); all != 1 || first != 1 {
		t.Errorf("%d lists, %d of the kind %s; want the first one only", all, first, list)
	}
}

func TestExpiredRelistsWithDiff(t *testing.T) {
	api := newFakeAPI(t)
	for n := range 20 {
		api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%02d", n)}, "v1")
	}
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	replica, events := follow(t, r.pods().store())

	// While the watch is down, three objects change, and history is compacted.
	api.set(func(f *fakeAPI) {
		f.fault = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			status(w, 503, "ServiceUnavailable")
			return true
		}
	})
	api.cutAll()
	r.becomes(t, cache.Stale)
	api.put(cache.Key{Namespace: "team-a", Name: "p03"}, "v2")
	api.delete(cache.Key{Namespace: "team-a", Name: "p04"})
	api.delete(cache.Key{Namespace: "team-a", Name: "p05"})
	api.put(cache.Key{Namespace: "team-a", Name: "p05"}, "recreated")
	api.compact()
	api.set(func(f *fakeAPI) { f.fault = nil })

	r.equal(t)
	r.becomes(t, cache.Live)
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	var got []string
	for _, e := range events() {
		got = append(got, fmt.Sprintf("%s %s", e.Type, e.Object.Key()))
	}
	slices.Sort(got)
	want := []string{"ADDED team-a/p05", "DELETED team-a/p04", "DELETED team-a/p05", "MODIFIED team-a/p03"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscribers saw more or less than what changed (-want +got):\n%s", diff)
	}
	if s := r.pods().Status(); s.Expired != 1 || s.Relists != 2 {
		t.Errorf("expired %d, relists %d; want 1 and 2", s.Expired, s.Relists)
	}
}

func TestNoStreamingLists(t *testing.T) {
	api := newFakeAPI(t)
	api.gitVersion, api.noStreaming = "v1.30.0", true
	rng := rand.New(rand.NewPCG(5, 6))
	churn(api, rng, 100)
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	churn(api, rng, 100)
	r.equal(t)
	if api.count("list") != 1 || api.count("watchlist") != 1 {
		t.Errorf("requests: %v, want one streaming list refused and one list", api.requests)
	}
}

func TestApply(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(9, 10)), 50)
	r := startRig(t, api, Options{Snapshots: db})
	r.becomes(t, cache.Live)
	eventually(t, "a commit", func() bool { db.mu.Lock(); defer db.mu.Unlock(); return db.commits > 0 })
	store := r.pods().store()
	replica, _ := follow(t, store)

	indexed := fakeSpec
	indexed.Indexes = map[string]string{"value": "spec.value"}
	if err := r.Apply("c", []cache.Spec{indexed}); err != nil {
		t.Fatal(err)
	}
	if r.pods().store() != store {
		t.Fatal("a new index replaced the store")
	}
	if _, _, err := store.IndexValues("value", "", 0); err != nil {
		t.Errorf("the new index is not there: %v", err)
	}
	// The list makes it live; its watch is opened after that.
	eventually(t, "a watch", func() bool { return api.count("watch") > 0 })
	if n := api.count("watch"); n != 1 {
		t.Errorf("%d watches, want the first one undisturbed", n)
	}
	bad := indexed
	bad.Indexes = map[string]string{"value": "spec["}
	if err := r.Apply("c", []cache.Spec{bad}); err == nil {
		t.Error("a bad path was accepted")
	}

	if _, err := r.Lookup("", "po"); err != nil {
		t.Errorf("short name: %v", err)
	}
	if _, err := r.Lookup("", "pds"); !errors.Is(err, cache.ErrUnknownResource) {
		t.Errorf("unknown name: %v", err)
	}
	if err := r.Apply("c", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "subscribers to see every object deleted", func() bool { return len(replica()) == 0 })
	if _, err := r.Lookup("", "pods"); !errors.Is(err, cache.ErrUnknownResource) {
		t.Errorf("a resource that is gone: %v", err)
	}
	if saved, _ := db.Saved(); len(saved) != 0 {
		t.Errorf("its snapshot is still there")
	}
	unwatched := fakeSpec
	unwatched.Watch = false
	if err := r.Apply("c", []cache.Spec{unwatched}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup("", "pods"); !errors.Is(err, cache.ErrNotWatched) {
		t.Errorf("an unwatched resource: %v", err)
	}
	if err := r.Apply("c", []cache.Spec{fakeSpec}); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, cache.Live)
	r.equal(t)
}

// TestVerifyMends: a server that swallows an event is found out.
func TestVerifyMends(t *testing.T) {
	api := newFakeAPI(t)
	churn(api, rand.New(rand.NewPCG(13, 14)), 50)
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	api.set(func(f *fakeAPI) { f.mute = 1 })
	api.put(cache.Key{Namespace: "team-a", Name: "swallowed"}, "v1")
	eventually(t, "the event to be swallowed", func() bool { api.mu.Lock(); defer api.mu.Unlock(); return api.mute == 0 })
	api.put(cache.Key{Namespace: "team-a", Name: "seen"}, "v1")
	eventually(t, "the next event", func() bool { return held(r.pods().store())["team-a/seen"] != "" })
	if cmp.Diff(api.truth(), held(r.pods().store())) == "" {
		t.Fatal("nothing was swallowed")
	}
	if err := r.pods().verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.equal(t)
	if s := r.pods().Status(); s.Mended != 1 || !s.Verified.IsZero() {
		t.Errorf("mended %d, verified %v; want 1 and not yet", s.Mended, s.Verified)
	}
	r.becomes(t, cache.Live)
	if err := r.pods().verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.pods().Status().Verified.IsZero() {
		t.Error("not verified although it was found equal")
	}
	if n := r.pods().Status().Mended; n != 1 {
		t.Errorf("mended %d after a second look, want still 1", n)
	}
}

// TestUndecodable: one object that cannot be read is counted and stops nothing.
func TestUndecodable(t *testing.T) {
	api := newFakeAPI(t)
	api.put(cache.Key{Namespace: "team-a", Name: "good"}, "v1")
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	api.set(func(f *fakeAPI) {
		f.version++
		f.recordLocked(fakeEvent{cache.Added, fakeObject{key: cache.Key{Namespace: "team-a", Name: "bad"}, version: f.version, broken: true}, f.version})
	})
	api.put(cache.Key{Namespace: "team-a", Name: "after"}, "v1")
	eventually(t, "the next event", func() bool { return held(r.pods().store())["team-a/after"] != "" })
	if n := r.pods().Status().Undecoded; n != 1 {
		t.Errorf("undecoded %d, want 1", n)
	}
}

// TestAggregatedIsRelisted: an aggregated API server may accept any version, so
// its watch is never resumed.
func TestAggregatedIsRelisted(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(15, 16)), 50)
	spec := fakeSpec
	spec.Aggregated = true
	r := startRig(t, api, Options{Snapshots: db}, spec)
	r.becomes(t, cache.Live)
	lists := api.count("list")
	api.set(func(f *fakeAPI) { f.log = nil }) // it forgets, and says nothing
	api.delete(cache.Key{Namespace: "team-a", Name: "p1"})
	eventually(t, "a relist", func() bool {
		api.cutAll() // again, since the watch may not have been open yet
		return api.count("list") > lists
	})
	r.equal(t)
	if saved, _ := db.Saved(); len(saved) != 0 {
		t.Error("an aggregated resource was saved")
	}
}
