package persist

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

var three = []cache.Resource{pods, deployments, eastPods}

// threeBatch holds n records of each of three resources, all saying version.
func threeBatch(n int, version string) []cache.Batch {
	var batches []cache.Batch
	for _, r := range three {
		b := cache.Batch{Saved: savedOf(r, version), Reset: true}
		b.Saved.Dictionaries = map[uint32][]byte{1: bytes.Repeat([]byte("d"), 5000)}
		for i := range n {
			rec := record("ns", fmt.Sprintf("%s-%04d", r.GVR.Resource, i), version)
			rec.Data = bytes.Repeat([]byte(version), 300)
			rec.Dictionary = 1
			b.Put = append(b.Put, rec)
		}
		batches = append(batches, b)
	}
	return batches
}

// image is the file after two commits, and what each held.
type image struct {
	keys   *Keyring // it is encrypted with, if it is
	bytes  []byte
	before map[cache.Resource]snapshot
	after  map[cache.Resource]snapshot
}

func makeImage(t testing.TB, n int, keys *Keyring) image {
	t.Helper()
	db := open(t, Options{Path: newPath(t), Keys: keys})
	img := image{keys: keys}
	commit(t, db, threeBatch(n, "111")...)
	img.before = loadThree(t, db)
	commit(t, db, threeBatch(n, "222")...)
	img.after = loadThree(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if img.bytes, err = os.ReadFile(db.options.Path); err != nil {
		t.Fatal(err)
	}
	return img
}

func loadThree(t testing.TB, db *DB) map[cache.Resource]snapshot {
	t.Helper()
	all := make(map[cache.Resource]snapshot)
	for _, r := range three {
		all[r] = load(t, db, r)
	}
	return all
}

// used is how much of the file holds pages; what follows is room to grow.
func used(b []byte) int { return len(bytes.TrimRight(b, "\x00"))/4096*4096 + 4096 }

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// intact fails the test for anything but what was committed, ErrCorrupt or
// ErrNoSnapshot, and returns how many resources could be loaded.
func (img image) intact(t *testing.T, db *DB) (n int) {
	t.Helper()
	for _, r := range three {
		got, err := tryLoad(db, r)
		switch {
		case err == nil && (equal(got, img.after[r]) || equal(got, img.before[r])):
			n++
		case err == nil:
			t.Errorf("%s: Load() returned what was never committed", r)
		case !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, cache.ErrNoSnapshot):
			t.Errorf("%s: Load() = %v", r, err)
		}
	}
	return n
}

// heals drops and saves everything anew, as informerd does after damage.
func heals(t *testing.T, db *DB) {
	t.Helper()
	for _, r := range three {
		if err := db.Drop(r); err != nil {
			t.Errorf("Drop(%s) = %v", r, err)
		}
	}
	if err := db.Commit(threeBatch(3, "333"), nil); errors.Is(err, ErrReplaced) {
		commit(t, db, threeBatch(3, "333")...) // it has been said
	} else if err != nil {
		t.Fatal(err)
	}
	for _, r := range three {
		if got := load(t, db, r); len(got.Records) != 3 || got.Records[0].ResourceVersion != "333" {
			t.Errorf("%s: loaded %d records", r, len(got.Records))
		}
	}
}

func TestDamagedFile(t *testing.T) {
	img := makeImage(t, 60, nil)
	for name, damage := range map[string]func([]byte) []byte{
		"half":           func(b []byte) []byte { return b[:used(b)/2] },
		"one page":       func(b []byte) []byte { return b[:4096] },
		"two pages":      func(b []byte) []byte { return b[:8192] },
		"ten bytes":      func(b []byte) []byte { return b[:10] },
		"page cut short": func(b []byte) []byte { return b[:used(b)-100] },
		"zeros":          func(b []byte) []byte { clear(b); return b },
		"zero metas":     func(b []byte) []byte { clear(b[:8192]); return b },
		"zero but metas": func(b []byte) []byte { clear(b[8192:]); return b },
		"text":           func([]byte) []byte { return bytes.Repeat([]byte("not a database\n"), 5000) },
		"noise": func(b []byte) []byte {
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			damaged := damage(bytes.Clone(img.bytes))
			writeFile(t, path, damaged)
			writeFile(t, path+DamagedSuffix, []byte("an older one"))
			db := open(t, Options{Path: path})
			if n := img.intact(t, db); n != 0 {
				t.Errorf("%d resources loaded", n)
			}
			if aside, err := os.ReadFile(path + DamagedSuffix); err != nil || !bytes.Equal(aside, damaged) {
				t.Errorf("damaged file was not kept: %v", err)
			}
			heals(t, db)
		})
	}
}

