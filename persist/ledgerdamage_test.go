package persist

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// noted is the image of a file with ledgers, after two commits of everything.
type noted struct {
	image
	before, after ledgers
}

func ledgersOf(version string) ledgers {
	all := make(ledgers)
	for _, name := range []string{"first", "second", "third"} {
		all[name] = make(map[string]string)
		for i := range 40 {
			all[name][fmt.Sprintf("%s-key-%03d", name, i)] = strings.Repeat(version, 10+i)
		}
	}
	return all
}

func (m ledgers) changes() (all []cache.LedgerChange) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, ledgerOf(name, m[name]))
	}
	return all
}

func makeNoted(t *testing.T, keys *Keyring) noted {
	t.Helper()
	db := open(t, Options{Path: newPath(t), Keys: keys})
	img := noted{image: image{keys: keys}, before: ledgersOf("777"), after: ledgersOf("888")}
	if err := db.Commit(threeBatch(12, "111"), img.before.changes()); err != nil {
		t.Fatal(err)
	}
	img.image.before = loadThree(t, db)
	if err := db.Commit(threeBatch(12, "222"), img.after.changes()); err != nil {
		t.Fatal(err)
	}
	img.image.after = loadThree(t, db)
	closeDB(t, db)
	img.bytes = must(os.ReadFile(db.options.Path))
	return img
}

// check fails the test for a ledger that was never committed, or not with the resources,
// and returns how many could be read. None may be taken for one that never was unless
// nothing is left of the whole file.
func (img noted) check(t *testing.T, db *DB) (sound int) {
	t.Helper()
	resources := img.intact(t, db)
	pod, podErr := tryLoad(db, pods)
	for name := range img.after {
		got, err := tryLedger(t, db, name)
		older := maps.Equal(got, img.before[name])
		switch {
		case errors.Is(err, cache.ErrCorrupt):
		case err != nil:
			t.Errorf("Ledger(%q) = %v", name, err)
		case older || maps.Equal(got, img.after[name]):
			sound++
			if podErr == nil && older != equal(pod, img.image.before[pods]) {
				t.Errorf("ledger %q is of another commit than the resources", name)
			}
		case len(got) > 0:
			t.Errorf("Ledger(%q) returned what was never committed", name)
		case resources > 0:
			t.Errorf("ledger %q is lost, and nothing says so", name)
		}
	}
	return sound
}

// TestLedgerBitFlips flips one bit at a time.
func TestLedgerBitFlips(t *testing.T) { bothWays(t, testLedgerBitFlips) }

func testLedgerBitFlips(t *testing.T, keys *Keyring) {
	img := makeNoted(t, keys)
	rng := rand.New(rand.NewPCG(15, 16))
	rounds, sound := 500, 0
	if keys != nil {
		rounds = 150
	}
	if testing.Short() {
		rounds = 60
	}
	pages := used(img.bytes) / 4096
	for i := range rounds {
		flipped := bytes.Clone(img.bytes)
		at, bit := rng.IntN(pages)*4096+rng.IntN(4096), byte(1)<<rng.IntN(8)
		if i%2 == 0 { // the headers of page and elements
			at = at/4096*4096 + rng.IntN(80)
		}
		flipped[at] ^= bit
		sound += img.openDamaged(t, flipped, i%8 < 2)
		if t.Failed() {
			t.Fatalf("with bit %#x of byte %d of page %d flipped", bit, at%4096, at/4096)
		}
	}
	t.Logf("%d of %d ledgers survived %d flips", sound, rounds*3, rounds)
	if sound < rounds*3/2 {
		t.Error("too few ledgers survived")
	}
}

// TestLedgerTruncations cuts the file at any byte.
func TestLedgerTruncations(t *testing.T) {
	img := makeNoted(t, nil)
	rng := rand.New(rand.NewPCG(17, 18))
	for i := range 100 {
		size := rng.IntN(used(img.bytes))
		if i%4 == 0 {
			size = size / 4096 * 4096
		}
		if img.openDamaged(t, img.bytes[:size], i%8 < 2); t.Failed() {
			t.Fatalf("of %d bytes, %d are left", used(img.bytes), size)
		}
	}
}

// openDamaged opens a damaged file, again where it was replaced, and reads what is whole
// in it; with thorough, it is then mended.
func (img noted) openDamaged(t *testing.T, file []byte, thorough bool) (sound int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "informerd.db")
	writeFile(t, path, file)
	if _, err := Verify(path, img.keys); err != nil && !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, ErrNewerFormat) && !errors.Is(err, ErrPlain) {
		t.Errorf("Verify() = %v", err)
	}
	db, err := Open(Options{Path: path, NoSync: true, Keys: img.keys})
	if err != nil {
		t.Errorf("Open() = %v", err)
		return 0
	}
	sound = img.check(t, db)
	if thorough {
		fresh := ledgersOf("999")
		err := db.Commit(nil, fresh.changes())
		if errors.Is(err, ErrReplaced) {
			err = db.Commit(nil, fresh.changes())
		}
		if err != nil {
			t.Errorf("Commit() = %v", err)
		}
		for name, want := range fresh {
			same(t, "ledger "+name, ledger(t, db, name), want)
		}
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if thorough {
		checkFile(t, path)
	}
	return sound
}

