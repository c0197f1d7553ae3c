package cache

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// TestSiblings: objects of one owner have the terms they have in common in one piece of memory,
// however they came into the Store.
func TestSiblings(t *testing.T) {
	decode := func(s *Store, name, app string, version int) *Object {
		t.Helper()
		o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q,"uid":%q,"resourceVersion":"%d","labels":{"app":%q,"tier":"x"},
			"ownerReferences":[{"uid":"owner"}]},"spec":{"nodeName":"node-%d"}}`, name, name, version, app, version), "v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	s := newStore(t, thingSpec)
	var listed []*Object
	for i := range 20 {
		listed = append(listed, decode(s, fmt.Sprintf("x-%02d", i), "web", 10+i))
	}
	s.Replace("", listed, "100")
	all := func(s *Store) (found []*commonTerms) {
		for _, o := range s.objects() {
			if !slices.Contains(found, o.common) {
				found = append(found, o.common)
			}
		}
		return found
	}
	if found := all(s); len(found) != 1 {
		t.Errorf("%d lists of terms of objects that were listed", len(found))
	}
	decode(s, "other", "db", 1)
	s.Apply("", Modified, decode(s, "x-05", "web", 101))
	decode(s, "other", "db", 1)
	s.Apply("", Added, decode(s, "x-05a", "web", 102))
	decode(s, "other", "db", 1)
	s.Apply("", Added, decode(s, "w", "web", 103)) // before all others
	if found := all(s); len(found) != 1 {
		t.Errorf("%d lists of terms after objects came and changed", len(found))
	}
	s.Apply("", Modified, decode(s, "x-07", "db", 104))
	if found := all(s); len(found) != 2 {
		t.Errorf("%d lists of terms after a label changed", len(found))
	}
	for i := range 20 { // a label of all, while others are read
		decode(s, "other", "db", 1)
		s.Apply("", Modified, decode(s, fmt.Sprintf("x-%02d", i), "api", 200+i))
	}
	if found := all(s); len(found) > 3 {
		t.Errorf("%d lists of terms after a label of siblings changed", len(found))
	}
	listed = listed[:0]
	for i := range 20 {
		decode(s, "other", "db", 1)
		listed = append(listed, decode(s, fmt.Sprintf("x-%02d", i), "api", 300+i))
	}
	s.Replace("", listed, "400")
	if found := all(s); len(found) > 1 {
		t.Errorf("%d lists of terms after all were listed again", len(found))
	}
	batch, _ := s.TakeChanges()
	restored := newStore(t, thingSpec)
	if err := restored.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil {
		t.Fatal(err)
	}
	if found := all(restored); len(found) > 3 {
		t.Errorf("%d lists of terms after a restart", len(found))
	}
	for i, o := range restored.objects() {
		if want := s.objects()[i]; !slices.Equal(o.Terms(), want.Terms()) || o.Labels().Get("app") != want.Labels().Get("app") || !o.Owned() {
			t.Errorf("%s has the terms %v, want %v", o.Key(), o.Terms(), want.Terms())
		}
	}
}

// TestTermsOutOfOrder: labels are looked for among the first terms of an object alone, so that
// a snapshot which has one after a configured term is refused.
func TestTermsOutOfOrder(t *testing.T) {
	s := newStore(t, thingSpec)
	o, err := s.Decode([]byte(`{"metadata":{"name":"x","namespace":"a","resourceVersion":"7","labels":{"app":"web"}}}`), "v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	s.Replace("", []*Object{o}, "7")
	batch, _ := s.TakeChanges()
	for _, first := range []bool{true, false} {
		record := batch.Record(0)
		if configured := intern("node", "n"); first {
			record.Terms = append(record.Terms, configured)
		} else {
			record.Terms = append([]handle{configured}, record.Terms...)
		}
		if err := newStore(t, thingSpec).Restore(batch.Saved, []Record{record}); (err == nil) != first {
			t.Errorf("labels first: %v, error %v", first, err)
		}
	}
}

// TestObjectSize holds what each object takes beside its names and JSON: a word more is a
// hundredth of all memory.
func TestObjectSize(t *testing.T) {
	if size := unsafe.Sizeof(Object{}); size > 80 {
		t.Errorf("an Object takes %d bytes", size)
	}
}
