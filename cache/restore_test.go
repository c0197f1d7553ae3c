package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestoreOlderTerms: terms of before are taken anew, and saved.
func TestRestoreOlderTerms(t *testing.T) {
	spec := podSpec()
	spec.Indexes = map[string]string{"note": "metadata.annotations.note"}
	from := newStore(t, spec)
	raw := `{"metadata":{"name":"a","namespace":"x","resourceVersion":"1","annotations":{"note":"` + strings.Repeat("x", maxIndexedValue+1) + `"}}}`
	o, err := from.Decode([]byte(raw), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	from.Replace("", []*Object{o}, "1")
	batch, _ := from.TakeChanges()
	long := intern(longIndex("note"), longValue)
	if got := batch.Record(0).Terms; !slices.Contains(got, long) {
		t.Fatalf("terms %v, want %v among them", got, long)
	}
	for version, wantSave := range map[int]bool{termsVersion: false, 0: true} {
		saved, record := batch.Saved, batch.Record(0)
		saved.Terms = version
		if version == 0 {
			record.Terms = slices.DeleteFunc(slices.Clone(record.Terms), func(t handle) bool { return t == long })
		}
		s := newStore(t, spec)
		if err := s.Restore(saved, []Record{record}); err != nil {
			t.Fatal(err)
		}
		checkContents(t, s)
		if got, _ := s.Get(Key{"x", "a"}); !got.has(long) {
			t.Errorf("version %d: terms %v", version, got.Terms())
		}
		if b, ok := s.TakeChanges(); ok != wantSave || b.Reset != wantSave {
			t.Errorf("version %d: something to save: %v, everything: %v", version, ok, b.Reset)
		}
	}
}

// TestRestore: what is saved and restored answers as before, indexes and
// compressed objects included.
func TestRestore(t *testing.T) {
	from := filledStore(t, 400)
	batch, ok := from.TakeChanges()
	if !ok || !batch.Reset || batch.Len() != 400 || len(batch.Saved.Dictionaries) != 1+from.Stats().Templates {
		t.Fatalf("first batch: %v, reset %v, %d records, %d dictionaries", ok, batch.Reset, batch.Len(), len(batch.Saved.Dictionaries))
	}
	for name, indexes := range map[string]map[string]string{
		"same indexes":    podSpec().Indexes,
		"another index":   {"node": "spec.nodeName", "ip": "status.podIP"},
		"the same name":   {"node": "status.hostIP"},
		"no more indexes": nil,
	} {
		t.Run(name, func(t *testing.T) {
			spec := podSpec()
			spec.Indexes = indexes
			s := newStore(t, spec)
			if err := s.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil {
				t.Fatal(err)
			}
			checkContents(t, s)
			if err := from.SetIndexes(indexes); err != nil {
				t.Fatal(err)
			}
			for _, info := range from.Indexes() {
				want, version, _ := from.IndexValues(info.Name, "", 0)
				got, restored, err := s.IndexValues(info.Name, "", 0)
				if diff := cmp.Diff(want, got); diff != "" || err != nil || version != restored {
					t.Errorf("index %s at %s, %s (%v):\n%s", info.Name, version, restored, err, diff)
				}
			}
			want, got := from.objectsOf(""), s.objectsOf("")
			if diff := cmp.Diff(keysOf(want), keysOf(got)); diff != "" {
				t.Error(diff)
			}
			if !got[7].Created().Equal(want[7].Created()) || got[7].UID() != want[7].UID() {
				t.Errorf("restored %v %s, want %v %s", got[7].Created(), got[7].UID(), want[7].Created(), want[7].UID())
			}
			b, dirty := s.TakeChanges()
			if same := maps.Equal(indexes, podSpec().Indexes); dirty == same || dirty && !b.Reset {
				t.Errorf("something to save: %v, everything: %v", dirty, b.Reset)
			}
			// The next object is packed with the dictionary at hand.
			o, err := s.Decode(realPod(1, 1000), "", "")
			if err != nil || o.dict.zstd() != got[1].dict.zstd() {
				t.Errorf("decoded with another dictionary (%v)", err)
			}
			// Watches go on exactly from the restored version.
			s.Apply("", Modified, o)
			if got := len(readAll(t, watch(t, s, "400"))); got == 0 {
				t.Error("Watch(400) delivers nothing")
			}
			if _, err := s.Watch("399"); !errors.Is(err, ErrExpired) {
				t.Errorf("Watch(399) = %v, want ErrExpired", err)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	from := filledStore(t, 320)
	batch, _ := from.TakeChanges()
	for name, damage := range map[string]func(s *Saved, r []Record) []Record{
		"twice the same key":    func(_ *Saved, r []Record) []Record { return append(r, r[5]) },
		"no name":               func(_ *Saved, r []Record) []Record { r[3].Name = ""; return r },
		"dictionary missing":    func(s *Saved, r []Record) []Record { s.Dictionaries = nil; return r },
		"dictionary damaged":    func(s *Saved, r []Record) []Record { damageAll(s.Dictionaries); return r },
		"plain of another size": func(_ *Saved, r []Record) []Record { r[9].Dictionary = 0; return r },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, podSpec())
			saved := batch.Saved
			saved.Dictionaries = maps.Clone(saved.Dictionaries)
			records := damage(&saved, slices.Collect(batch.Records()))
			if err := s.Restore(saved, records); err == nil {
				t.Error("restored")
			}
			if s.Len() != 0 || s.Version() != "" {
				t.Errorf("%d objects at %q are left", s.Len(), s.Version())
			}
		})
	}
}

func damageAll(dictionaries map[uint32][]byte) {
	for id, d := range dictionaries {
		dictionaries[id] = d[:len(d)/2]
		if len(d) > 200 {
			dictionaries[id] = append([]byte{1, 2, 3, 4}, d[4:]...)
		}
	}
}

// TestDirty: keys are saved in the state they have when they are taken, and
// nothing is taken before the first sync.
func TestDirty(t *testing.T) {
	s := newStore(t, thingSpec)
	if _, ok := s.TakeChanges(); ok {
		t.Error("there is something to save before the first sync")
	}
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 1)}, "10")
	if b, ok := s.TakeChanges(); !ok || !b.Reset || b.Len() != 1 || b.Saved.ResourceVersions[""] != "10" {
		t.Errorf("first batch %v, %+v", ok, b)
	}
	if _, ok := s.TakeChanges(); ok {
		t.Error("there is something to save twice")
	}
	s.Bookmark("", "11")
	if b, ok := s.TakeChanges(); !ok || b.Len()+len(b.Delete) != 0 || b.Saved.ResourceVersions[""] != "11" {
		t.Errorf("after a bookmark %v, %+v", ok, b)
	}
	s.Apply("", Added, decodeSimple(t, s, "a", "y", 12))
	failed, _ := s.TakeChanges()
	s.Apply("", Deleted, decodeSimple(t, s, "a", "y", 13))
	s.GiveBack(failed)
	b, ok := s.TakeChanges()
	if !ok || b.Len() != 0 || !slices.Equal(b.Delete, []Key{{"a", "y"}}) || b.Saved.ResourceVersions[""] != "13" {
		t.Errorf("after a failed commit and a deletion %v, %+v", ok, b)
	}
	// Nobody takes for a long time, while objects come and go.
	for i := range 6000 {
		s.Apply("", Added, decodeSimple(t, s, "a", "z"+strconv.Itoa(i), 100+2*i))
		s.Apply("", Deleted, decodeSimple(t, s, "a", "z"+strconv.Itoa(i), 101+2*i))
	}
	if n := len(s.dirty.keys); n > 5000 {
		t.Errorf("%d keys wait to be saved for one object", n)
	}
	if b, ok := s.TakeChanges(); !ok || !b.Reset || b.Len() != 1 {
		t.Errorf("after too many keys: reset %v, %d records", b.Reset, b.Len())
	}
	for i := range 1000 {
		s.Apply("", Modified, decodeSimple(t, s, "a", "x", 20000+i))
	}
	if b, _ := s.TakeChanges(); b.Len() != 1 || b.Record(0).ResourceVersion != "20999" {
		t.Errorf("1000 changes of one object are saved as %d records", b.Len())
	}
}