// TestBitFlips flips one bit at a time: in the headers of pages, and anywhere.
func TestBitFlips(t *testing.T) { bothWays(t, testBitFlips) }

func testBitFlips(t *testing.T, keys *Keyring) {
	img := makeImage(t, 30, keys)
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 6))
	rounds := 1000
	if keys != nil {
		rounds = 300 // the walk over the pages is the same
	}
	if testing.Short() {
		rounds = 100
	}
	pages, loaded := used(img.bytes)/4096, 0
	for i := range rounds {
		at, bit := rng.IntN(pages)*4096+rng.IntN(4096), byte(1)<<rng.IntN(8)
		if i%2 == 0 { // the headers of page and elements
			at = at/4096*4096 + rng.IntN(80)
		}
		flipped := bytes.Clone(img.bytes)
		flipped[at] ^= bit
		path := filepath.Join(dir, fmt.Sprint(i))
		writeFile(t, path, flipped)
		loaded += openDamaged(t, img, path, i%8 < 2)
		if t.Failed() {
			t.Fatalf("with bit %#x of byte %d of page %d flipped", bit, at%4096, at/4096)
		}
		os.Remove(path)
		os.Remove(path + DamagedSuffix)
	}
	t.Logf("%d of %d resources survived %d flips", loaded, rounds*len(three), rounds)
	if loaded < rounds*len(three)/2 {
		t.Error("too few resources survived")
	}
}

// TestTruncations cuts the file at any byte: every so often at the end of a page,
// as a disk that loses its last writes does, and within the headers too.
func TestTruncations(t *testing.T) {
	img := makeImage(t, 30, nil)
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(7, 8))
	rounds, loaded := 200, 0
	for i := range rounds {
		size := rng.IntN(used(img.bytes))
		switch i % 4 {
		case 0:
			size = size / 4096 * 4096
		case 1:
			size %= 3 * 4096
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		writeFile(t, path, img.bytes[:size])
		loaded += openDamaged(t, img, path, i%8 < 2)
		if t.Failed() {
			t.Fatalf("of %d bytes, %d are left", used(img.bytes), size)
		}
		os.Remove(path)
		os.Remove(path + DamagedSuffix)
	}
	t.Logf("%d of %d resources survived %d truncations", loaded, rounds*len(three), rounds)
}

// openDamaged opens a damaged file and loads what is whole in it; with thorough, it
// is then mended. Everything loaded must be what was committed.
func openDamaged(t *testing.T, img image, path string, thorough bool) (loaded int) {
	t.Helper()
	if _, err := Verify(path, img.keys); err != nil && !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
		t.Errorf("Verify() = %v", err)
	}
	db, err := Open(Options{Path: path, NoSync: true, Keys: img.keys})
	if err != nil {
		t.Errorf("Open() = %v", err)
		return 0
	}
	if _, err := db.Saved(); err != nil {
		t.Errorf("Saved() = %v", err)
	}
	loaded = img.intact(t, db)
	if thorough {
		heals(t, db)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if thorough {
		checkFile(t, path)
	}
	return loaded
}

// TestVerifyFindsFlips: no flipped bit in a page that is in use goes unnoticed.
func TestVerifyFindsFlips(t *testing.T) {
	img := makeImage(t, 20, nil)
	path := newPath(t)
	// Within the data of one record, which nothing but checksums covers.
	at := bytes.Index(img.bytes, bytes.Repeat([]byte("222"), 50))
	writeFile(t, path, img.bytes)
	if report, err := Verify(path, nil); err != nil || len(report.Problems) != 0 || report.Objects != 60 {
		t.Fatalf("Verify() = %+v, %v", report, err)
	}
	img.bytes[at+200] ^= 4
	writeFile(t, path, img.bytes)
	report, err := Verify(path, nil)
	if err != nil || len(report.Problems) != 1 || report.Problems[0].Key == nil {
		t.Fatalf("Verify() = %+v, %v", report, err)
	}
	t.Log(report.Problems[0])
}

