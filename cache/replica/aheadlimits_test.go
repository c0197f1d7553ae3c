package replica

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"
	"unique"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/filter"
)

// pausing is a gated memory that rests in the midst of a Find.
type pausing struct {
	*gated
	finding, found chan struct{}
}

func (p *pausing) Find(ctx context.Context, r cache.Resource, t cache.Term, yield func(cache.Record) error) (cache.Saved, error) {
	saved, err := p.gated.Find(ctx, r, t, yield)
	p.finding <- struct{}{}
	<-p.found
	return saved, err
}

func askAhead(t *testing.T, i *Informer, q cache.Query) <-chan *cache.View {
	answer := make(chan *cache.View, 1)
	go func() { answer <- i.Ahead(t.Context(), cache.WholeScope(), q) }()
	return answer
}

// outlasted is an answer ahead of a snapshot that may be read by now, and that is given when it
// may go on from what it has found.
func outlasted(t *testing.T) (r *rig, db *pausing, answer <-chan *cache.View) {
	t.Helper()
	api := newFakeAPI(t)
	db = &pausing{&gated{savedPods(t, api), make(chan struct{})}, make(chan struct{}), make(chan struct{})}
	r = startRig(t, api, Options{Snapshots: db})
	eventually(t, "the snapshot to be read", r.pods().restoring.Load)
	answer = askAhead(t, r.pods(), cache.Query{Namespaces: []string{"team-1"}})
	<-db.finding
	close(db.gate)
	return r, db, answer
}

// TestAheadTakenAway: what a rule newly redacts is in no answer ahead of the snapshot either once
// Apply has returned.
func TestAheadTakenAway(t *testing.T) {
	r, db, answer := outlasted(t)
	spec := fakeSpec
	spec.Redact = []string{"spec.value"}
	if err := r.Apply("c", []cache.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	db.found <- struct{}{}
	if v := <-answer; v != nil {
		found, err := v.Reader(cache.WholeScope()).Select(t.Context(), cache.Query{Namespaces: []string{"team-1"}})
		if err != nil {
			t.Fatal(err)
		}
		if json, _ := found.Objects[0].JSON(); bytes.Contains(json, []byte(`"value":"v`)) {
			t.Errorf("shown under redact %q after Apply returned: %s", v.Spec.Redact, json)
		}
	}
}

// TestAheadTooLate: an answer that was begun before the snapshot was read is not given after that
// which is newer may have been seen.
func TestAheadTooLate(t *testing.T) {
	r, db, answer := outlasted(t)
	r.becomes(t, cache.Live)
	db.found <- struct{}{}
	if v := <-answer; v != nil && v.State != cache.Live {
		t.Errorf("answered as %s, of version %s, while the resource is live", v.State, v.Reader(cache.WholeScope()).Version())
	}
}

// TestAheadVersions: a snapshot that is not shown as warm, since it says not what it is complete
// up to, is not answered from ahead either.
func TestAheadVersions(t *testing.T) {
	for name, versions := range map[string]map[string]string{"none": nil, "empty": {"": ""}} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			db := &gated{savedPods(t, api), make(chan struct{})}
			saved := db.saved[fakeSpec.Resource]
			saved.ResourceVersions = versions
			db.saved[fakeSpec.Resource] = saved
			api.set(func(f *fakeAPI) { f.fault = refuseAll })
			r := startRig(t, api, Options{Snapshots: db})
			eventually(t, "the snapshot to be read", r.pods().restoring.Load)
			v := r.pods().Ahead(t.Context(), cache.WholeScope(), cache.Query{Namespaces: []string{"team-1"}})
			close(db.gate)
			eventually(t, "the snapshot was read", func() bool { return !r.pods().restoring.Load() })
			if after := r.pods().View(); v != nil && !after.Readable() {
				_, err := v.Reader(cache.WholeScope()).Select(t.Context(), cache.Query{})
				t.Errorf("ahead it is %s (%v), and afterwards %s", v.State, err, after.State)
			}
		})
	}
}

