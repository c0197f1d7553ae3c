package persist

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/informerd/informerd/cache"
)

// model is what a DB should hold.
type model map[cache.Resource]*modelResource

type modelResource struct {
	saved   cache.Saved
	records map[cache.Key]cache.Record
}

func (m model) apply(b cache.Batch) {
	r := b.Saved.Spec.Resource
	old := m[r]
	if b.Reset {
		old = &modelResource{records: make(map[cache.Key]cache.Record)}
	}
	next := &modelResource{saved: b.Saved, records: maps.Clone(old.records)}
	next.saved.Dictionaries = maps.Clone(old.saved.Dictionaries)
	if next.saved.Dictionaries == nil {
		next.saved.Dictionaries = make(map[uint32][]byte)
	}
	maps.Copy(next.saved.Dictionaries, b.Saved.Dictionaries)
	for _, id := range b.Retired {
		delete(next.saved.Dictionaries, id)
	}
	for _, k := range b.Delete {
		delete(next.records, k)
	}
	for _, rec := range b.Put {
		next.records[rec.Key] = rec
	}
	next.saved.Objects = len(next.records)
	m[r] = next
}

func (m model) check(t *testing.T, db cache.Snapshots) {
	t.Helper()
	for _, r := range three {
		want, ok := m[r]
		got, err := tryLoad(db, r)
		if !ok {
			if !errors.Is(err, cache.ErrNoSnapshot) {
				t.Fatalf("Load(%s) = %v, want ErrNoSnapshot", r, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("Load(%s) = %v", r, err)
		}
		same(t, r.String(), got.Saved, want.saved)
		keys := slices.SortedFunc(maps.Keys(want.records), cache.Key.Compare)
		var records []cache.Record
		for _, k := range keys {
			records = append(records, want.records[k])
		}
		same(t, r.String(), got.Records, records)
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestModel compares the DB with a map under random operations.
func TestModel(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := &generator{rng: rand.New(rand.NewPCG(uint64(seed), 9))}
			o := Options{Path: newPath(t), stageBytes: 30_000, compactBytes: 50_000}
			if seed%2 == 1 {
				o.Keys = keyring("a")
			}
			db := open(t, o)
			m := make(model)
			for step := range 150 {
				switch n := g.rng.IntN(20); {
				case n == 0:
					db = reopen(t, db)
				case n == 1:
					r := three[g.rng.IntN(len(three))]
					if err := db.Drop(r); err != nil {
						t.Fatal(err)
					}
					delete(m, r)
				default:
					batches := g.batches(m, strconv.Itoa(step))
					commit(t, db, batches...)
					for _, b := range batches {
						m.apply(b)
					}
				}
				if step%5 == 0 {
					m.check(t, db)
				}
			}
			m.check(t, db)
		})
	}
}

type generator struct{ rng *rand.Rand }

func (g *generator) batches(m model, version string) (all []cache.Batch) {
	for _, r := range three {
		if g.rng.IntN(2) == 0 {
			continue
		}
		b := cache.Batch{Saved: savedOf(r, version), Reset: m[r] == nil || g.rng.IntN(8) == 0}
		if b.Reset || g.rng.IntN(6) == 0 {
			b.Saved.Dictionaries = map[uint32][]byte{1: {1}, uint32(2 + g.rng.IntN(2)): []byte(version)}
		}
		if !b.Reset && g.rng.IntN(4) == 0 {
			b.Retired = []uint32{3} // which no record refers to
			delete(b.Saved.Dictionaries, 3)
		}
		n := g.rng.IntN(30)
		if b.Reset {
			n = g.rng.IntN(300)
			// Deletes mean nothing to a Reset; old dictionaries go.
			b.Saved.Dictionaries[2], b.Saved.Dictionaries[3] = []byte("two"), []byte("three")
		}
		for range n {
			b.Put = append(b.Put, g.record(version))
		}
		for range g.rng.IntN(30) {
			b.Delete = append(b.Delete, g.key())
		}
		all = append(all, b)
	}
	return all
}

func (g *generator) key() cache.Key {
	namespaces := []string{"", "a", "b", "b-c"}
	return cache.Key{Namespace: namespaces[g.rng.IntN(len(namespaces))], Name: fmt.Sprint(g.rng.IntN(200))}
}

func (g *generator) record(version string) cache.Record {
	k := g.key()
	rec := record(k.Namespace, k.Name, version)
	rec.Dictionary = uint32(g.rng.IntN(3)) // 0 is none; 1 and 2 are always saved
	rec.Created = g.rng.Int64() - g.rng.Int64()
	rec.Data = make([]byte, g.rng.IntN(10)*g.rng.IntN(900))
	for range g.rng.IntN(8) {
		index := "index-" + fmt.Sprint(g.rng.IntN(30))
		rec.Terms = append(rec.Terms, interned(cache.Term{Index: index, Value: version})...)
	}
	return rec
}

// TestLoadBesideCommit: each Load sees one commit while others are being made.
func TestLoadBesideCommit(t *testing.T) { bothWays(t, testLoadBesideCommit) }

func testLoadBesideCommit(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, threeBatch(40, "0")...)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, r := range three {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := tryLoad(db, r)
				if err != nil || len(got.Records) != 40 {
					t.Errorf("Load(%s) = %d records, %v", r, len(got.Records), err)
					return
				}
				for _, rec := range got.Records {
					if rec.ResourceVersion != got.Saved.ResourceVersions[""] {
						t.Errorf("record of %s in commit %s", rec.ResourceVersion, got.Saved.ResourceVersions[""])
						return
					}
				}
			}
		})
	}
	for n := range 60 {
		commit(t, db, threeBatch(40, strconv.Itoa(n))...)
	}
	close(stop)
	readers.Wait()
}