// TestDamageStaysInOneResource damages the values of one resource and then its
// pages: the others load, and the damaged one heals.
func TestDamageStaysInOneResource(t *testing.T) {
	img := makeImage(t, 60, nil)
	name := []byte("ns\x00deployments-0030")
	for what, damage := range map[string]func([]byte){
		"value":       func(page []byte) { page[bytes.Index(page, []byte("222222"))+100] ^= 1 },
		"page id":     func(page []byte) { page[0] ^= 1 },
		"page flags":  func(page []byte) { page[8] ^= 1 },
		"key":         func(page []byte) { page[bytes.Index(page, name)] ^= 0x10 },
		"whole page":  func(page []byte) { clear(page) },
		"count":       func(page []byte) { page[10]-- },
		"value size":  func(page []byte) { page[28] ^= 1 },
		"bucket flag": func(page []byte) { page[16] ^= 1 },
	} {
		t.Run(what, func(t *testing.T) {
			path := newPath(t)
			b := bytes.Clone(img.bytes)
			damage(livePage(t, b, name))
			writeFile(t, path, b)
			db := open(t, Options{Path: path})
			for _, r := range three {
				got, err := tryLoad(db, r)
				if r == deployments && !errors.Is(err, cache.ErrCorrupt) {
					t.Errorf("Load(%s) = %v, want ErrCorrupt", r, err)
				}
				if r != deployments && (err != nil || !equal(got, img.after[r])) {
					t.Errorf("Load(%s) = %v", r, err)
				}
			}
			heals(t, db)
		})
	}
}

// livePage returns the page of the last commit that holds key in a leaf.
func livePage(t *testing.T, file, key []byte) []byte {
	t.Helper()
	for page := 8192; page < len(file); page += 4096 {
		p := file[page : page+4096]
		if p[8] == leafFlag && bytes.Contains(p, append(bytes.Clone(key), 1)) && bytes.Contains(p, []byte("222222")) {
			return p
		}
	}
	t.Fatalf("no page holds %q", key)
	return nil
}

func TestEmptyFile(t *testing.T) {
	path := newPath(t)
	writeFile(t, path, nil)
	heals(t, open(t, Options{Path: path}))
}

func TestDirectory(t *testing.T) {
	if db, err := Open(Options{Path: t.TempDir()}); err == nil {
		db.Close()
		t.Error("Open() of a directory worked")
	}
}

// TestNotTouched opens files that are sound and not for us to change.
func TestNotTouched(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(*bbolt.Tx) error
		want error
	}{
		"another program's": {func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("etcd"))
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), []byte("v"))
		}, ErrForeign},
		"newer": {func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(rootBucket)
			if err != nil {
				return err
			}
			return b.Put(formatKey, encodeFormat(formatVersion+1))
		}, ErrNewerFormat},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			b, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(b.Update(c.fill), b.Close()); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for _, o := range []Options{{Path: path}, {Path: path, ReadOnly: true}} {
				if _, err := Open(o); !errors.Is(err, c.want) {
					t.Errorf("Open() = %v, want %v", err, c.want)
				}
			}
			if _, err := Verify(path, nil); !errors.Is(err, c.want) {
				t.Errorf("Verify() = %v", err)
			}
			if _, _, err := Compact(path); !errors.Is(err, c.want) {
				t.Errorf("Compact() = %v", err)
			}
			after, _ := os.ReadFile(path)
			if !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if _, err := os.Stat(path + DamagedSuffix); err == nil {
				t.Error("the file was moved aside")
			}
		})
	}
}

func TestLocked(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	o := Options{Path: db.options.Path, LockTimeout: time.Millisecond}
	_, err := Open(o)
	if !errors.Is(err, ErrLocked) || !bytes.Contains([]byte(err.Error()), []byte(o.Path)) {
		t.Errorf("Open() = %v, want ErrLocked and the path", err)
	}
	if _, err := Info(o.Path, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Info() = %v, want ErrLocked", err)
	}
}

