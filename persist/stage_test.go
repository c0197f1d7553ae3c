package persist

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/informerd/informerd/cache"
)

// TestReopenWhileStaging: what lay in the staging bucket is lost when the file has to be opened
// anew between two parts of it. That must not be committed as if it were all.
func TestReopenWhileStaging(t *testing.T) { bothWays(t, testReopenWhileStaging) }

func testReopenWhileStaging(t *testing.T, keys *Keyring) {
	parts := 0
	var db *DB
	o := Options{Path: newPath(t), Keys: keys, stageBytes: 100 << 10}
	db = open(t, o)
	db.options.Pause = func(time.Duration) {
		if parts++; parts == 2 { // as writeLocked does after ErrInvalidMapping
			if err := db.reopen(); err != nil {
				t.Errorf("reopen() = %v", err)
			}
		}
	}
	err := db.Commit([]cache.Batch{bulkBatch(pods, 600)}, nil)
	if parts < 2 {
		t.Fatalf("%d parts", parts)
	}
	if err == nil {
		if _, err := tryLoad(db, pods); err != nil {
			t.Errorf("Commit() = nil, and Load() = %v", err)
		}
		return
	}
	commit(t, db, bulkBatch(pods, 600)) // again
	if s := load(t, db, pods); len(s.Records) != 600 {
		t.Errorf("%d records", len(s.Records))
	}
}

// TestReopenWhileStagingLedger is TestReopenWhileStaging of a ledger.
func TestReopenWhileStagingLedger(t *testing.T) {
	db := open(t, Options{Path: newPath(t), stageBytes: 100})
	large := ledgerOf("shop", map[string]string{"a": strings.Repeat("1", 200), "b": strings.Repeat("2", 200)})
	c := must(newLedgerChange(&large, nil))
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	m, next := &ledgerMeta{name: "shop"}, 0
	stage := func() error {
		return db.writeLocked(func(tx *bbolt.Tx) error { return c.stage(tx, m, &next, 100) })
	}
	if err := stage(); err != nil {
		t.Fatal(err)
	}
	if err := db.reopen(); err != nil {
		t.Fatal(err)
	}
	if err := stage(); !errors.Is(err, errUnstaged) {
		t.Errorf("stage() = %v, the part before is lost", err)
	}
}

// TestStagedKeysTwice: a key that a batch has twice is one record, wherever the parts are cut.
func TestStagedKeysTwice(t *testing.T) { bothWays(t, testStagedKeysTwice) }

func testStagedKeysTwice(t *testing.T, keys *Keyring) {
	for _, limit := range []int{2_000, 5_000, 20_000} {
		db := open(t, Options{Path: newPath(t), Keys: keys, stageBytes: limit})
		b := bulkBatch(pods, 100)
		for _, rec := range slices.Clone(b.Put) {
			rec.UID = "second"
			b.Put = append(b.Put, rec)
		}
		commit(t, db, b)
		s := load(t, db, pods)
		if len(s.Records) != 100 || s.Records[50].UID != "second" {
			t.Errorf("%d records, UID %s", len(s.Records), s.Records[50].UID)
		}
	}
}

// TestWriteAgain: a transaction that is run again, after its first run has written into the arena,
// leaves what a single run leaves.
func TestWriteAgain(t *testing.T) { bothWays(t, testWriteAgain) }

func testWriteAgain(t *testing.T, keys *Keyring) {
	b := bulkBatch(pods, 400)
	db := open(t, Options{Path: newPath(t), Keys: keys})
	c, err := newChange(&b, db.vault, new(arena))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = db.writeUnder(db.vault, func(tx *bbolt.Tx) error {
		if err := c.apply(tx); err != nil {
			return err
		}
		if runs++; runs == 1 {
			return berrors.ErrInvalidMapping
		}
		return nil
	})
	if err != nil || runs != 2 {
		t.Fatalf("%d runs: %v", runs, err)
	}
	if got := len(load(t, db, pods).Records); got != 400 {
		t.Errorf("%d records", got)
	}
	// And parts of a staged one.
	m, next := new(meta), 0
	for next < len(c.order) {
		start, before, again := next, *m, false
		err := db.writeUnder(c.vault, func(tx *bbolt.Tx) error {
			next, *m = start, before
			if err := c.stage(tx, m, &next, 50<<10); err != nil {
				return err
			}
			if !again && start == 0 {
				again = true
				return berrors.ErrInvalidMapping
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.staged = m
	if err := db.writeUnder(c.vault, c.apply); err != nil {
		t.Fatal(err)
	}
	if got := len(load(t, db, pods).Records); got != 400 || m.Objects != 400 {
		t.Errorf("%d records, %d", got, m.Objects)
	}
}

// TestSmallChanges: a change of one object in each of many resources, as a save mostly is, takes
// not much more memory than the objects do.
func TestSmallChanges(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	var first, next []cache.Batch
	for n := range 200 {
		r := pods
		r.GVR.Resource = fmt.Sprint("things", n)
		b := cache.Batch{Saved: savedOf(r, "1"), Reset: true, Put: []cache.Record{record("a", "one", "1")}}
		first = append(first, b)
		b.Reset, b.Put = false, []cache.Record{record("a", "one", "2")}
		next = append(next, b)
	}
	commit(t, db, first...)
	commit(t, db, next...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	commit(t, db, next...)
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / 200
	if t.Logf("%d bytes for each", each); each > 60<<10 {
		t.Errorf("%d bytes for each", each)
	}
}
