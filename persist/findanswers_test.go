package persist

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

var oddValues = []any{"", "a", "A", "node-1", "node-10", "\x00", "\x01a", "é", "a\nb", 1, 10, 1.5, "1", true, "true", false, nil,
	strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("y", 1024), strings.Repeat("z", 1025), []any{"a", "b", "a"}, map[string]any{"a": "b"}, []any{}, "*", "a=b", "="}

// TestFindAnswers: what is found of a saved copy answers random questions as all of it does: odd
// values, index definitions that changed, many indexes, batches without a reset.
func TestFindAnswers(t *testing.T) { bothWays(t, testFindAnswers) }

func testFindAnswers(t *testing.T, keys *Keyring) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 7))
		spec := savedOf(pods, "1").Spec
		definitions := func() map[string]string {
			all := map[string]string{"node": "spec.a", "value": "spec.b[*]"}
			for n := range rng.IntN(200) {
				all[fmt.Sprint("extra", rng.IntN(300))] = fmt.Sprint("spec.c", n%9)
			}
			return all
		}
		spec.Indexes = definitions()
		store, err := cache.NewStore(spec, cache.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		db := open(t, Options{Path: newPath(t), Keys: keys, stageBytes: 40_000})
		save := func() {
			b, ok := store.TakeChanges()
			if ok {
				b.Saved.ClusterUID = "c1"
				commit(t, db, b)
			}
		}
		version := 1
		object := func(n int) *cache.Object {
			version++
			odd := func() any { return oddValues[rng.IntN(len(oddValues))] }
			specOf := map[string]any{"a": odd(), "b": []any{odd(), odd()}}
			for c := range 9 {
				specOf[fmt.Sprint("c", c)] = odd()
			}
			raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"namespace": fmt.Sprint("team-", n%7), "name": fmt.Sprint("p", n), "uid": fmt.Sprint("u", n), "resourceVersion": fmt.Sprint(version),
				"labels":          map[string]any{"app": fmt.Sprint(n % 5), "e": ""},
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "X", "name": "x", "uid": fmt.Sprint("o", n%11)}},
			}, "spec": specOf})
			if err != nil {
				t.Fatal(err)
			}
			o, err := store.Decode(raw, "v1", "Pod")
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		var all []*cache.Object
		for n := range 400 {
			all = append(all, object(n))
		}
		store.Replace("", all, fmt.Sprint(version))
		save()
		for range 4 {
			for range 40 {
				n := rng.IntN(450)
				store.Apply("", cache.Modified, object(n))
			}
			if rng.IntN(2) == 0 {
				spec.Indexes = definitions()
				if err := store.SetIndexes(spec.Indexes); err != nil {
					t.Fatal(err)
				}
			}
			save()
		}
		restore := func(read func(func(cache.Record) error) (cache.Saved, error)) *cache.Reader {
			loaded := cache.NewRestoring()
			saved, err := read(loaded.Add)
			if err != nil {
				t.Fatal(err)
			}
			if !saved.HasTerms(spec.Indexes) {
				t.Fatal("other terms")
			}
			s, err := cache.NewStore(spec, cache.StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.RestoreFrom(saved, loaded); err != nil {
				t.Fatal(err)
			}
			s.Close()
			return new(cache.View).Hold(s).Reader(cache.WholeScope())
		}
		db = reopen(t, db)
		full := restore(func(add func(cache.Record) error) (cache.Saved, error) { return db.Load(pods, add) })
		names := full.IndexNames()
		total := 0
		for range 150 {
			var term cache.Term
			term.Index = names[rng.IntN(len(names))]
			if v, _, err := full.IndexValues(term.Index, "", 0); err == nil && len(v) > 0 && rng.IntN(4) > 0 {
				term.Value = v[rng.IntN(len(v))].Value
			} else {
				term.Value = fmt.Sprint(oddValues[rng.IntN(len(oddValues))])
			}
			part := restore(func(add func(cache.Record) error) (cache.Saved, error) { return db.Find(t.Context(), pods, term, add) })
			q := cache.Query{Terms: []cache.Term{term}}
			if rng.IntN(3) == 0 {
				q.Namespaces = []string{"team-*"}
			}
			texts := func(r *cache.Reader) (lines []string) {
				found, err := r.Select(t.Context(), q)
				if err != nil {
					return []string{err.Error()}
				}
				for _, o := range found.Objects {
					j, _ := o.JSON()
					lines = append(lines, o.Key().String()+string(j))
				}
				return append(lines, found.Version)
			}
			a, b := texts(full), texts(part)
			total += len(a)
			if !slices.Equal(a, b) {
				t.Errorf("%q: %d in all, %d of what is found", term, len(a), len(b))
			}
		}
		t.Log(total)
	}
}
