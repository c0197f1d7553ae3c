package persist

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// ledger returns the entries of one, which must be in the order of their keys.
func ledger(t testing.TB, db *DB, name string) map[string]string {
	t.Helper()
	got, err := tryLedger(t, db, name)
	if err != nil {
		t.Fatalf("Ledger(%q) = %v", name, err)
	}
	return got
}

func tryLedger(t testing.TB, db *DB, name string) (map[string]string, error) {
	t.Helper()
	got := make(map[string]string)
	var last []byte
	err := db.Ledger(name, func(e cache.LedgerEntry) error {
		if last != nil && bytes.Compare(last, e.Key) >= 0 {
			t.Errorf("ledger %q: %q after %q", name, e.Key, last)
		}
		last = e.Key
		got[string(e.Key)] = string(e.Value)
		return nil
	})
	return got, err
}

// note commits a change of ledgers alone.
func note(t testing.TB, db *DB, changes ...cache.LedgerChange) {
	t.Helper()
	if err := db.Commit(nil, changes); err != nil {
		t.Fatalf("Commit() = %v", err)
	}
}

// ledgerOf is a change that puts all of entries.
func ledgerOf(name string, entries map[string]string) cache.LedgerChange {
	c := cache.LedgerChange{Name: name, Reset: true}
	for k, v := range entries {
		c.Put = append(c.Put, cache.LedgerEntry{Key: []byte(k), Value: []byte(v)})
	}
	return c
}

func formatNow(t testing.TB, db *DB) (version uint32) {
	t.Helper()
	err := db.view(func(tx *bbolt.Tx) (err error) {
		version, err = decodeFormat(tx.Bucket(rootBucket).Get(formatKey))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// ledgers is what a DB should hold of them.
type ledgers map[string]map[string]string

func (m ledgers) apply(c cache.LedgerChange) {
	if c.Reset {
		if delete(m, c.Name); len(c.Put) == 0 {
			return
		}
	}
	next := maps.Clone(m[c.Name])
	if next == nil {
		next = make(map[string]string)
	}
	for _, k := range c.Delete {
		if !c.Reset {
			delete(next, string(k))
		}
	}
	for _, e := range c.Put {
		next[string(e.Key)] = string(e.Value)
	}
	m[c.Name] = next
}

func (m ledgers) check(t *testing.T, db *DB) {
	t.Helper()
	names, err := db.Ledgers()
	if err != nil || !slices.Equal(names, slices.Sorted(maps.Keys(m))) {
		t.Fatalf("Ledgers() = %q, %v; want %q", names, err, slices.Sorted(maps.Keys(m)))
	}
	for _, name := range []string{"a", "b", "none"} {
		same(t, "ledger "+name, ledger(t, db, name), m[name])
	}
	if got, want := formatNow(t, db), formatOf(db.vault != nil, len(m) > 0); got != want {
		t.Errorf("format %d with %d ledgers, want %d", got, len(m), want)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestLedgersModel compares ledgers with maps under random changes, beside those of
// resources.
func TestLedgersModel(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := &generator{rng: rand.New(rand.NewPCG(uint64(seed), 33))}
			o := Options{Path: newPath(t), stageBytes: 20_000, compactBytes: 50_000}
			if seed%2 == 1 {
				o.Keys = keyring("a")
			}
			db := open(t, o)
			records, notes := make(model), make(ledgers)
			for step := range 150 {
				if g.rng.IntN(12) == 0 {
					db = reopen(t, db)
				}
				var batches []cache.Batch
				if g.rng.IntN(2) == 0 {
					batches = g.batches(records, fmt.Sprint(step))
				}
				changes := g.ledgers(fmt.Sprint(step))
				if err := db.Commit(batches, changes); err != nil {
					t.Fatal(err)
				}
				for _, b := range batches {
					records.apply(b)
				}
				for _, c := range changes {
					notes.apply(c)
				}
				if step%5 == 0 {
					records.check(t, db)
					notes.check(t, db)
				}
			}
			db = reopen(t, db)
			records.check(t, db)
			notes.check(t, db)
		})
	}
}

// ledgers are changes of two ledgers, now and then two of the same.
func (g *generator) ledgers(version string) (all []cache.LedgerChange) {
	key := func() []byte {
		k := fmt.Appendf(nil, "%d", g.rng.IntN(150))
		return bytes.Repeat(k, 1+g.rng.IntN(2)*g.rng.IntN(300))
	}
	for range g.rng.IntN(4) {
		c := cache.LedgerChange{Name: []string{"a", "b"}[g.rng.IntN(2)], Reset: g.rng.IntN(5) == 0}
		puts := g.rng.IntN(12)
		if g.rng.IntN(8) == 0 {
			puts *= 30
		}
		for range puts {
			c.Put = append(c.Put, cache.LedgerEntry{Key: key(), Value: []byte(strings.Repeat(version, g.rng.IntN(200)))})
		}
		for range g.rng.IntN(10) {
			c.Delete = append(c.Delete, key())
		}
		all = append(all, c)
	}
	return all
}

// TestLedgersReplaced: who commits nothing but ledgers learns that the file was replaced.
func TestLedgersReplaced(t *testing.T) { bothWays(t, testLedgersReplaced) }

func testLedgersReplaced(t *testing.T, keys *Keyring) {
	for name, meet := range map[string]func(*DB) error{
		"itself": func(*DB) error { return nil },
		"drop":   func(db *DB) error { return db.Drop(pods) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, Options{Path: newPath(t), Keys: keys})
			all := ledgersOf("1")
			if err := db.Commit(threeBatch(60, "1"), all.changes()); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(db.options.Path, 8192); err != nil {
				t.Fatal(err)
			}
			if err := meet(db); err != nil {
				t.Fatal(err)
			}
			if err := db.Commit(nil, nil); err != nil {
				t.Errorf("Commit() of nothing = %v", err)
			}
			more := cache.LedgerChange{Name: "first", Put: []cache.LedgerEntry{{Key: []byte("k"), Value: []byte("v")}}}
			if err := db.Commit(nil, []cache.LedgerChange{more}); !errors.Is(err, cache.ErrReplaced) {
				t.Fatalf("Commit() = %v, want ErrReplaced", err)
			}
			note(t, db, all.changes()...)
			db = reopen(t, db)
			all.same(t, db)
		})
	}
}

