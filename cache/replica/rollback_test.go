package replica

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/informerd/informerd/cache"
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
		api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)}, "v1")
	}
	prepare(api)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
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
			f.history = slices.DeleteFunc(f.history, func(e fakeEvent) bool {
				return e.version > version || !slices.Contains(names, e.object.key.Name)
			})
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
			f.delete(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)})
		}
	}
	for name, c := range map[string]struct {
		prepare, change func(*fakeAPI)
		drops           uint64
	}{
		"grown since, the newest never made": {func(*fakeAPI) {}, rollBack(1000, "p0", "p1"), 1},
		"grown since, none ever made":        {func(*fakeAPI) {}, rollBack(1000), 1},
		"behind, identity hidden": {
			func(f *fakeAPI) {
				f.hideIdentity()
				f.put(cache.Key{Namespace: "team-a", Name: "p3"}, "v1")
				f.delete(cache.Key{Namespace: "team-a", Name: "p3"})
			},
			rollBack(103, "p0", "p1", "p2"), 1,
		},
		"behind, identity hidden, none held": {func(f *fakeAPI) { f.hideIdentity(); deleteAll(f) }, rollBack(100), 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := restarted(t, c.prepare, c.change)
			r.equal(t)
			r.becomes(t, cache.Live)
			if s := r.pods().Status(); s.SnapshotDrops != c.drops {
				t.Errorf("%d drops (%s), want %d", s.SnapshotDrops, s.SnapshotReason, c.drops)
			}
		})
	}
}

// TestListWithOlderObject: the newest objects are as they were and the versions have
// been passed, so that only a list shows that the server was restored: it has an
// object in an older version than the copy. Readers begin anew, they are not told of
// the older version as if it were news.
func TestListWithOlderObject(t *testing.T) {
	api := newFakeAPI(t)
	name := func(n int) cache.Key { return cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)} }
	for _, value := range []string{"v1", "v2"} {
		for n := range newestAsked + 2 {
			api.put(name(n), value)
		}
	}
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	before := r.pods().store()
	_, events := follow(t, before)
	api.set(func(f *fakeAPI) {
		old := f.history[0].object
		f.objects[old.key] = &old
		f.version, f.compacted, f.log = 1000, 1000, nil
	})
	api.cutAll()
	r.equal(t)
	r.becomes(t, cache.Live)
	// It is closed after the other one can be found, so that who is told finds it.
	eventually(t, "the end of the store of before", func() bool {
		sub, err := before.Watch("")
		if err == nil {
			sub.Close()
		}
		return errors.Is(err, cache.ErrStopped)
	})
	if told := events(); len(told) != 0 {
		t.Errorf("readers were told %v, want the end alone", told)
	}
}

// TestVersionOfBefore: who comes with a version that only the history of before has
// reached has to list. It would wait, and miss all that comes until then.
func TestVersionOfBefore(t *testing.T) {
	api := newFakeAPI(t)
	for n := range 8 {
		api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)}, "v1")
	}
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	eventually(t, "a watch", func() bool { return api.count("watch ") > 0 })
	before := r.pods().store().Version()
	rollBack(103, "p0", "p1", "p2")(api)
	api.cutAll()
	r.equal(t)
	r.becomes(t, cache.Live)
	if _, err := r.pods().store().Watch(before); !errors.Is(err, cache.ErrExpired) {
		t.Errorf("a watch from %s is answered with %v at %s", before, err, r.pods().store().Version())
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
						f.delete(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)})
					}
				})
				r.becomes(t, cache.Live)
				r.equal(t)
				if s := r.pods().Status(); s.SnapshotDrops != 0 || r.api.count("list")+r.api.count("watchlist") != 0 {
					t.Errorf("drops %d (%s), requests %v; want no drop and no list", s.SnapshotDrops, s.SnapshotReason, r.api.requests)
				}
			})
		}
	}
}
