package replica

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
)

func TestWarmStartListsNothing(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(3, 4))
	churn(api, rng, 200)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	first.equal(t)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	churn(api, rng, 50) // missed while informerd is away
	api.set(func(f *fakeAPI) { f.requests = nil })

	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, cache.Live)
	second.equal(t)
	if lists := api.count("list") + api.count("watchlist"); lists != 0 {
		t.Errorf("%d lists after a warm start, want none: %v", lists, api.requests)
	}
	if s := second.pods().Status(); s.Relists != 0 || s.SnapshotDrops != 0 {
		t.Errorf("relists %d, drops %d (%s); want none", s.Relists, s.SnapshotDrops, s.SnapshotReason)
	}
}

// TestWarmWithoutServer: with the API server down, the snapshot answers.
func TestWarmWithoutServer(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	api.put(cache.Key{Namespace: "team-a", Name: "p"}, "v1")
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	down := func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		status(w, 503, "ServiceUnavailable")
		return true
	}
	api.set(func(f *fakeAPI) { f.fault = down })
	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, cache.Warm)
	second.equal(t)
	if c := second.Clusters()[0]; c.Err == "" {
		eventually(t, "the cluster to be reported", func() bool { return second.Clusters()[0].Err != "" })
	}
	api.set(func(f *fakeAPI) { f.fault = nil })
	second.becomes(t, cache.Live)
}

// TestSnapshotOfAnotherHistory: each way in which a snapshot may not be the past
// of this server leads to a cold start, and to the server's truth.
func TestSnapshotOfAnotherHistory(t *testing.T) {
	dropped := []string{"other cluster", "rolled back", "older and past"}
	for name, change := range map[string]func(*fakeAPI){
		"other cluster": func(f *fakeAPI) { f.uid = "cluster-2" },
		"other version": func(f *fakeAPI) { f.gitVersion = "v1.37.0" },
		"rolled back":   func(f *fakeAPI) { f.version = 50; f.log = nil; f.objects = map[cache.Key]*fakeObject{} },
		"get forbidden": func(f *fakeAPI) { f.deny = func(verb, _ string) bool { return verb == "get" } },
		"older and past": func(f *fakeAPI) {
			f.version += 1000
			f.log = nil
			f.objects[cache.Key{Namespace: "team-a", Name: "p2"}].version = 90
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, db := newFakeAPI(t), newMemory()
			for n := range 3 {
				api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)}, "v1")
			}
			first := startRig(t, api, Options{Snapshots: db})
			first.becomes(t, cache.Live)
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			api.set(change)
			second := startRig(t, api, Options{Snapshots: db})
			second.equal(t)
			second.becomes(t, cache.Live)
			if s := second.pods().Status(); s.SnapshotDrops == 1 != slices.Contains(dropped, name) {
				t.Errorf("%d drops (%s)", s.SnapshotDrops, s.SnapshotReason)
			}
		})
	}
}

// TestIdentityRefusedAtFirst: an API server that refuses everybody while it
// starts is not taken for another cluster.
func TestIdentityRefusedAtFirst(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(19, 20)), 50)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	refusals := 3
	api.set(func(f *fakeAPI) {
		f.requests = nil
		f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
			f.mu.Lock()
			refusals--
			refused := refusals >= 0
			f.mu.Unlock()
			if refused {
				status(w, http.StatusForbidden, "Forbidden")
			}
			return refused
		}
	})
	// The refusals are over long before patience is, on any machine.
	second := startRig(t, api, Options{Snapshots: db, retry: retry{first: time.Millisecond, last: time.Hour}})
	second.becomes(t, cache.Live)
	second.equal(t)
	if s := second.pods().Status(); s.SnapshotDrops != 0 || api.count("list")+api.count("watchlist") != 0 {
		t.Errorf("drops %d (%s), requests %v; want no drop and no list", s.SnapshotDrops, s.SnapshotReason, api.requests)
	}
}

func TestScopeChangeStartsCold(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	api.put(cache.Key{Namespace: "team-a", Name: "p"}, "v1")
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	spec := fakeSpec
	spec.Drop = append(slices.Clone(spec.Drop), "spec.value")
	second := startRig(t, api, Options{Snapshots: db}, spec)
	second.becomes(t, cache.Live)
	o, _ := second.pods().store().Get(cache.Key{Namespace: "team-a", Name: "p"})
	raw, err := o.JSON()
	if err != nil || string(raw) == "" || json.Valid(raw) == false || cmp.Diff(second.pods().Status().SnapshotDrops, uint64(1)) != "" {
		t.Fatalf("%s, %v, drops %d", raw, err, second.pods().Status().SnapshotDrops)
	}
	if got := held(second.pods().store())["team-a/p"]; got != "uid-101@101=" {
		t.Errorf("held %q, want the value cut", got)
	}
}