// TestLedgersRefused: nothing of a commit is saved if a change in it is refused.
func TestLedgersRefused(t *testing.T) {
	db := open(t, Options{Path: newPath(t), stageBytes: 50_000})
	want := ledgersOf("1")
	note(t, db, want.changes()...)
	good := cache.LedgerChange{Name: "first", Reset: true}
	for name, bad := range map[string]cache.LedgerChange{
		"no name":         {},
		"a long name":     {Name: strings.Repeat("n", 64)},
		"an empty key":    {Name: "second", Put: []cache.LedgerEntry{{Value: []byte("v")}}},
		"a long key":      {Name: "second", Put: []cache.LedgerEntry{{Key: make([]byte, maxLedgerKey+1)}}},
		"deletes nothing": {Name: "second", Delete: [][]byte{nil}},
	} {
		if err := db.Commit(threeBatch(3, "1"), []cache.LedgerChange{good, bad}); err == nil || !strings.Contains(err.Error(), "ledger") {
			t.Errorf("%s: Commit() = %v", name, err)
		}
	}
	if err := db.Ledger("", nil); err == nil {
		t.Error("a ledger without a name can be read")
	}
	// A batch that is refused after its records were staged takes the ledger's change with it.
	batch := cache.Batch{Saved: savedOf(pods, "2"), Reset: true, Put: bulk(500)}
	batch.Put[499].Dictionary = 77 // which is missing
	if err := db.Commit([]cache.Batch{batch}, []cache.LedgerChange{good}); err == nil {
		t.Error("Commit() worked without the dictionary")
	}
	for name, entries := range want {
		same(t, "ledger "+name, ledger(t, db, name), entries)
	}
	if all, err := db.Saved(); err != nil || len(all) != 0 {
		t.Errorf("half of a commit was saved: %v, %v", all, err)
	}
	longest := cache.LedgerChange{Name: strings.Repeat("n", 63), Put: []cache.LedgerEntry{{Key: make([]byte, maxLedgerKey)}}}
	note(t, db, longest)
	if got := ledger(t, db, longest.Name); len(got) != 1 {
		t.Errorf("%d entries", len(got))
	}
}

// TestLedgersOfFile: a file says how many it has, is compacted, and changes its key with
// them. An informerd that knows nothing of ledgers refuses it, and takes it again once
// there are none.
func TestLedgersOfFile(t *testing.T) { bothWays(t, testLedgersOfFile) }