// TestDamageStaysInOneLedger: others, and all resources, are as they were. The damaged one
// is so until it is saved anew, also by the next process: one that is missing would be
// taken for one that never was.
func TestDamageStaysInOneLedger(t *testing.T) { bothWays(t, testDamageStaysInOneLedger) }

func testDamageStaysInOneLedger(t *testing.T, keys *Keyring) {
	img := makeNoted(t, keys)
	for what, damage := range map[string]func(page []byte){
		"value":      func(page []byte) { page[len(page)-600] ^= 1 },
		"page flags": func(page []byte) { page[8] ^= 1 },
		"page id":    func(page []byte) { page[0] ^= 1 },
		"all of it":  func(page []byte) { clear(page) },
	} {
		t.Run(what, func(t *testing.T) {
			path := newPath(t)
			file := bytes.Clone(img.bytes)
			damage(entryPage(t, path, file, keys, "second"))
			writeFile(t, path, file)
			if report, err := Verify(path, keys); err != nil || len(report.Problems) == 0 || !mentions(report, "ledger") {
				t.Errorf("Verify() = %+v, %v", report, err)
			}
			db := open(t, Options{Path: path, Keys: keys})
			for range 2 {
				if _, err := tryLedger(t, db, "second"); !errors.Is(err, cache.ErrCorrupt) {
					t.Errorf("Ledger() = %v, want ErrCorrupt", err)
				}
				same(t, "first", ledger(t, db, "first"), img.after["first"])
				same(t, "third", ledger(t, db, "third"), img.after["third"])
				same(t, "resources", loadThree(t, db), img.image.after)
				db = reopen(t, db)
			}
			if what != "value" { // of an entry that is not looked at nothing is known
				more := cache.LedgerChange{Name: "second", Put: []cache.LedgerEntry{{Key: []byte("k")}}}
				if err := db.Commit(nil, []cache.LedgerChange{more}); !errors.Is(err, cache.ErrCorrupt) {
					t.Errorf("Commit() = %v, want ErrCorrupt", err)
				}
			}
			note(t, db, ledgerOf("second", img.before["second"]))
			same(t, "second", ledger(t, db, "second"), img.before["second"])
			db = reopen(t, db)
			same(t, "second", ledger(t, db, "second"), img.before["second"])
		})
	}
}

func mentions(r *Report, word string) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.Contains(p.String(), word) })
}

