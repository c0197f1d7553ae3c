package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"unique"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// TestFind: of every term all records that have it are found, as they are loaded, and few others.
func TestFind(t *testing.T) { bothWays(t, testFind) }

func testFind(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, bulkBatch(pods, 3000))
	all := load(t, db, pods)
	for _, term := range []cache.Term{
		{Index: cache.NamespaceIndex, Value: "team-7"},
		{Index: cache.NamespaceIndex, Value: "team"},
		{Index: cache.LabelIndex, Value: "app=app-12"},
		{Index: "node", Value: "node-1"},
		{Index: "node", Value: "node-199"},
		{Index: "phase", Value: "Running"},
		{Index: "phase", Value: ""},
		{Index: "phase", Value: "node-1"},
		{Index: "image", Value: "nginx"},
	} {
		t.Run(fmt.Sprint(term.Index, " ", term.Value), func(t *testing.T) {
			has := func(rec cache.Record) bool { return slices.Contains(rec.Terms, unique.Make(term)) }
			var found []cache.Record
			saved, err := db.Find(t.Context(), pods, term, func(rec cache.Record) error {
				found = append(found, rec)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "what is saved", saved, all.Saved)
			slices.SortFunc(found, func(a, b cache.Record) int { return a.Key.Compare(b.Key) })
			wanted := filtered(all.Records, has)
			if others := len(found) - len(wanted); others > 30 && len(wanted) > 0 {
				t.Errorf("%d others are found", others)
			}
			same(t, "the records", filtered(found, has), wanted)
		})
	}
	stop := errors.New("enough")
	if _, err := db.Find(t.Context(), pods, cache.Term{Index: "phase", Value: "Running"}, func(cache.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Find() = %v, want the error of yield", err)
	}
	if _, err := db.Find(t.Context(), deployments, cache.Term{Index: "phase", Value: "Running"}, nil); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Find() = %v of what is not saved", err)
	}
}

func filtered(records []cache.Record, keep func(cache.Record) bool) (kept []cache.Record) {
	for _, rec := range records {
		if keep(rec) {
			kept = append(kept, rec)
		}
	}
	return kept
}

// TestFindDamaged: one damaged record may be one of those that are looked for, whatever it says.
func TestFindDamaged(t *testing.T) { bothWays(t, testFindDamaged) }

func testFindDamaged(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, bulkBatch(pods, 600))
	damageOne(t, db, pods)
	_, err := db.Find(t.Context(), pods, cache.Term{Index: "node", Value: "node-1"}, func(cache.Record) error { return nil })
	if !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Find() = %v, want ErrCorrupt", err)
	}
}

// damageOne changes a bit in the middle of a record, behind the back of what is sealed.
func damageOne(t *testing.T, db *DB, r cache.Resource) { damageOneAt(t, db, r, 300) }

// damageOneAt is damageOne of the record after so many.
func damageOneAt(t *testing.T, db *DB, r cache.Resource, n int) {
	t.Helper()
	name, err := db.vault.resourceName(r)
	if err != nil {
		t.Fatal(err)
	}
	err = update(db.bolt, func(tx *bbolt.Tx) error {
		objects := bucketAt(tx, rootBucket, resourcesBucket, name, objectsBucket)
		c := objects.Cursor()
		c.First()
		for range n {
			c.Next()
		}
		key, value := c.Next()
		value = slices.Clone(value)
		value[len(value)/2] ^= 4
		return objects.Put(slices.Clone(key), value)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFindStops: who has enough need not wait for the rest to be read, nor hold it in memory.
func TestFindStops(t *testing.T) { bothWays(t, testFindStops) }

func testFindStops(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, bulkBatch(pods, 20_000))
	damageOneAt(t, db, pods, 19_990) // who reads all meets it
	enough := errors.New("enough")
	_, err := db.Find(t.Context(), pods, cache.Term{Index: "phase", Value: "Running"}, func(cache.Record) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("Find() = %v: all was read, and held, before the first was told", err)
	}
}

// TestFindEnds: nobody waits for the end of a search that nobody waits for.
func TestFindEnds(t *testing.T) { bothWays(t, testFindEnds) }

func testFindEnds(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, bulkBatch(pods, 2000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.Find(ctx, pods, cache.Term{Index: "phase", Value: "none"}, func(cache.Record) error { return nil })
	if !errors.Is(err, context.Canceled) || errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Find() = %v", err)
	}
}
