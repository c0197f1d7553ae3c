package persist

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/informerd/informerd/cache"
)

const benchObjects = 20_000

// benchBoth runs a benchmark of a file that is not encrypted, and of one that is.
func benchBoth(b *testing.B, bench func(*testing.B, *Keyring)) {
	b.Run("plain", func(b *testing.B) { bench(b, nil) })
	b.Run("encrypted", func(b *testing.B) { bench(b, keyring("a")) })
}

// benchDB is a file of 20,000 records.
func benchDB(b *testing.B, sync bool, keys *Keyring) *DB {
	b.Helper()
	db, err := Open(Options{Path: newPath(b), NoSync: !sync, Keys: keys})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	commit(b, db, bulkBatch(pods, benchObjects))
	return db
}

func fileBytes(b *testing.B, db *DB) int64 {
	info, err := os.Stat(db.options.Path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

func BenchmarkLoad(b *testing.B) { benchBoth(b, benchLoad) }

func benchLoad(b *testing.B, keys *Keyring) {
	db := benchDB(b, false, keys)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		saved, err := db.Load(pods, func(cache.Record) error { n++; return nil })
		if err != nil || n != benchObjects || saved.Objects != n {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(fileBytes(b, db))/benchObjects, "file-B/object")
}

func BenchmarkOpen(b *testing.B) {
	db := benchDB(b, false, nil)
	db.Close()
	for b.Loop() {
		db, err := Open(db.options)
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}

// BenchmarkCommit is what a busy second costs: 500 of 20,000 rows changed.
func BenchmarkCommit(b *testing.B) { benchBoth(b, benchCommit) }

func benchCommit(b *testing.B, keys *Keyring) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("fsync=%t", sync), func(b *testing.B) {
			db := benchDB(b, sync, keys)
			rng := rand.New(rand.NewPCG(3, 4))
			before := db.Stats()
			for b.Loop() {
				batch := cache.Batch{Saved: savedOf(pods, "2"), Put: make([]cache.Record, 500)}
				for i := range batch.Put {
					batch.Put[i] = bulkRecord(rng, rng.IntN(benchObjects))
				}
				commit(b, db, batch)
			}
			written := db.Stats().WrittenBytes - before.WrittenBytes
			b.ReportMetric(float64(written)/float64(b.N), "written-B/op")
			b.ReportMetric(float64(fileBytes(b, db))/benchObjects, "file-B/object")
		})
	}
}

// BenchmarkBookmark moves nothing but the resourceVersions of 50 resources.
func BenchmarkBookmark(b *testing.B) {
	db := benchDB(b, true, nil)
	batches := make([]cache.Batch, 50)
	for i := range batches {
		r := pods
		r.GVR.Resource = fmt.Sprintf("kind%d", i)
		batches[i] = cache.Batch{Saved: savedOf(r, "1"), Reset: true}
	}
	commit(b, db, batches...)
	before := db.Stats()
	for i := range batches {
		batches[i].Reset = false
	}
	for b.Loop() {
		commit(b, db, batches...)
	}
	b.ReportMetric(float64(db.Stats().WrittenBytes-before.WrittenBytes)/float64(b.N), "written-B/op")
}

// BenchmarkReset is the first sync of 20,000 objects.
func BenchmarkReset(b *testing.B) { benchBoth(b, benchReset) }

func benchReset(b *testing.B, keys *Keyring) {
	batch := bulkBatch(pods, benchObjects)
	b.ReportAllocs()
	for b.Loop() {
		db, err := Open(Options{Path: newPath(b), Keys: keys})
		if err != nil {
			b.Fatal(err)
		}
		commit(b, db, batch)
		db.Close()
	}
}

// BenchmarkNote makes changes of four keys durable: as a note, and as the commit that it
// stands for.
func BenchmarkNote(b *testing.B) {
	benchBoth(b, func(b *testing.B, keys *Keyring) {
		db := benchDB(b, true, keys)
		for name, do := range map[string]func([]cache.LedgerChange) error{
			"note":   db.Note,
			"commit": func(c []cache.LedgerChange) error { return db.Commit(nil, c) },
		} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					c := cache.LedgerChange{Name: "handler"}
					for i := range 4 {
						c.Put = append(c.Put, cache.LedgerEntry{Key: fmt.Appendf(nil, "key-%d", (n*7+i*531)%2000), Value: make([]byte, 60)})
					}
					if err := do([]cache.LedgerChange{c}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}