// readOnlyDisk opens files as a read-only file system does.
func readOnlyDisk(name string, flag int, mode os.FileMode) (*os.File, error) {
	if flag&(os.O_RDWR|os.O_WRONLY|os.O_CREATE) != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	return os.OpenFile(name, flag, mode)
}

func TestReadOnly(t *testing.T) {
	img := makeImage(t, 5, nil)
	path := newPath(t)
	if _, err := Open(Options{Path: path, OpenFile: readOnlyDisk}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Open() of no file = %v, want ErrReadOnly", err)
	}
	writeFile(t, path, img.bytes)
	if _, err := Open(Options{Path: path, OpenFile: readOnlyDisk}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Open() = %v, want ErrReadOnly", err)
	}
	db := open(t, Options{Path: path, OpenFile: readOnlyDisk, ReadOnly: true})
	if !equal(loadThree(t, db), img.after) {
		t.Error("Load() differs")
	}
	if err := db.Commit(threeBatch(1, "9"), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Commit() = %v, want ErrReadOnly", err)
	}
	if err := db.Drop(pods); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Drop() = %v, want ErrReadOnly", err)
	}
}

// TestFileCutWhileOpen takes the pages away from under the mapping: reading them
// is a fault that would end the process.
func TestFileCutWhileOpen(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, threeBatch(60, "1")...)
	if err := os.Truncate(db.options.Path, 8192); err != nil {
		t.Fatal(err)
	}
	if _, err := tryLoad(db, pods); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Load() = %v, want ErrCorrupt", err)
	}
	if _, err := db.Saved(); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Saved() = %v, want ErrCorrupt", err)
	}
	change := cache.Batch{Saved: savedOf(pods, "2"), Put: []cache.Record{record("ns", "a", "2")}}
	if err := db.Commit([]cache.Batch{change}, nil); !errors.Is(err, ErrReplaced) {
		t.Errorf("Commit() = %v, want ErrReplaced", err)
	}
	// What is saved now would look complete, and is one record.
	if err := db.Commit([]cache.Batch{change}, nil); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Commit() = %v, want ErrNoSnapshot", err)
	}
	heals(t, db)
}

// TestReplacedIsTold: who commits learns that the file was replaced, though it was
// for another one that writes.
func TestReplacedIsTold(t *testing.T) {
	for name, write := range map[string]func(*DB) error{
		"drop":     func(db *DB) error { return db.Drop(pods) },
		"document": func(db *DB) error { return db.SaveDocument(document("", "/version", ""), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, Options{Path: newPath(t)})
			commit(t, db, threeBatch(60, "1")...)
			if err := os.Truncate(db.options.Path, 8192); err != nil {
				t.Fatal(err)
			}
			if err := write(db); err != nil {
				t.Fatal(err)
			}
			all := threeBatch(3, "333")
			if err := db.Commit(all[:1], nil); !errors.Is(err, cache.ErrReplaced) {
				t.Errorf("Commit() = %v, want ErrReplaced", err)
			}
			commit(t, db, all...)
		})
	}
}

func TestDropOnCutFile(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	commit(t, db, threeBatch(60, "1")...)
	if err := os.Truncate(db.options.Path, 8192); err != nil {
		t.Fatal(err)
	}
	heals(t, db)
}

// TestCommitLostDictionary: records whose dictionary is not saved are of no use, now
// or later. That is told like other losses, after which everything is saved anew.
func TestCommitLostDictionary(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	all := threeBatch(3, "111")
	commit(t, db, all...)
	before := load(t, db, pods)
	rec := record("ns", "new", "222")
	rec.Dictionary = 2
	err := db.Commit([]cache.Batch{{Saved: savedOf(pods, "222"), Put: []cache.Record{rec}}}, nil)
	if !errors.Is(err, cache.ErrCorrupt) {
		t.Fatalf("Commit() = %v, want ErrCorrupt", err)
	}
	same(t, "the snapshot after a refused commit", load(t, db, pods), before)
	again := threeBatch(3, "222")[0]
	again.Saved.Dictionaries[2] = []byte("another")
	again.Put = append(again.Put, rec)
	commit(t, db, again)
	if got := load(t, db, pods); len(got.Records) != 4 {
		t.Errorf("%d records after a reset, want 4", len(got.Records))
	}
}
