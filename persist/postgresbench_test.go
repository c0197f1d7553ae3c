package persist

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// processorTime is what this process has used; the database is another.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchStores runs a benchmark of the file and of a database, with what a batch costs this
// process: cpu-us/op.
func benchStores(b *testing.B, bench func(b *testing.B, db cache.Snapshots)) {
	b.Run("file", func(b *testing.B) {
		db, err := Open(Options{Path: newPath(b)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		bench(b, db)
	})
	b.Run("postgres", func(b *testing.B) { bench(b, openPostgres(b, postgres.Start(b))) })
}

func perOperation(b *testing.B, began time.Duration) {
	b.Helper()
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkStoreCommit is 500 of 20,000 rows changed, as in BenchmarkCommit.
func BenchmarkStoreCommit(b *testing.B) {
	benchStores(b, func(b *testing.B, db cache.Snapshots) {
		if err := db.Commit([]cache.Batch{bulkBatch(pods, benchObjects)}, nil); err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		began := processorTime(b)
		for b.Loop() {
			batch := cache.Batch{Saved: savedOf(pods, "2"), Put: make([]cache.Record, 500)}
			for i := range batch.Put {
				batch.Put[i] = bulkRecord(rng, rng.IntN(benchObjects))
			}
			if err := db.Commit([]cache.Batch{batch}, nil); err != nil {
				b.Fatal(err)
			}
		}
		perOperation(b, began)
		b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkStoreReset is the first save of 20,000 objects.
func BenchmarkStoreReset(b *testing.B) {
	benchStores(b, func(b *testing.B, db cache.Snapshots) {
		batch := bulkBatch(pods, benchObjects)
		began := processorTime(b)
		for b.Loop() {
			if err := db.Commit([]cache.Batch{batch}, nil); err != nil {
				b.Fatal(err)
			}
		}
		perOperation(b, began)
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkStoreLoad is a warm start with 20,000 objects.
func BenchmarkStoreLoad(b *testing.B) {
	benchStores(b, func(b *testing.B, db cache.Snapshots) {
		if err := db.Commit([]cache.Batch{bulkBatch(pods, benchObjects)}, nil); err != nil {
			b.Fatal(err)
		}
		began := processorTime(b)
		for b.Loop() {
			n := 0
			if _, err := db.Load(pods, func(cache.Record) error { n++; return nil }); err != nil || n != benchObjects {
				b.Fatal(n, err)
			}
		}
		perOperation(b, began)
	})
}
