package persist

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
	"github.com/informerd/informerd/test/standin"
)

// TestTemplates: objects that are held beside siblings come back as they were from every kind of
// store, which has what they are held beside as long as they are there, and no longer.
func TestTemplates(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) cache.Snapshots{
		"file":      func(t *testing.T) cache.Snapshots { return open(t, Options{Path: newPath(t)}) },
		"encrypted": func(t *testing.T) cache.Snapshots { return open(t, Options{Path: newPath(t), Keys: keyring("a")}) },
		"postgres":  func(t *testing.T) cache.Snapshots { return openPostgres(t, postgres.Start(t)) },
	} {
		t.Run(name, func(t *testing.T) { checkTemplates(t, open(t)) })
	}
}

func checkTemplates(t *testing.T, db cache.Snapshots) {
	all := standin.NewPods(600)
	spec := cache.Spec{Resource: pods, Kind: "Pod", Namespaced: true}
	from, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	decode := func(i, version int) *cache.Object {
		o, err := from.Decode(all.Append(nil, i, version), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var objs []*cache.Object
	for i := range 600 {
		objs = append(objs, decode(i, i+1))
	}
	from.Replace("", objs, "600")
	save(t, db, from)
	checkSaved(t, db, from)

	version := 600
	for i := range 280 { // whole ReplicaSets of forty go, and one in part
		version++
		from.Apply("", cache.Deleted, decode(i+300, version))
	}
	for i := range 30 {
		version++
		from.Apply("", cache.Modified, decode(7*i, version))
	}
	save(t, db, from)
	checkSaved(t, db, from)
}

func save(t *testing.T, db cache.Snapshots, from *cache.Store) {
	t.Helper()
	b, ok := from.TakeChanges()
	if !ok {
		t.Fatal("there is nothing to save")
	}
	if err := db.Commit([]cache.Batch{b}, nil); err != nil {
		t.Fatal(err)
	}
}

// checkSaved loads what is saved into another Store and compares the two.
func checkSaved(t *testing.T, db cache.Snapshots, from *cache.Store) {
	t.Helper()
	var records []cache.Record
	needed := map[uint32]bool{}
	saved, err := db.Load(pods, func(r cache.Record) error {
		records = append(records, r)
		needed[r.Dictionary] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	templates := 0
	for id, data := range saved.Dictionaries {
		if !cache.IsTemplate(data) {
			continue
		}
		if templates++; !needed[id] {
			t.Errorf("template %d is saved, and nothing is held beside it", id)
		}
	}
	if want := from.Stats().Templates; templates != want || want == 0 {
		t.Errorf("%d templates are saved, want %d", templates, want)
	}
	next, err := cache.NewStore(saved.Spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if err := next.Restore(saved, slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
	if next.Len() != from.Len() {
		t.Fatalf("%d objects, want %d", next.Len(), from.Len())
	}
	all := standin.NewPods(600)
	for i := range 600 {
		k := cache.Key{Namespace: all.Namespace(i), Name: all.Name(i)}
		want, ok := from.Get(k)
		got, there := next.Get(k)
		if ok != there {
			t.Fatalf("%s is there: %s", k, strconv.FormatBool(there))
		}
		if !ok {
			continue
		}
		a, errA := want.JSON()
		b, errB := got.JSON()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("%s is %s (%v, %v), want %s", k, b, errA, errB, a)
		}
	}
}