func TestDeleteAll(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "y", 1), decodeSimple(t, s, "a", "x", 2)}, "10")
	sub := watch(t, s, "")
	s.DeleteAll("12")
	if got, want := readAll(t, sub), "DELETED a/x@10, DELETED a/y@10"; got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
	if s.Len() != 0 || s.Version() != "12" || s.Stats().Terms != 0 {
		t.Errorf("%d objects, %d terms at %s are left", s.Len(), s.Stats().Terms, s.Version())
	}
}

// TestLongNames: what clients ask for may be of any length.
func TestLongNames(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 1)}, "10")
	long := strings.Repeat("x", 1<<16)
	for _, k := range []Key{{long, "x"}, {"a", long}, {long, long}, {}} {
		if o, ok := s.Get(k); ok {
			t.Errorf("Get of a key of %d bytes = %s", len(k.String()), o.Key())
		}
	}
	q := Query{Namespaces: []string{long}, Fields: mustFields(t, "metadata.name="+long)}
	if r, err := s.Select(context.Background(), q); err != nil || len(r.Objects) != 0 {
		t.Errorf("Select() = %v, %v", r, err)
	}
}

func TestSelectCancelled(t *testing.T) {
	s := filledStore(t, 400)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Select(ctx, Query{Fields: mustFields(t, "spec.priority=0")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Select() = %v, want the context's error", err)
	}
}

// TestPlan: an indexed query looks at no JSON.
func TestPlan(t *testing.T) {
	s := filledStore(t, 400)
	for q, want := range map[string]Plan{
		"spec.nodeName=node-001":                     {Indexes: []string{"node"}, Candidates: 1},
		"spec.nodeName!=node-001,spec.priority=0":    {Indexes: []string{"node"}, Candidates: 398, Scanned: 398},
		"metadata.name=" + podName(3):                {Candidates: 400},
		"status.phase in (Pending,Succeeded),kind=X": {Indexes: []string{"phase"}},
	} {
		r, err := s.Select(context.Background(), Query{Fields: mustFields(t, q)})
		if err != nil {
			t.Fatal(err)
		}
		if want.Candidates == 0 {
			want.Candidates, want.Scanned = r.Plan.Candidates, r.Plan.Candidates
		}
		if diff := cmp.Diff(want.Indexes, r.Plan.Indexes); diff != "" || want.Scanned != r.Plan.Scanned {
			t.Errorf("%s: plan %+v, want %+v", q, r.Plan, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for parameter, change := range map[string]func(*Spec){
		"indexes":      func(s *Spec) { s.Indexes = map[string]string{"label": "spec.x"} },
		"indexes.node": func(s *Spec) { s.Indexes = map[string]string{"node": "spec..x"} },
		"drop":         func(s *Spec) { s.Drop = []string{"["} },
		"redact":       func(s *Spec) { s.Redact = []string{"]"} },
		"namespaces":   func(s *Spec) { s.Namespaces = []string{"[a"} },
	} {
		spec := thingSpec
		change(&spec)
		_, err := NewStore(spec, StoreOptions{})
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Parameter != parameter {
			t.Errorf("NewStore() = %v, want an InvalidError of %s", err, parameter)
		}
	}
	s := newStore(t, thingSpec)
	var invalid *InvalidError
	if _, err := s.Matcher(Query{Terms: []Term{{"nope", "x"}}}); !errors.As(err, &invalid) || invalid.Message != `there is no index "nope"; the indexes are namespace, label, owner, node` {
		t.Errorf("Matcher() = %v", err)
	}
	if _, _, err := s.IndexValues("nope", "", 0); !errors.As(err, &invalid) || invalid.Parameter != "index" {
		t.Errorf("IndexValues() = %v", err)
	}
	if _, err := s.Select(context.Background(), Query{Namespaces: []string{"[a"}}); !errors.As(err, &invalid) {
		t.Errorf("Select() = %v", err)
	}
	if err := s.SetIndexes(map[string]string{"owner": "spec.x"}); !errors.As(err, &invalid) {
		t.Errorf("SetIndexes() = %v", err)
	}
}
