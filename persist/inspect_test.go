package persist

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/informerd/informerd/cache"
)

func TestInfo(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, threeBatch(10, "5")...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := Info(db.options.Path, nil)
	if err != nil || len(info.Resources) != 3 || info.Format != plainFormat {
		t.Fatalf("Info() = %+v, %v", info, err)
	}
	got := info.Resources[1]
	if got.Resource != "deployments" || got.Group != "apps" || got.Objects != 10 ||
		got.Bytes < 3000 || got.Dictionaries[1] != 5000 || got.ResourceVersions[""] != "5" {
		t.Errorf("Info() = %+v", got)
	}
}

func TestInspectNothing(t *testing.T) {
	path := newPath(t)
	if _, err := Info(path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Info() = %v", err)
	}
	if _, err := Verify(path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Verify() = %v", err)
	}
	if _, _, err := Compact(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Compact() = %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// wasteful is a file that is mostly free.
func wasteful(t *testing.T) (*DB, map[cache.Resource]snapshot) {
	t.Helper()
	db := open(t, Options{Path: newPath(t), compactBytes: 100_000})
	commit(t, db, threeBatch(1000, "1")...)
	commit(t, db, threeBatch(50, "2")...)
	return db, loadThree(t, db)
}

func TestCompact(t *testing.T) {
	db, want := wasteful(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, after, err := Compact(db.options.Path)
	if err != nil || after > before/4 {
		t.Errorf("Compact() = %d, %d, %v", before, after, err)
	}
	checkFile(t, db.options.Path)
	if !equal(loadThree(t, open(t, Options{Path: db.options.Path})), want) {
		t.Error("compacting changed something")
	}
}

func TestCompactAtOpen(t *testing.T) {
	db, want := wasteful(t)
	before := db.Stats()
	db = reopen(t, db)
	after := db.Stats()
	if after.FileBytes > before.FileBytes/4 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if !equal(loadThree(t, db), want) {
		t.Error("compacting changed something")
	}
	if _, err := os.Stat(db.options.Path + newSuffix); err == nil {
		t.Error("the copy was left behind")
	}
}

// TestStaging: a Reset too large for one transaction of bbolt.
func TestStaging(t *testing.T) { bothWays(t, testStaging) }

func testStaging(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), stageBytes: 50_000, Keys: keys})
	batch := cache.Batch{Saved: savedOf(pods, "1"), Reset: true, Put: bulk(500)}
	batch.Saved.Dictionaries = map[uint32][]byte{1: []byte("d")}
	for _, version := range []string{"1", "2"} {
		batch.Saved.ResourceVersions = map[string]string{"": version}
		commit(t, db, batch)
		got := load(t, db, pods)
		if got.Saved.ResourceVersions[""] != version || len(got.Records) != 500 {
			t.Errorf("loaded %d records of %v", len(got.Records), got.Saved.ResourceVersions)
		}
		db = reopen(t, db)
	}
	if n := db.Stats().Writes; n > 10 {
		t.Errorf("opening wrote %d times: something was left in the staging bucket", n)
	}
}