// savedMany puts n records into a namespace of the snapshot, which have the label app=x, as that of
// one other in team-1 has.
func savedMany(db *gated, n int) {
	r := fakeSpec.Resource
	label := unique.Make(cache.Term{Index: cache.LabelIndex, Value: "app=x"})
	in := func(ns string) unique.Handle[cache.Term] {
		return unique.Make(cache.Term{Index: cache.NamespaceIndex, Value: ns})
	}
	records := map[cache.Key]cache.Record{}
	for rec := range maps.Values(db.records[r]) {
		rec.Key, rec.Terms = cache.Key{Namespace: "team-1", Name: "p"}, []unique.Handle[cache.Term]{in("team-1"), label}
		records[rec.Key] = rec
		rec.Terms = []unique.Handle[cache.Term]{in("big"), label}
		for k := range n {
			rec.Key = cache.Key{Namespace: "big", Name: fmt.Sprint("p", k)}
			records[rec.Key] = rec
		}
		break
	}
	db.records[r] = records
}

// TestAheadColumns: a View that is good for one answer keeps nothing for the next questions.
func TestAheadColumns(t *testing.T) {
	api := newFakeAPI(t)
	db := &gated{savedPods(t, api), make(chan struct{})}
	defer close(db.gate)
	savedMany(db, 600)
	spec := fakeSpec
	spec.Columns.Pinned = [][]string{{"spec.value"}}
	r := startRig(t, api, Options{Snapshots: db}, spec)
	eventually(t, "the snapshot to be read", r.pods().restoring.Load)
	expression, err := filter.Compile(`object.spec.value != "x"`, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	q := cache.Query{Namespaces: []string{"big"}, Filter: expression}
	v := r.pods().Ahead(t.Context(), cache.WholeScope(), q)
	reader := v.Reader(cache.WholeScope())
	found, err := reader.Select(t.Context(), q)
	if err != nil || len(found.Objects) != 600 {
		t.Fatal(err, found)
	}
	for _, c := range reader.Columns() {
		if c.Kept && c.Objects > 0 {
			t.Errorf("%d bytes of %q are kept, and a timer keeps them for ever", c.Bytes, c.Paths)
		}
	}
}

func refuseAll(w http.ResponseWriter, _ *http.Request, _ string) bool {
	status(w, 503, "ServiceUnavailable")
	return true
}

// TestAheadUnseen: whether something is answered ahead does not depend on what is not seen.
func TestAheadUnseen(t *testing.T) {
	api := newFakeAPI(t)
	db := &gated{savedPods(t, api), make(chan struct{})}
	defer close(db.gate)
	savedMany(db, mostAhead+1)
	r := startRig(t, api, Options{Snapshots: db})
	eventually(t, "the snapshot to be read", r.pods().restoring.Load)
	q := cache.Query{Terms: []cache.Term{{Index: cache.LabelIndex, Value: "app=x"}}}
	v := r.pods().Ahead(t.Context(), cache.NewScope([]string{"team-1"}, nil), q)
	if v == nil {
		t.Fatal("whoever sees team-1 alone is told that there are many elsewhere")
	}
	if n := v.Reader(cache.WholeScope()).Len(); n != 1 {
		t.Errorf("%d objects are held", n)
	}
	if v := r.pods().Ahead(t.Context(), cache.WholeScope(), q); v != nil {
		t.Error("too many are answered ahead")
	}
	q.Namespaces = []string{"team-1"}
	if v := r.pods().Ahead(t.Context(), cache.WholeScope(), q); v == nil {
		t.Error("the few that have two values are not answered ahead, since many have one of them")
	}
}

// TestAheadLarge: few objects may take much memory, too.
func TestAheadLarge(t *testing.T) {
	api := newFakeAPI(t)
	db := &gated{savedPods(t, api), make(chan struct{})}
	defer close(db.gate)
	savedMany(db, 200)
	large := bytes.Repeat([]byte("x"), 1<<20)
	for k, rec := range db.records[fakeSpec.Resource] {
		rec.Dictionary, rec.Data, rec.Size = 0, large, uint32(len(large))
		db.records[fakeSpec.Resource][k] = rec
	}
	r := startRig(t, api, Options{Snapshots: db})
	eventually(t, "the snapshot to be read", r.pods().restoring.Load)
	if v := r.pods().Ahead(t.Context(), cache.WholeScope(), cache.Query{Namespaces: []string{"big"}}); v != nil {
		t.Error("200 MiB are held a second time")
	}
}
