package replica

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/informerd/informerd/cache"
)

// demand makes the API server answer only those who bring token.
func (f *fakeAPI) demand(token string) {
	f.set(func(f *fakeAPI) {
		f.fault = func(w http.ResponseWriter, r *http.Request, _ string) bool {
			if r.Header.Get("Authorization") == "Bearer "+token {
				return false
			}
			status(w, http.StatusUnauthorized, "Unauthorized")
			return true
		}
	})
}

func (f *fakeAPI) configWith(token string) ClusterConfig {
	config := f.config()
	config.REST.BearerToken = token
	return config
}

// cutUntil cuts watches until it has been noticed: one that is about to be opened
// is not there to be cut yet.
func (r *rig) cutUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool { r.api.cutAll(); return ok() })
}

// TestCredentialsRotate: with the credentials of a kubeconfig that was mended, the
// watch goes on where it was.
func TestCredentialsRotate(t *testing.T) {
	api := newFakeAPI(t)
	rng := rand.New(rand.NewPCG(21, 22))
	churn(api, rng, 50)
	r := startRig(t, api, Options{})
	if err := r.Connect("c", api.configWith("old")); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, cache.Live)
	api.demand("new")
	r.cutUntil(t, "state stale", func() bool { return r.pods().View().State == cache.Stale })
	churn(api, rng, 50)
	if err := r.Connect("c", api.configWith("new")); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, cache.Live)
	r.equal(t)
	if n := api.count("list") + api.count("watchlist"); n != 1 {
		t.Errorf("%d lists, want the first one only", n)
	}
}

// TestConnectedElsewhere: a watch that was open when the kubeconfig began to name
// another cluster is not resumed there.
func TestConnectedElsewhere(t *testing.T) {
	one, two := newFakeAPI(t), newFakeAPI(t)
	churn(one, rand.New(rand.NewPCG(23, 24)), 50)
	churn(two, rand.New(rand.NewPCG(25, 26)), 80)
	two.uid = "cluster-2"
	r := startRig(t, one, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	if err := r.Connect("c", two.config()); err != nil {
		t.Fatal(err)
	}
	r.cutUntil(t, "a list of the other cluster", func() bool { return two.count("list") > 0 })
	r.api = two
	r.equal(t)
	r.becomes(t, cache.Live)
	if n := two.count("list") + two.count("watchlist"); n != 1 {
		t.Errorf("%d lists of the other cluster, want one", n)
	}
}

// TestClusterMadeAnew: a cluster made anew behind the same address is synced once
// and is from then on the one that is known: what is saved is saved as its, and
// the next outage is only an outage.
func TestClusterMadeAnew(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(27, 28)), 50)
	r := startRig(t, api, Options{Snapshots: db})
	r.becomes(t, cache.Live)
	down := func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		return true
	}
	outage := func(change func(*fakeAPI)) {
		api.set(func(f *fakeAPI) { f.fault = down })
		r.cutUntil(t, "state stale", func() bool { return r.pods().View().State == cache.Stale })
		api.set(func(f *fakeAPI) { f.fault = nil; change(f) })
		r.equal(t)
		r.becomes(t, cache.Live)
	}
	outage(func(f *fakeAPI) {
		f.uid, f.gitVersion, f.log = "cluster-2", "v1.37.0", nil
		f.objects = map[cache.Key]*fakeObject{{Namespace: "team-a", Name: "new"}: {key: cache.Key{Namespace: "team-a", Name: "new"}, uid: "uid-new", version: f.version}}
	})
	if s := r.pods().Status(); s.SnapshotDrops != 1 || r.Clusters()[0].UID != "cluster-2" {
		t.Errorf("drops %d, cluster %s; want one drop and cluster-2", s.SnapshotDrops, r.Clusters()[0].UID)
	}
	eventually(t, "it to be saved as the new cluster's", func() bool { return db.of() == "cluster-2 at v1.37.0" })
	outage(func(*fakeAPI) {})
	if s := r.pods().Status(); s.SnapshotDrops != 1 || s.Relists != 2 {
		t.Errorf("drops %d, relists %d after another outage; want 1 and 2", s.SnapshotDrops, s.Relists)
	}
}

// TestServerUpgraded: what was listed from an upgraded server is saved as that; what
// was not, as it was.
func TestServerUpgraded(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(29, 30)), 50)
	r := startRig(t, api, Options{Snapshots: db})
	r.becomes(t, cache.Live)
	eventually(t, "a commit", func() bool { return db.of() == "cluster-1 at v1.36.3" })
	api.set(func(f *fakeAPI) { f.gitVersion = "v1.37.0" })
	api.put(cache.Key{Namespace: "team-a", Name: "changed"}, "v1")
	commits := r.SnapshotStatus().Commits
	eventually(t, "a commit", func() bool { return r.SnapshotStatus().Commits > commits })
	if of := db.of(); of != "cluster-1 at v1.36.3" {
		t.Errorf("saved as %s without a list", of)
	}
	r.expire(t, func() { api.put(cache.Key{Namespace: "team-a", Name: "changed"}, "v2") })
	r.equal(t)
	eventually(t, "a commit", func() bool { return db.of() == "cluster-1 at v1.37.0" })
}

// TestUpgradeSavedAfterItsObjects: a save that came between the objects of an
// upgraded server and the note of its version is followed by one that has both.
func TestUpgradeSavedAfterItsObjects(t *testing.T) {
	store := newStore(t, fakeSpec)
	s := &source{spec: fakeSpec, store: store, count: &counters{}, served: "v1.36.3", changed: func() {}}
	sink{s}.replace(nil, "100")
	_, early := store.TakeChanges()
	s.servedFrom("v1.37.0")
	if _, again := store.TakeChanges(); !early || !again {
		t.Errorf("saved with the objects: %v, and again with the version: %v; want both", early, again)
	}
	s.servedFrom("v1.37.0")
	if _, again := store.TakeChanges(); again {
		t.Error("saved again although the server is the same")
	}
}

// of is whose the saved snapshot is.
func (m *memory) of() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.saved[fakeSpec.Resource]
	return fmt.Sprintf("%s at %s", s.ClusterUID, s.ServerVersion)
}

// TestReachedElsewhere: a configuration that leads somewhere else is followed at once,
// although the watches of the one before would go on for ever. At another address of the
// same cluster they go on where they were; what another cluster holds replaces all.
func TestReachedElsewhere(t *testing.T) {
	api, other := newFakeAPI(t), newFakeAPI(t)
	other.uid = "cluster-2"
	rng := rand.New(rand.NewPCG(23, 24))
	churn(api, rng, 50)
	churn(other, rng, 80)
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)

	door := httptest.NewServer(http.HandlerFunc(api.serve))
	defer door.Close()
	defer door.CloseClientConnections()
	through := api.config()
	through.REST.Host = door.URL
	watches := api.count("watch")
	if err := r.Connect("c", through); err != nil {
		t.Fatal(err)
	}
	eventually(t, "watched at the other address", func() bool { return api.count("watch") > watches })
	churn(api, rng, 20)
	r.equal(t)
	if n := api.count("list") + api.count("watchlist"); n != 1 {
		t.Errorf("%d lists, want the first one only", n)
	}

	if err := r.Connect("c", other.config()); err != nil {
		t.Fatal(err)
	}
	r.api = other
	eventually(t, "the other cluster is identified", func() bool { return r.Clusters()[0].UID == "cluster-2" })
	r.becomes(t, cache.Live)
	r.equal(t)
}
