package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestLineage: what was noted at a version is good as long as the history of the copy is
// the same, across restarts and changes of its rule, and no longer.
func TestLineage(t *testing.T) {
	rule := fakeSpec
	rule.Drop = []string{"metadata.managedFields", "spec.value"}
	for name, c := range map[string]struct {
		change func(*fakeAPI, *memory)
		spec   cache.Spec
		stays  bool
	}{
		"restart":         {change: func(*fakeAPI, *memory) {}, stays: true},
		"changes missed":  {change: func(f *fakeAPI, _ *memory) { f.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v2") }, stays: true},
		"410":             {change: func(f *fakeAPI, _ *memory) { f.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v2"); f.compact() }, stays: true},
		"other version":   {change: func(f *fakeAPI, _ *memory) { f.set(func(f *fakeAPI) { f.gitVersion = "v1.37.0" }) }, stays: true},
		"no snapshot":     {change: func(_ *fakeAPI, db *memory) { _ = db.Drop(fakeSpec.Resource) }},
		"another rule":    {change: func(*fakeAPI, *memory) {}, spec: rule}, // whose copy starts cold
		"other cluster":   {change: func(f *fakeAPI, _ *memory) { f.set(func(f *fakeAPI) { f.uid = "cluster-2" }) }},
		"rolled back":     {change: func(f *fakeAPI, _ *memory) { rollBack(1000, "p0", "p1")(f) }},
		"restored behind": {change: func(f *fakeAPI, _ *memory) { rollBack(101, "p0")(f) }},
	} {
		t.Run(name, func(t *testing.T) {
			api, db := newFakeAPI(t), newMemory()
			for n := range 3 {
				api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)}, "v1")
			}
			first := startRig(t, api, Options{Snapshots: db})
			first.becomes(t, cache.Live)
			before := first.pods().store().Lineage()
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			if saved := db.saved[fakeSpec.Resource].Lineage; saved != before || saved == "" {
				t.Fatalf("%q is saved, want %q", saved, before)
			}
			c.change(api, db)
			specs := []cache.Spec{fakeSpec}
			if c.spec.Kind != "" {
				specs[0] = c.spec
			}
			second := startRig(t, api, Options{Snapshots: db}, specs...)
			second.becomes(t, cache.Live)
			if c.spec.Kind == "" {
				second.equal(t)
			}
			after := second.pods().View().Reader(cache.WholeScope()).Lineage()
			if (after == before) != c.stays || after == "" {
				t.Errorf("lineage %q, before %q; want the same: %v", after, before, c.stays)
			}
			if err := second.stop(); err != nil {
				t.Fatal(err)
			}
			if saved := db.saved[fakeSpec.Resource].Lineage; saved != after {
				t.Errorf("%q is saved, want %q", saved, after)
			}
		})
	}
}

// TestLineageOfRunning: a rule that changes while informerd runs leaves it, another history
// of the server does not.
func TestLineageOfRunning(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	for n := range 8 {
		api.put(cache.Key{Namespace: "team-a", Name: fmt.Sprintf("p%d", n)}, "v1")
	}
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	r.becomes(t, cache.Live)
	before := r.pods().store().Lineage()
	rule := fakeSpec
	rule.LabelSelector = "app"
	for _, spec := range []cache.Spec{rule, fakeSpec} {
		if err := r.Apply("c", []cache.Spec{spec}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the copy under the other rule", func() bool {
			return r.pods().View().Spec.LabelSelector == spec.LabelSelector
		})
		if got := r.pods().store().Lineage(); got != before {
			t.Errorf("lineage %q, want %q", got, before)
		}
	}
	api.put(cache.Key{Namespace: "team-a", Name: "p7"}, "v2")
	r.equal(t) // so that there is a watch to cut
	rollBack(103, "p0", "p1", "p2")(api)
	api.cutAll()
	r.equal(t)
	r.becomes(t, cache.Live)
	if got := r.pods().store().Lineage(); got == before {
		t.Error("the lineage is that of the history before")
	}
	eventually(t, "the new lineage to be saved", func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.saved[fakeSpec.Resource].Lineage == r.pods().store().Lineage()
	})
}
