package cache

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// hideIdentity makes the API server refuse to show kube-system.
func (f *fakeAPI) hideIdentity() {
	f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
		if verb == "identity" {
			status(w, http.StatusForbidden, "Forbidden")
		}
		return verb == "identity"
	}
}

// restarted runs informerd on a server with three objects, and again after change.
func restarted(t *testing.T, prepare, change func(*fakeAPI)) *rig {
	t.Helper()
	api, db := newFakeAPI(t), newMemory()
	for n := range 3 {
		api.put(Key{"team-a", fmt.Sprintf("p%d", n)}, "v1")
	}
	prepare(api)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	change(api)
	api.set(func(f *fakeAPI) { f.requests = nil })
	return startRig(t, api, Options{Snapshots: db})
}

// rollBack takes the server back to a backup with some of its objects.
func rollBack(version int, names ...string) func(*fakeAPI) {
	return func(f *fakeAPI) {
		f.set(func(f *fakeAPI) {
			f.version, f.log = version, nil
			for k := range f.objects {
				if !slices.Contains(names, k.Name) {
					delete(f.objects, k)
				}
			}
		})
	}
}

// TestRolledBack: a server that was restored from a backup is not resumed,
// whatever may be asked of it.
func TestRolledBack(t *testing.T) {
	deleteAll := func(f *fakeAPI) {
		for n := range 3 {
			f.delete(Key{"team-a", fmt.Sprintf("p%d", n)})
		}
	}
	for name, c := range map[string]struct{ prepare, change func(*fakeAPI) }{
		"grown since, the newest never made": {func(*fakeAPI) {}, rollBack(1000, "p0", "p1")},
		"grown since, none ever made":        {func(*fakeAPI) {}, rollBack(1000)},
		"behind, identity hidden": {
			func(f *fakeAPI) { f.hideIdentity(); f.put(Key{"team-a", "p3"}, "v1"); f.delete(Key{"team-a", "p3"}) },
			rollBack(103, "p0", "p1", "p2"),
		},
		"behind, identity hidden, none held": {func(f *fakeAPI) { f.hideIdentity(); deleteAll(f) }, rollBack(100)},
	} {
		t.Run(name, func(t *testing.T) {
			r := restarted(t, c.prepare, c.change)
			eventually(t, "the snapshot to be dropped", func() bool { return r.pods().Status().SnapshotDrops == 1 })
			r.becomes(t, Live)
			r.equal(t)
		})
	}
}

// TestNewestDeleted: objects that were deleted while informerd was away are no
// sign of a rollback, however few there were, and nothing is listed.
func TestNewestDeleted(t *testing.T) {
	for name, prepare := range map[string]func(*fakeAPI){
		"anybody":         func(*fakeAPI) {},
		"identity hidden": (*fakeAPI).hideIdentity,
	} {
		for left := range 3 {
			t.Run(fmt.Sprintf("%s, %d left", name, left), func(t *testing.T) {
				r := restarted(t, prepare, func(f *fakeAPI) {
					for n := left; n < 3; n++ {
						f.delete(Key{"team-a", fmt.Sprintf("p%d", n)})
					}
				})
				r.becomes(t, Live)
				r.equal(t)
				if s := r.pods().Status(); s.SnapshotDrops != 0 || r.api.count("list")+r.api.count("watchlist") != 0 {
					t.Errorf("drops %d (%s), requests %v; want no drop and no list", s.SnapshotDrops, s.SnapshotReason, r.api.requests)
				}
			})
		}
	}
}