func testLedgersOfFile(t *testing.T, keys *Keyring) {
	img := makeNoted(t, keys)
	path := newPath(t)
	writeFile(t, path, img.bytes)
	if _, _, err := Compact(path); err != nil {
		t.Fatal(err)
	}
	info, err := Info(path, keys)
	if err != nil || len(info.Ledgers) != 3 || info.Format != formatOf(keys != nil, true) || info.Format <= encryptedFormat {
		t.Fatalf("Info() = %+v, %v", info, err)
	}
	for _, l := range info.Ledgers {
		if l.Entries != 40 || l.Bytes < 40*30 || img.after[l.Name] == nil || l.Error != "" {
			t.Errorf("Info() = %+v", l)
		}
	}
	if report, err := Verify(path, keys); err != nil || report.Ledgers != 3 || report.Entries != 120 || len(report.Problems) > 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
	if keys != nil {
		keys = keyring("new", keys.first().name)
	}
	db := open(t, Options{Path: path, Keys: keys})
	img.check(t, db)
	img.after.same(t, db)
	commit(t, db, secret(tight, nil)) // which is rewritten, to be rid of what is taken away
	sweep(t, db)
	img.after.same(t, db)
	for name := range img.after {
		note(t, db, cache.LedgerChange{Name: name, Reset: true, Delete: [][]byte{[]byte("k")}})
	}
	make(ledgers).check(t, db)
	db = reopen(t, db)
	make(ledgers).check(t, db)
}

// same fails the test for any difference.
func (m ledgers) same(t *testing.T, db *DB) {
	t.Helper()
	names, err := db.Ledgers()
	if err != nil || !slices.Equal(names, slices.Sorted(maps.Keys(m))) {
		t.Errorf("Ledgers() = %q, %v", names, err)
	}
	for name, want := range m {
		same(t, "ledger "+name, ledger(t, db, name), want)
	}
}

// TestLedgerStops: the error of yield ends the reading and comes back as it is; its panic
// is not taken for damage.
func TestLedgerStops(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	note(t, db, ledgerOf("first", map[string]string{"a": "1", "b": "2"}))
	stop := errors.New("enough")
	if err := db.Ledger("first", func(cache.LedgerEntry) error { return stop }); err != stop { //nolint:errorlint // as it is
		t.Errorf("Ledger() = %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Ledger() swallowed the panic")
		}
	}()
	_ = db.Ledger("first", func(cache.LedgerEntry) error { panic("of yield") })
}

// TestLedgersStaged: a Reset too large for one transaction of bbolt is in its place with the
// batches, and leaves nothing behind when it is refused.
func TestLedgersStaged(t *testing.T) { bothWays(t, testLedgersStaged) }

func testLedgersStaged(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), stageBytes: 20_000, Keys: keys})
	large := func(version string) cache.LedgerChange {
		entries := make(map[string]string)
		for i := range 2000 {
			entries[fmt.Sprintf("key-%d", i)] = version
		}
		return ledgerOf("large", entries)
	}
	batch := threeBatch(40, "1")
	for _, version := range []string{"1", "2"} {
		if err := db.Commit(batch, []cache.LedgerChange{large(version)}); err != nil {
			t.Fatal(err)
		}
		if got := ledger(t, db, "large"); len(got) != 2000 || got["key-1234"] != version {
			t.Errorf("%d entries, key-1234 is %q", len(got), got["key-1234"])
		}
		db = reopen(t, db)
	}
	if n := db.Stats().Writes; n > 10 {
		t.Errorf("opening wrote %d times: something was left in the staging bucket", n)
	}
	batch[0].Put[0].Dictionary = 77 // which is missing
	for range 2 {
		if err := db.Commit(batch, []cache.LedgerChange{large("3")}); err == nil {
			t.Fatal("Commit() worked without the dictionary")
		}
		if got := ledger(t, db, "large"); len(got) != 2000 || got["key-1234"] != "2" {
			t.Errorf("%d entries, key-1234 is %q", len(got), got["key-1234"])
		}
		db = reopen(t, db)
	}
	// Of two changes of one ledger none is staged: the second is added to the first.
	more := cache.LedgerChange{Name: "large", Put: []cache.LedgerEntry{{Key: []byte("key-1234"), Value: []byte("more")}}}
	note(t, db, large("4"), more)
	if got := ledger(t, db, "large"); len(got) != 2000 || got["key-1234"] != "more" || got["key-1"] != "4" {
		t.Errorf("%d entries, key-1234 is %q", len(got), got["key-1234"])
	}
}