// entryPage returns a page of the last commit that holds entries of a ledger.
func entryPage(t *testing.T, path string, file []byte, keys *Keyring, name string) []byte {
	t.Helper()
	writeFile(t, path, file)
	db, err := Open(Options{Path: path, Keys: keys, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var key []byte
	err = db.view(func(tx *bbolt.Tx) error {
		b := bucketAt(tx, rootBucket, ledgersBucket, db.vault.ledgerName(name), entriesBucket)
		key, _ = b.Cursor().First()
		key = bytes.Clone(key)
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for page := 8192; page < len(file); page += 4096 {
		p := file[page : page+4096]
		if p[8] == leafFlag && bytes.Contains(p, key) && livePageOf(t, path, page/4096) {
			return p
		}
	}
	t.Fatalf("no page holds %q", key)
	return nil
}

// livePageOf reports whether a page is in use.
func livePageOf(t *testing.T, path string, page int) (live bool) {
	t.Helper()
	b, err := bbolt.Open(path, private, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.View(func(tx *bbolt.Tx) error {
		info, err := tx.Page(page)
		live = err == nil && info.Type == "leaf"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// TestAllLedgersDamaged: nobody knows which there were, so each is damaged until it is
// saved anew. Resources are as they were.
func TestAllLedgersDamaged(t *testing.T) {
	img := makeNoted(t, nil)
	path := newPath(t)
	writeFile(t, path, img.bytes)
	b := must(bbolt.Open(path, private, &bbolt.Options{ReadOnly: true}))
	var root uint64
	_ = b.View(func(tx *bbolt.Tx) error {
		root = uint64(bucketAt(tx, rootBucket, ledgersBucket).Root())
		return nil
	})
	b.Close()
	file := bytes.Clone(img.bytes)
	file[root*4096+8] ^= 1
	writeFile(t, path, file)
	if report, err := Verify(path, nil); err != nil || !mentions(report, "all ledgers") {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
	if info, err := Info(path, nil); err != nil || len(info.Ledgers) != 1 || info.Ledgers[0].Error == "" {
		t.Errorf("Info() = %+v, %v", info, err)
	}
	for _, readOnly := range []bool{true, false} {
		db := open(t, Options{Path: path, ReadOnly: readOnly})
		if names, err := db.Ledgers(); err != nil || len(names) != 0 {
			t.Errorf("Ledgers() = %q, %v", names, err)
		}
		for _, name := range []string{"first", "whatever"} {
			if _, err := tryLedger(t, db, name); !errors.Is(err, cache.ErrCorrupt) {
				t.Errorf("Ledger(%q) = %v, want ErrCorrupt", name, err)
			}
		}
		same(t, "resources", loadThree(t, db), img.image.after)
		if readOnly {
			closeDB(t, db)
			continue
		}
		note(t, db, ledgerOf("first", img.after["first"]))
		same(t, "first", ledger(t, db, "first"), img.after["first"])
		if _, err := tryLedger(t, db, "second"); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Ledger() = %v, want ErrCorrupt", err)
		}
	}
}

// TestLedgerNameDamaged: a ledger that is there under another name is not one that never
// was.
func TestLedgerNameDamaged(t *testing.T) {
	img := makeNoted(t, nil)
	for _, name := range []string{"ledgers", "second"} {
		file := bytes.Clone(img.bytes)
		for at := 0; at < len(file); at++ {
			// Keys of entries begin with the name, too.
			if bytes.HasPrefix(file[at:], []byte(name)) && file[at+len(name)] != '-' {
				file[at] ^= 1
			}
		}
		// The meta of the ledger says its name behind the length of it.
		file = bytes.ReplaceAll(file, []byte("\x06recond"), []byte("\x06second"))
		path := newPath(t)
		writeFile(t, path, file)
		db := open(t, Options{Path: path})
		if got, err := tryLedger(t, db, "second"); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("%s: Ledger() = %d entries, %v; want ErrCorrupt", name, len(got), err)
		}
		same(t, "resources", loadThree(t, db), img.image.after)
	}
}

// TestLedgersEncrypted: the file says nothing of them, and nobody without the key makes
// them say anything that they did not say as a whole.
func TestLedgersEncrypted(t *testing.T) {
	img := makeNoted(t, keyring("a"))
	for _, word := range []string{"first", "key-0", "8888"} {
		if bytes.Contains(img.bytes, []byte(word)) {
			t.Errorf("%q is in the file", word)
		}
	}
	bucket := func(tx *bbolt.Tx, v *vault, name string) *bbolt.Bucket {
		return bucketAt(tx, rootBucket, ledgersBucket, v.ledgerName(name))
	}
	for name, tamper := range map[string]func(tx *bbolt.Tx, v *vault) error{
		"altered": func(tx *bbolt.Tx, v *vault) error {
			b := bucket(tx, v, "second").Bucket(entriesBucket)
			k, s := contents(b)
			s[3][len(s[3])-20] ^= 1
			return b.Put(k[3], s[3])
		},
		"swapped": func(tx *bbolt.Tx, v *vault) error {
			b := bucket(tx, v, "second").Bucket(entriesBucket)
			k, s := contents(b)
			return errors.Join(b.Put(k[3], s[4]), b.Put(k[4], s[3]))
		},
		"left out": func(tx *bbolt.Tx, v *vault) error {
			b := bucket(tx, v, "second").Bucket(entriesBucket)
			k, _ := contents(b)
			return b.Delete(k[3])
		},
		"meta of another": func(tx *bbolt.Tx, v *vault) error {
			return bucket(tx, v, "second").Put(metaKey, bytes.Clone(bucket(tx, v, "first").Get(metaKey)))
		},
		"entry of another": func(tx *bbolt.Tx, v *vault) error {
			k, s := contents(bucket(tx, v, "first").Bucket(entriesBucket))
			return bucket(tx, v, "second").Bucket(entriesBucket).Put(k[0], s[0])
		},
		"meta missing": func(tx *bbolt.Tx, v *vault) error { return bucket(tx, v, "second").Delete(metaKey) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			writeFile(t, path, img.bytes)
			v := must(img.keys.unlock(lockOf(t, img.bytes)))
			b := must(bbolt.Open(path, private, nil))
			err := b.Update(func(tx *bbolt.Tx) error { return tamper(tx, v) })
			if err := errors.Join(err, b.Close()); err != nil {
				t.Fatal(err)
			}
			if report, err := Verify(path, img.keys); err != nil || !mentions(report, "ledger") {
				t.Errorf("Verify() = %+v, %v", report, err)
			}
			// It is so also after the file was encrypted with another key.
			for _, keys := range []*Keyring{img.keys, keyring("b", "a"), keyring("b")} {
				if keys.file = "keys"; strings.HasPrefix(name, "meta") && len(keys.keys) == 1 && keys.first().name == "b" {
					break // what cannot be named is said to be damaged once
				}
				db := open(t, Options{Path: path, Keys: keys})
				if got, err := tryLedger(t, db, "second"); !errors.Is(err, cache.ErrCorrupt) {
					t.Errorf("Ledger() = %d entries, %v; want ErrCorrupt", len(got), err)
				}
				same(t, "first", ledger(t, db, "first"), img.after["first"])
				same(t, "third", ledger(t, db, "third"), img.after["third"])
				closeDB(t, db)
			}
		})
	}
}
