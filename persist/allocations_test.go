//go:build !race

// The race detector allocates as well.

package persist

import (
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestAllocations holds how often memory is allocated for each object that is
// read from the file at a start, or written to it. What is exceeded for a good
// reason is raised here, with that reason in the commit.
func TestAllocations(t *testing.T) {
	const objects = 1000
	db := open(t, Options{Path: newPath(t)})
	batch := bulkBatch(pods, objects)
	commit(t, db, batch)
	for _, c := range []struct {
		what string
		most float64 // allocations for each object
		run  func() error
	}{
		{"load", 3, func() error {
			_, err := db.Load(pods, func(cache.Record) error { return nil })
			return err
		}},
		{"commit", 8, func() error {
			return db.Commit([]cache.Batch{batch}, nil)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			var failed error
			n := testing.AllocsPerRun(10, func() {
				if err := c.run(); err != nil {
					failed = err
				}
			}) / objects
			if failed != nil {
				t.Fatal(failed)
			}
			t.Logf("%.2f allocations for each object, at most %v", n, c.most)
			if n > c.most {
				t.Errorf("%.2f allocations for each object, want at most %v", n, c.most)
			}
		})
	}
}
