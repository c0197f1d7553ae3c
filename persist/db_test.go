package persist

import (
	"errors"
	"testing"

	"github.com/informerd/informerd/cache"
)

func TestRoundTrip(t *testing.T) { bothWays(t, testRoundTrip) }

func testRoundTrip(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	batch := cache.Batch{
		Saved: savedOf(pods, "7"),
		Reset: true,
		Put:   []cache.Record{record("b", "x", "2"), record("a", "z", "3"), record("", "cluster", "4"), record("a", "y", "5")},
	}
	batch.Put[0].Dictionary = 9
	batch.Saved.Dictionaries = map[uint32][]byte{9: []byte("dictionary")}
	commit(t, db, batch)
	for range 2 {
		got := load(t, db, pods)
		want := batch.Saved
		want.Objects = 4
		same(t, "saved", got.Saved, want)
		same(t, "records", got.Records, []cache.Record{batch.Put[2], batch.Put[3], batch.Put[1], batch.Put[0]})
		all, err := db.Saved()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "list", all, []cache.Saved{want})
		db = reopen(t, db)
	}
}

func TestLoadNothing(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	if _, err := tryLoad(db, pods); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Load() = %v, want ErrNoSnapshot", err)
	}
	if all, err := db.Saved(); err != nil || len(all) != 0 {
		t.Errorf("Saved() = %v, %v", all, err)
	}
	if err := db.Drop(pods); err != nil {
		t.Errorf("Drop() = %v", err)
	}
}