// TestStagingFails: what was staged for a batch that is then refused is no part
// of any snapshot, and is removed.
func TestStagingFails(t *testing.T) {
	db := open(t, Options{Path: newPath(t), stageBytes: 50_000})
	commit(t, db, threeBatch(3, "1")...)
	want := loadThree(t, db)
	batch := cache.Batch{Saved: savedOf(pods, "2"), Reset: true, Put: bulk(500)}
	batch.Put[499].Dictionary = 77 // which is missing
	if err := db.Commit([]cache.Batch{batch}, nil); err == nil {
		t.Fatal("Commit() worked without the dictionary")
	}
	for range 2 {
		if !equal(loadThree(t, db), want) {
			t.Error("a failed commit changed something")
		}
		db = reopen(t, db)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := Info(db.options.Path, nil); err != nil || info.FreeBytes < 500*1000 {
		t.Errorf("Info() = %+v, %v: the staged records still take room", info, err)
	}
}

func TestCommitRefuses(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	good := cache.Batch{Saved: savedOf(deployments, "1"), Reset: true}
	for name, bad := range map[string]cache.Batch{
		"change of nothing":    {Saved: savedOf(pods, "1")},
		"unknown dictionary":   {Saved: savedOf(pods, "1"), Reset: true, Put: bulk(1)},
		"NUL in a namespace":   {Saved: savedOf(pods, "1"), Reset: true, Put: []cache.Record{record("a\x00b", "c", "1")}},
		"NUL in the cluster":   {Saved: savedOf(cache.Resource{Cluster: "\x00"}, "1"), Reset: true},
		"name longer than any": {Saved: savedOf(pods, "1"), Reset: true, Put: []cache.Record{record("", string(make([]byte, 40_000)), "1")}},
	} {
		if err := db.Commit([]cache.Batch{good, bad}, nil); err == nil {
			t.Errorf("%s: Commit() worked", name)
		}
		if all, err := db.Saved(); err != nil || len(all) != 0 {
			t.Errorf("%s: half of the commit was saved: %v, %v", name, all, err)
		}
	}
}

// TestDictionaries: kept while records need them, gone with the Reset after
// which none does.
func TestDictionaries(t *testing.T) { bothWays(t, testDictionaries) }

func testDictionaries(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	batch := func(reset bool, uses uint32, brings ...uint32) cache.Batch {
		b := cache.Batch{Saved: savedOf(pods, "1"), Reset: reset}
		b.Saved.Dictionaries = make(map[uint32][]byte)
		for _, id := range brings {
			b.Saved.Dictionaries[id] = []byte{byte(id)}
		}
		rec := record("ns", "x", "1")
		rec.Dictionary = uses
		b.Put = []cache.Record{rec}
		return b
	}
	for _, step := range []struct {
		batch cache.Batch
		want  int
	}{
		{batch(true, 1, 1), 1},
		{batch(false, 2, 2), 2},
		{batch(false, 1), 2},
		{batch(true, 2), 1},
		{batch(true, 0, 3), 1},
		{batch(true, 0), 0},
	} {
		commit(t, db, step.batch)
		if got := len(load(t, db, pods).Saved.Dictionaries); got != step.want {
			t.Errorf("%d dictionaries, want %d", got, step.want)
		}
	}
}

func TestClosed(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, loadErr := tryLoad(db, pods)
	_, savedErr := db.Saved()
	for what, err := range map[string]error{
		"Load": loadErr, "Saved": savedErr, "Commit": db.Commit(threeBatch(1, "1"), nil), "Drop": db.Drop(pods),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s() = %v, want ErrClosed", what, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close() = %v", err)
	}
}

// TestLoadStops: the error of yield ends the Load and comes back as it is.
func TestLoadStops(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, threeBatch(5, "1")...)
	stop := errors.New("enough")
	n := 0
	_, err := db.Load(pods, func(cache.Record) error {
		n++
		return stop
	})
	if !errors.Is(err, stop) || errors.Is(err, cache.ErrCorrupt) || n != 1 {
		t.Errorf("Load() = %v after %d records", err, n)
	}
}

// TestLoadPanics: a panic of yield is not taken for damage.
func TestLoadPanics(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, threeBatch(5, "1")...)
	defer func() {
		if recover() == nil {
			t.Error("Load() swallowed the panic")
		}
	}()
	_, _ = db.Load(pods, func(cache.Record) error { panic("of yield") })
}

// TestGrowth: a second of changes after another does not make the file grow for
// ever.
func TestGrowth(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, bulkBatch(pods, 2000))
	rng := rand.New(rand.NewPCG(3, 4))
	first := db.Stats().FileBytes
	for range 100 {
		batch := cache.Batch{Saved: savedOf(pods, "2")}
		for range 50 {
			batch.Put = append(batch.Put, bulkRecord(rng, rng.IntN(2000)))
		}
		commit(t, db, batch)
	}
	if last := db.Stats().FileBytes; last > first*3/2 {
		t.Errorf("the file grew from %d to %d bytes", first, last)
	}
}
