package replica

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// TestRemove: a cluster that is removed leaves nothing behind, and nobody is told that
// its objects were deleted. The others go on, and it may come back.
func TestRemove(t *testing.T) {
	east, west := newFakeAPI(t), newFakeAPI(t)
	west.uid = "cluster-2"
	key := cache.Key{Namespace: "team-a", Name: "p1"}
	east.put(key, "v1")
	west.put(key, "w1")
	db := newMemory()
	r := startRig(t, west, Options{Snapshots: db}) // is cluster c
	spec := fakeSpec
	spec.Cluster = "east"
	begin := func() {
		t.Helper()
		if err := r.Apply("east", []cache.Spec{spec}); err != nil {
			t.Fatal(err)
		}
		if err := r.Connect("east", east.config()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "east is live and saved", func() bool {
			i, err := r.Informer(spec.Resource)
			return err == nil && i.View().State == cache.Live && len(savedOf(t, db, "east")) == 1
		})
	}
	begin()
	r.becomes(t, cache.Live)
	i, err := r.Informer(spec.Resource)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := i.store().Watch("")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()

	if err := r.Remove("east"); err != nil {
		t.Fatal(err)
	}
	asked := len(east.asked())
	if told, err := sub.Next(t.Context()); !errors.Is(err, cache.ErrStopped) {
		t.Errorf("a reader was told %v, %v", told, err)
	}
	if _, err := r.Informer(spec.Resource); !errors.Is(err, cache.ErrUnknownResource) {
		t.Errorf("Informer() = %v", err)
	}
	if now := r.Clusters(); len(now) != 1 || now[0].Name != "c" {
		t.Errorf("clusters are %+v", now)
	}
	if all := savedOf(t, db, "east"); len(all) > 0 {
		t.Errorf("the snapshots still hold %v", all)
	}
	if err := r.Remove("east"); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	east.put(cache.Key{Namespace: "team-a", Name: "p2"}, "v1")
	west.put(key, "w2")
	r.equal(t)
	if now := len(east.asked()); now != asked {
		t.Errorf("a removed cluster was asked %v", east.asked()[asked:])
	}
	begin()
	if i, err = r.Informer(spec.Resource); err != nil || len(held(i.store())) != 2 {
		t.Errorf("back again it holds %v, %v", held(i.store()), err)
	}
}

// asked are the requests that an API server got.
func (f *fakeAPI) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func savedOf(t *testing.T, db *memory, cluster string) (all []cache.Saved) {
	t.Helper()
	saved, err := db.Saved()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range saved {
		if s.Spec.Cluster == cluster {
			all = append(all, s)
		}
	}
	return all
}

// TestHangingCluster: a cluster whose lists hang takes no place of another's.
func TestHangingCluster(t *testing.T) {
	hangs, well := newFakeAPI(t), newFakeAPI(t)
	well.uid = "cluster-2"
	well.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v1")
	begun := make(chan struct{}, 10)
	hangs.fault = func(_ http.ResponseWriter, r *http.Request, verb string) bool {
		if verb != "list" && verb != "watchlist" {
			return false
		}
		begun <- struct{}{}
		<-r.Context().Done()
		return true
	}
	r := startRig(t, hangs, Options{Concurrency: 1})
	<-begun
	spec := fakeSpec
	spec.Cluster = "well"
	if err := r.Apply("well", []cache.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	if err := r.Connect("well", well.config()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other cluster is live", func() bool {
		i, err := r.Informer(spec.Resource)
		return err == nil && i.View().State == cache.Live
	})
	removed := make(chan error, 1)
	go func() { removed <- r.Remove("c") }()
	select {
	case err := <-removed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a cluster that hangs cannot be removed")
	}
}

// TestForeignIsNotShown: the copy of a cluster that another one has taken the place of is
// in no view, also where the other lets nobody list: who may see what of it is decided by
// the one that answers now.
func TestForeignIsNotShown(t *testing.T) {
	api, other := newFakeAPI(t), newFakeAPI(t)
	other.uid = "cluster-2"
	other.deny = func(verb, _ string) bool { return verb != "get" }
	api.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v1")
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	if err := r.Connect("c", other.config()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other cluster is identified", func() bool { return r.Clusters()[0].UID == "cluster-2" })
	eventually(t, "the copy is not shown", func() bool { v := r.pods().View(); return !v.State.Readable() && v.Store(inside.Cache) == nil })
}

// TestElsewhereUnnamed: where it cannot be told which cluster answers, since kube-system
// may not be read, one that is reached elsewhere is another one.
func TestElsewhereUnnamed(t *testing.T) {
	for name, hides := range map[string][2]bool{"the first": {true, false}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			api, other := newFakeAPI(t), newFakeAPI(t)
			hide(api, hides[0])
			hide(other, hides[1])
			for n := range 5 {
				other.put(cache.Key{Namespace: "team-b", Name: fmt.Sprint("p", n)}, "v1")
			}
			r := startRig(t, api, Options{})
			r.becomes(t, cache.Live)
			if err := r.Connect("c", other.config()); err != nil {
				t.Fatal(err)
			}
			r.api = other
			r.equal(t)
			r.becomes(t, cache.Live)
		})
	}
}

// hide lets nobody read kube-system.
func hide(api *fakeAPI, hidden bool) {
	api.set(func(f *fakeAPI) {
		f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
			if !hidden || verb != "identity" {
				return false
			}
			status(w, http.StatusForbidden, "Forbidden")
			return true
		}
	})
}

// TestOtherIsTold: whoever is to remove a cluster that another one has taken the place of
// is told, and nothing of either is shown until then: who may see what is decided by what
// the first one said.
func TestOtherIsTold(t *testing.T) {
	api, other := newFakeAPI(t), newFakeAPI(t)
	other.uid = "cluster-2"
	for _, a := range []*fakeAPI{api, other} {
		a.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v1")
	}
	told := make(chan string, 10)
	r := startRig(t, api, Options{Other: func(cluster string) { told <- cluster }})
	r.becomes(t, cache.Live)
	if err := r.Connect("c", other.config()); err != nil {
		t.Fatal(err)
	}
	if name := <-told; name != "c" {
		t.Errorf("told of %s", name)
	}
	eventually(t, "the other one's are held", func() bool { return other.count("list")+other.count("watchlist") > 0 })
	for range 50 {
		if v := r.pods().View(); v.State.Readable() {
			t.Fatalf("a copy is shown: %s", v.State)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := r.Remove("c"); err != nil {
		t.Fatal(err)
	}
}
