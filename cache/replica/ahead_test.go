package replica

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// gated is a memory that lets nobody load before its gate is open, and is found in meanwhile.
type gated struct {
	*memory
	gate chan struct{}
}

func (g *gated) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	<-g.gate
	return g.memory.Load(r, yield)
}

// Find finds what has the term, and one that has not, as it may.
func (g *gated) Find(_ context.Context, r cache.Resource, t cache.Term, yield func(cache.Record) error) (cache.Saved, error) {
	other := false
	return g.memory.Load(r, func(rec cache.Record) error {
		if !slices.Contains(rec.Terms, unique.Make(t)) {
			if other {
				return nil
			}
			other = true
		}
		return yield(rec)
	})
}

// savedPods is a memory with a snapshot of 40 pods in 4 namespaces, of which nothing is known but
// what is saved.
func savedPods(t *testing.T, api *fakeAPI) *memory {
	t.Helper()
	db := newMemory()
	for n := range 40 {
		api.put(cache.Key{Namespace: fmt.Sprint("team-", n%4), Name: fmt.Sprint("p", n)}, fmt.Sprint("v", n))
	}
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	first.equal(t)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestAhead: before the snapshot is read, a question that an index helps with is answered as it
// is afterwards, and no other one.
func TestAhead(t *testing.T) {
	api := newFakeAPI(t)
	db := &gated{savedPods(t, api), make(chan struct{})}
	second := startRig(t, api, Options{Snapshots: db})
	eventually(t, "the snapshot to be read", second.pods().restoring.Load)

	asked := map[string]cache.Query{}
	for n := range 5 { // there is no team-4
		ns := fmt.Sprint("team-", n)
		asked["namespace "+ns] = cache.Query{Namespaces: []string{ns}}
		asked["term "+ns] = cache.Query{Terms: []cache.Term{{Index: cache.NamespaceIndex, Value: ns}}}
	}
	before := map[string][]string{}
	for name, q := range asked {
		v := second.pods().Ahead(t.Context(), cache.WholeScope(), q)
		if v == nil || v.State != cache.Warm || v.Proof.IsZero() {
			t.Fatalf("%s: %+v, want a View that is warm", name, v)
		}
		before[name] = selected(t, v, q)
	}
	for name, q := range map[string]cache.Query{
		"all":            {},
		"glob":           {Namespaces: []string{"team-*"}},
		"two namespaces": {Namespaces: []string{"team-1", "team-2"}},
	} {
		if v := second.pods().Ahead(t.Context(), cache.WholeScope(), q); v != nil {
			t.Errorf("%s: is answered ahead, of what nothing is found by", name)
		}
	}
	if v := second.pods().View(); v.Readable() {
		t.Error("the resource as a whole is readable before its snapshot is read")
	}

	api.set(func(f *fakeAPI) { // so that it stays as it was saved
		f.fault = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			status(w, 503, "ServiceUnavailable")
			return true
		}
	})
	close(db.gate)
	second.becomes(t, cache.Warm)
	after := map[string][]string{}
	for name, q := range asked {
		after[name] = selected(t, second.pods().View(), q)
		if v := second.pods().Ahead(t.Context(), cache.WholeScope(), q); v != nil {
			t.Errorf("%s: is answered ahead of what is there", name)
		}
	}
	if d := cmp.Diff(after, before); d != "" {
		t.Errorf("answers ahead of the snapshot are others (-afterwards +ahead):\n%s", d)
	}
}

// selected are the objects that q selects, with the version of the answer.
func selected(t *testing.T, v *cache.View, q cache.Query) []string {
	t.Helper()
	found, err := v.Reader(cache.WholeScope()).Select(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{found.Version, v.Store(inside.Cache).Lineage()}
	for _, o := range found.Objects {
		all = append(all, o.Key().String()+" "+describe(o))
	}
	return all
}

// TestNotAhead: a snapshot that may not be restored is not answered from either.
func TestNotAhead(t *testing.T) {
	team := cache.Query{Namespaces: []string{"team-1"}}
	for name, c := range map[string]struct {
		spec  func(*cache.Spec)
		saved func(*cache.Saved)
		many  bool
	}{
		"another rule":          {spec: func(s *cache.Spec) { s.Drop = nil }},
		"another index":         {spec: func(s *cache.Spec) { s.Indexes = map[string]string{"v": "spec.value"} }},
		"terms of another kind": {saved: func(s *cache.Saved) { s.Terms++ }},
		"more than fit":         {many: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			db := &gated{savedPods(t, api), make(chan struct{})}
			defer close(db.gate)
			spec := fakeSpec
			if c.spec != nil {
				c.spec(&spec)
			}
			if saved := db.saved[spec.Resource]; c.saved != nil {
				c.saved(&saved)
				db.saved[spec.Resource] = saved
			}
			if c.many {
				for rec := range maps.Values(db.records[spec.Resource]) {
					rec.Key, rec.Terms = cache.Key{Namespace: "team-1"}, []unique.Handle[cache.Term]{unique.Make(cache.Term{Index: cache.NamespaceIndex, Value: "team-1"})}
					records := map[cache.Key]cache.Record{}
					for n := range mostAhead + 1 {
						rec.Name = fmt.Sprint("p", n)
						records[rec.Key] = rec
					}
					db.records[spec.Resource] = records
					break
				}
			}
			r := startRig(t, api, Options{Snapshots: db}, spec)
			eventually(t, "the snapshot to be read", r.pods().restoring.Load)
			if v := r.pods().Ahead(t.Context(), cache.WholeScope(), team); v != nil {
				t.Errorf("it is answered from: %+v", v)
			}
		})
	}
}
