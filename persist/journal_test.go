package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// killed is the folder of an open DB as a kill -9 would leave it: the path of the same file
// in a copy.
func killed(t testing.TB, db *DB) string {
	t.Helper()
	to := t.TempDir()
	from := filepath.Dir(db.options.Path)
	for _, entry := range must(os.ReadDir(from)) {
		if !entry.IsDir() {
			data := must(os.ReadFile(filepath.Join(from, entry.Name())))
			if err := os.WriteFile(filepath.Join(to, entry.Name()), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(to, filepath.Base(db.options.Path))
}

func jot(t testing.TB, db *DB, changes ...cache.LedgerChange) {
	t.Helper()
	if err := db.Note(changes); err != nil {
		t.Fatalf("Note() = %v", err)
	}
}

func put(name, key, value string) cache.LedgerChange {
	return cache.LedgerChange{Name: name, Put: []cache.LedgerEntry{{Key: []byte(key), Value: []byte(value)}}}
}

func journalsOf(t testing.TB, path string) (all []string) {
	t.Helper()
	for _, n := range must(journalNumbers(path)) {
		all = append(all, fmt.Sprint(path, JournalSuffix, n))
	}
	return all
}

// TestNoted: what was noted is there after a kill, after a commit of something else, and after
// an orderly end, which leaves no journal.
func TestNoted(t *testing.T) { bothWays(t, testNoted) }

func testNoted(t *testing.T, keys *Keyring) {
	db := open(t, Options{Path: newPath(t), Keys: keys})
	jot(t, db, put("shop", "a", "1")) // the first is committed: there is no journal yet
	writes := db.Stats().Writes
	jot(t, db, put("shop", "b", "2"))
	jot(t, db, cache.LedgerChange{Name: "shop", Delete: [][]byte{[]byte("a")}}, put("bank", "c", ""))
	if now := db.Stats().Writes; now != writes {
		t.Errorf("the snapshot file was written %d times: nothing was noted beside it", now-writes)
	}
	want := map[string]map[string]string{"shop": {"b": "2"}, "bank": {"c": ""}}
	check := func(db *DB) {
		t.Helper()
		for name, entries := range want {
			same(t, name, ledger(t, db, name), entries)
		}
	}
	path := killed(t, db)
	if info := must(Info(path, keys)); info.Journal == nil || info.Journal.Ledgers != 2 || info.Journal.Entries != 3 || info.Journal.Error != "" {
		t.Errorf("Info() says of the journal %+v", info.Journal)
	}
	if report := must(Verify(path, keys)); len(report.Problems) > 0 {
		t.Errorf("Verify() finds %v", report.Problems)
	}
	if _, err := tryLedger(t, open(t, Options{Path: killed(t, db), Keys: keys, ReadOnly: true}), "shop"); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("what only reads the file takes the ledger for whole: %v", err)
	}
	if _, _, err := Compact(path); err != nil {
		t.Error(err)
	}
	again := open(t, Options{Path: path, Keys: keys})
	check(again)
	check(open(t, Options{Path: killed(t, again), Keys: keys}))
	db.mustCommit(t)
	jot(t, db, put("shop", "b", "3"))
	want["shop"]["b"] = "3"
	check(open(t, Options{Path: killed(t, db), Keys: keys}))
	check(db)
	path = db.options.Path
	closeDB(t, db)
	if left := journalsOf(t, path); left != nil {
		t.Errorf("%q are left of a journal of which the file holds everything", left)
	}
	check(open(t, Options{Path: path, Keys: keys}))
}

// mustCommit saves a resource.
func (db *DB) mustCommit(t testing.TB) {
	t.Helper()
	if err := db.Commit([]cache.Batch{{Saved: cache.Saved{Spec: cache.Spec{Resource: pods}}, Reset: true}}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestNoteModel: random changes, noted and committed, failures, kills and restarts, against a
// plain model.
func TestNoteModel(t *testing.T) { bothWays(t, testNoteModel) }

func testNoteModel(t *testing.T, keys *Keyring) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	rounds := 600
	if testing.Short() {
		rounds = 150
	}
	refused := false
	o := Options{Path: newPath(t), Keys: keys, NoSync: true, OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		if refused && strings.Contains(name, JournalSuffix) {
			return nil, errors.New("no room for a journal")
		}
		return os.OpenFile(name, flag, mode)
	}}
	db := must(Open(o))
	defer func() { closeDB(t, db) }()
	truth := ledgers{}
	for range rounds {
		switch n := rng.IntN(20); {
		case n < 12:
			c := randomChange(rng)
			jot(t, db, c)
			truth.apply(c)
		case n < 14:
			c := randomChange(rng)
			note(t, db, c)
			truth.apply(c)
		case n < 15:
			db.mustCommit(t)
		case n < 16:
			refused = !refused
		case n < 17:
			truth.check(t, db)
		case n < 18:
			closeDB(t, db)
			db = must(Open(o))
		default:
			o.Path = killed(t, db)
			closeDB(t, db)
			db = must(Open(o))
			truth.check(t, db)
		}
	}
	truth.check(t, db)
}

func randomChange(rng *rand.Rand) cache.LedgerChange {
	c := cache.LedgerChange{Name: []string{"a", "b"}[rng.IntN(2)], Reset: rng.IntN(12) == 0}
	for range rng.IntN(4) {
		c.Delete = append(c.Delete, []byte{'k', byte('a' + rng.IntN(8))})
	}
	for range rng.IntN(4) {
		c.Put = append(c.Put, cache.LedgerEntry{Key: []byte{'k', byte('a' + rng.IntN(8))}, Value: fmt.Append(nil, rng.Uint32())})
	}
	return c
}

// TestNoteTorn: whatever a power cut leaves of the last note, those before are there, and it is
// either there or not.
func TestNoteTorn(t *testing.T) { bothWays(t, testNoteTorn) }

func testNoteTorn(t *testing.T, keys *Keyring) {
	db, ends := threeNotes(t, keys)
	rng := rand.New(rand.NewPCG(1, 2))
	for cut := ends[1]; cut <= ends[2]; cut++ {
		for _, fill := range []func() byte{func() byte { return 0 }, func() byte { return byte(rng.Uint32()) }} {
			path := killed(t, db)
			file := journalsOf(t, path)[0]
			data := must(os.ReadFile(file))
			whole := bytes.Clone(data)
			for at := cut; at < ends[2]; at++ {
				data[at] = fill()
			}
			write(t, file, data)
			got := must(openAndRead(t, path, keys))
			want := map[string]string{"0": "0", "1": "1", "2": "2"}
			if bytes.Equal(data, whole) { // the last byte may be what it is filled with
				want["3"] = "3"
			}
			same(t, fmt.Sprintf("cut at %d", cut), got, want)
		}
	}
}

// threeNotes is a DB with one entry committed and three noted, and where the notes end.
func threeNotes(t *testing.T, keys *Keyring) (*DB, []int) {
	t.Helper()
	db := open(t, Options{Path: newPath(t), Keys: keys})
	var ends []int
	for n := range 4 {
		jot(t, db, put("shop", fmt.Sprint(n), fmt.Sprint(n)))
		if n > 0 {
			ends = append(ends, db.journal.size)
		}
	}
	return db, ends
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func openAndRead(t *testing.T, path string, keys *Keyring) (map[string]string, error) {
	t.Helper()
	db := open(t, Options{Path: path, Keys: keys})
	defer closeDB(t, db)
	return tryLedger(t, db, "shop")
}

// TestNoteDamaged: a bit that flips anywhere in the journal, or a piece that is missing, loses
// nothing in silence: all is there, or the ledger is damaged. What cannot be told from a note
// that was torn is the last one.
func TestNoteDamaged(t *testing.T) { bothWays(t, testNoteDamaged) }

func testNoteDamaged(t *testing.T, keys *Keyring) {
	db, ends := threeNotes(t, keys)
	damages := map[string]func([]byte) []byte{
		"without its beginning": func(b []byte) []byte { return b[1:] },
		"without its end":       func(b []byte) []byte { return b[:ends[1]] },
		"without a note":        func(b []byte) []byte { return slices.Delete(b, ends[0], ends[1]) },
		"notes exchanged": func(b []byte) []byte {
			return slices.Concat(b[:ends[0]], b[ends[1]:ends[2]], b[ends[0]:ends[1]], b[ends[2]:])
		},
		"a note twice": func(b []byte) []byte { return slices.Insert(b, ends[1], b[ends[0]:ends[1]]...) },
	}
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 0; at < ends[1]; at += step {
		damages[fmt.Sprintf("bit flipped at %d", at)] = func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b }
	}
	for name, damage := range damages {
		path := killed(t, db)
		file := journalsOf(t, path)[0]
		write(t, file, damage(must(os.ReadFile(file))))
		if got, err := openAndRead(t, path, keys); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for at := ends[1]; at < ends[2]; at += step {
		path := killed(t, db)
		file := journalsOf(t, path)[0]
		data := must(os.ReadFile(file))
		data[at] ^= 1 << (at % 8)
		write(t, file, data)
		same(t, fmt.Sprintf("bit flipped at %d", at), must(openAndRead(t, path, keys)), map[string]string{"0": "0", "1": "1", "2": "2"})
	}
}

// TestNoteMissing: notes that are missing at the end of a file, or a whole file, are noticed if
// there are notes in one after it, or if the snapshot file knows of them.
func TestNoteMissing(t *testing.T) {
	db, ends := threeNotes(t, nil)
	db.writeMu.Lock()
	for range 3 { // each begins a file if there is none that is empty, and is not committed
		db.journal.giveBack(must(db.journal.turn(db.vault, true)))
	}
	db.writeMu.Unlock()
	whole := map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"}
	same(t, "nothing after it", must(openAndRead(t, killed(t, db), nil)), whole)
	jot(t, db, put("shop", "4", "4"))
	whole["4"] = "4"
	same(t, "whole", must(openAndRead(t, killed(t, db), nil)), whole)
	for name, damage := range map[string]func(file string, b []byte) error{
		"last note altered": func(file string, b []byte) error { b[ends[2]-1]++; return os.WriteFile(file, b, 0o600) },
		"last note zeroed":  func(file string, b []byte) error { clear(b[ends[1]:]); return os.WriteFile(file, b, 0o600) },
		"all zeroed":        func(file string, b []byte) error { clear(b); return os.WriteFile(file, b, 0o600) },
		"empty":             func(file string, b []byte) error { return os.WriteFile(file, nil, 0o600) },
		"removed":           func(file string, b []byte) error { return os.Remove(file) },
	} {
		path := killed(t, db)
		first := journalsOf(t, path)[0]
		if err := damage(first, must(os.ReadFile(first))); err != nil {
			t.Fatal(err)
		}
		if got, err := openAndRead(t, path, nil); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := db.Commit(nil, nil); err != nil {
		t.Fatal(err)
	}
	jot(t, db, put("shop", "5", "5"))
	path := killed(t, db)
	files := journalsOf(t, path)
	if len(files) != 1 {
		t.Fatalf("%q, want one file", files)
	}
	data := must(os.ReadFile(files[0]))
	clear(data[journalHeadSize:])
	write(t, files[0], data)
	if got, err := openAndRead(t, path, nil); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("notes that were entered are missing: %v, %v", got, err)
	}
}

// TestDamagedJournalStaysKnown: that notes were lost is not forgotten by the next start.
func TestDamagedJournalStaysKnown(t *testing.T) {
	db, ends := threeNotes(t, nil)
	path := killed(t, db)
	file := journalsOf(t, path)[0]
	data := must(os.ReadFile(file))
	data[ends[0]+noteHeadSize]++
	write(t, file, data)
	if report := must(Verify(path, nil)); len(report.Problems) == 0 {
		t.Error("Verify finds no problem")
	}
	for range 3 {
		again := must(Open(Options{Path: path}))
		if _, err := tryLedger(t, again, "shop"); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Ledger() = %v", err)
		}
		if err := again.Note([]cache.LedgerChange{put("shop", "x", "x")}); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Note() of a change = %v", err)
		}
		closeDB(t, again)
	}
	again := must(Open(Options{Path: path}))
	jot(t, again, ledgerOf("shop", map[string]string{"n": "new"}))
	jot(t, again, put("shop", "m", "more"))
	same(t, "saved anew", ledger(t, again, "shop"), map[string]string{"n": "new", "m": "more"})
	closeDB(t, again)
	same(t, "after a start", must(openAndRead(t, path, nil)), map[string]string{"n": "new", "m": "more"})
}

// TestNoteOvertakes: it does not wait for a Commit that is under way, whose notes come first,
// also if that fails.
func TestNoteOvertakes(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	jot(t, db, put("shop", "a", "1"))
	jot(t, db, put("shop", "a", "2"))
	db.writeMu.Lock()
	turning := must(db.journal.turn(db.vault, false))
	done := make(chan error)
	go func() { done <- db.Note([]cache.LedgerChange{put("shop", "a", "3"), put("shop", "b", "new")}) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits")
	}
	db.journal.giveBack(turning)
	db.writeMu.Unlock()
	want := map[string]string{"a": "3", "b": "new"}
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), want)
	same(t, "entered", ledger(t, db, "shop"), want)
}

// TestClosedWithinATurn: what is being entered, and is not in the file yet, stays in the journal.
func TestClosedWithinATurn(t *testing.T) {
	db, _ := threeNotes(t, nil)
	db.writeMu.Lock()
	turning := must(db.journal.turn(db.vault, false))
	closeDB(t, db)
	db.journal.giveBack(turning)
	db.writeMu.Unlock()
	same(t, "ledger", must(openAndRead(t, db.options.Path, nil)), map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"})
}

// TestJournalOfAnother: what lies beside a file and is not its journal is not read: that of a
// file that was there before, and that of another run, after a backup was put back.
func TestJournalOfAnother(t *testing.T) {
	other, _ := threeNotes(t, nil)
	db := open(t, Options{Path: newPath(t)})
	jot(t, db, put("shop", "mine", "1"))
	path := db.options.Path
	closeDB(t, db)
	backup := must(os.ReadFile(path))
	db = open(t, Options{Path: path})
	jot(t, db, put("shop", "mine", "2"), put("shop", "first", "committed"))
	jot(t, db, put("shop", "mine", "3"), put("shop", "second", "noted"))
	now := killed(t, db)
	for name, c := range map[string]struct {
		file     []byte
		journals []string
		want     map[string]string
	}{
		"of another file":     {backup, journalsOf(t, killed(t, other)), map[string]string{"mine": "1"}},
		"of another run":      {backup, journalsOf(t, now), map[string]string{"mine": "1"}},
		"its own":             {must(os.ReadFile(now)), journalsOf(t, now), map[string]string{"mine": "3", "first": "committed", "second": "noted"}},
		"of a file not there": {nil, journalsOf(t, now), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if c.file != nil {
				write(t, path, c.file)
			}
			for _, j := range c.journals {
				_, number, _ := strings.Cut(j, JournalSuffix)
				write(t, path+JournalSuffix+number, must(os.ReadFile(j)))
			}
			same(t, "ledger", must(openAndRead(t, path, nil)), c.want)
			for _, left := range journalsOf(t, path) {
				t.Errorf("%s was left", left)
			}
		})
	}
}

// TestJournalNotRemoved: a file that cannot be removed, and one that only looks like one of a
// journal, stop nothing; where something is to be erased, that is said, and tried again.
func TestJournalNotRemoved(t *testing.T) {
	db, _ := threeNotes(t, nil)
	path := db.options.Path
	file := journalsOf(t, path)[0]
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c := put("shop", "a", "bare")
	c.Erase = true
	jot(t, db, c)
	if err := db.Commit(nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if db.Sweep() == nil {
			t.Error("Sweep() says that nothing is left")
		}
	}
	closeDB(t, db)
	write(t, path+JournalSuffix+"007", nil)
	db = open(t, Options{Path: path})
	if db.Sweep() == nil {
		t.Error("Sweep() says that nothing is left after another start")
	}
	jot(t, db, put("shop", "b", "1"))
	jot(t, db, put("shop", "b", "2"))
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), map[string]string{"0": "0", "1": "1", "2": "2", "3": "3", "a": "bare", "b": "2"})
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	sweep(t, db)
}

// TestNotesRotate: a kill, and a start with another key.
func TestNotesRotate(t *testing.T) {
	db, ends := threeNotes(t, keyring("old"))
	path := killed(t, db)
	want := map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"}
	same(t, "another key", must(openAndRead(t, path, keyring("new", "old"))), want)
	same(t, "and without the old", must(openAndRead(t, path, keyring("new"))), want)

	path = killed(t, db)
	file := journalsOf(t, path)[0]
	data := must(os.ReadFile(file))
	data[ends[0]-1]++
	write(t, file, data)
	for range 2 {
		if got, err := openAndRead(t, path, keyring("new", "old")); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("of a damaged journal %v is read, %v", got, err)
		}
	}
}

// TestNotesAndAWrongKey: the journal goes aside with its file, and comes back with it.
func TestNotesAndAWrongKey(t *testing.T) {
	db, _ := threeNotes(t, keyring("right"))
	path := killed(t, db)
	for range 2 {
		wrong := must(Open(Options{Path: path, Keys: keyring("wrong")}))
		jot(t, wrong, put("shop", "of", "another file"))
		closeDB(t, wrong)
	}
	same(t, "ledger", must(openAndRead(t, path, keyring("right"))), map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"})
}

// TestEraseThenAnew: a change that erases, of a ledger that is damaged by then, does not hold up
// that the ledger is saved anew.
func TestEraseThenAnew(t *testing.T) {
	db, _ := threeNotes(t, nil)
	c := put("shop", "a", "bare")
	c.Erase = true
	jot(t, db, c)
	db.ledgers.mu.Lock()
	db.ledgers.setLocked("shop", errors.New("damaged"))
	db.ledgers.mu.Unlock()
	jot(t, db, ledgerOf("shop", map[string]string{"n": "new"}))
	same(t, "ledger", ledger(t, db, "shop"), map[string]string{"n": "new"})
	marked := false
	if err := db.view(func(tx *bbolt.Tx) error { marked = tx.Bucket(rootBucket).Get(eraseKey) != nil; return nil }); err != nil || !marked {
		t.Errorf("what was to be erased is forgotten: %v", err)
	}
	sweep(t, db)
}

// TestUnstaged: a large commit whose file has to be opened again in the midst of it fails, may be
// repeated, and costs nothing else.
func TestUnstaged(t *testing.T) {
	db := open(t, Options{Path: newPath(t), stageBytes: 100})
	jot(t, db, ledgerOf("other", map[string]string{"k": "v"}))
	large := ledgerOf("shop", map[string]string{"a": strings.Repeat("1", 200), "b": strings.Repeat("2", 200)})
	c := must(newLedgerChange(&large, nil))
	db.writeMu.Lock()
	err := db.stageLedgerLocked(c, []*ledgerChange{c})
	if err == nil {
		err = db.reopen()
	}
	if err != nil {
		t.Fatal(err)
	}
	err = db.writeLocked(func(tx *bbolt.Tx) error { return db.applyLedgers(tx, []*ledgerChange{c}) })
	db.writeMu.Unlock()
	if !errors.Is(err, errUnstaged) {
		t.Errorf("applyLedgers() = %v", err)
	}
	jot(t, db, large)
	same(t, "other", ledger(t, db, "other"), map[string]string{"k": "v"})
}

// TestLockOutFails: where the journal cannot go aside, its file does not either.
func TestLockOutFails(t *testing.T) {
	db, _ := threeNotes(t, keyring("right"))
	path := killed(t, db)
	_, number, _ := strings.Cut(journalsOf(t, path)[0], JournalSuffix)
	taken := path + EncryptedSuffix + JournalSuffix + number
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if wrong, err := Open(Options{Path: path, Keys: keyring("wrong")}); err == nil {
		closeDB(t, wrong)
		t.Error("Open() worked")
	}
	if err := os.RemoveAll(taken); err != nil {
		t.Fatal(err)
	}
	same(t, "ledger", must(openAndRead(t, path, keyring("right"))), map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"})
}

// TestLockOutInterrupted: the process ended between the journal and its file going aside.
func TestLockOutInterrupted(t *testing.T) {
	db, _ := threeNotes(t, keyring("right"))
	path := killed(t, db)
	if err := moveJournal(path, path+EncryptedSuffix); err != nil {
		t.Fatal(err)
	}
	same(t, "ledger", must(openAndRead(t, path, keyring("right"))), map[string]string{"0": "0", "1": "1", "2": "2", "3": "3"})
}

// TestJournalNameTaken: what lies in the place of the next file holds up nothing, and nothing
// that is to be erased.
func TestJournalNameTaken(t *testing.T) {
	db, _ := threeNotes(t, nil)
	stray := journalName(db.options.Path, db.journal.number+1)
	write(t, stray, []byte("stray"))
	c := put("shop", "0", "bare")
	c.Erase = true
	jot(t, db, c)
	if err := db.Commit(nil, nil); err != nil {
		t.Fatal(err)
	}
	_ = db.Sweep() // which may have to look for another name
	sweep(t, db)
	jot(t, db, put("shop", "1", "after"))
	jot(t, db, put("shop", "2", "after"))
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), map[string]string{"0": "bare", "1": "after", "2": "after", "3": "3"})
	if exists(stray) {
		t.Error("it is still there")
	}
}

// TestNotesHidden: of an encrypted file no name, key or value is readable in its journal.
func TestNotesHidden(t *testing.T) {
	db := open(t, Options{Path: newPath(t), Keys: keyring("k")})
	for n := range 3 {
		jot(t, db, put("secret-shop", fmt.Sprint("secret-key-", n), "secret-value"))
	}
	for _, name := range journalsOf(t, db.options.Path) {
		if data := must(os.ReadFile(name)); bytes.Contains(data, []byte("secret")) {
			t.Errorf("%s can be read", name)
		}
	}
}

// TestNotesErased: what must not be kept is in no file beside the snapshot either.
func TestNotesErased(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	const last = "the last state of what left"
	jot(t, db, put("shop", "a", "1"))
	jot(t, db, put("shop", "a", last))
	holding := func() (all []string) {
		folder := filepath.Dir(db.options.Path)
		for _, entry := range must(os.ReadDir(folder)) {
			if bytes.Contains(must(os.ReadFile(filepath.Join(folder, entry.Name()))), []byte(last)) {
				all = append(all, entry.Name())
			}
		}
		return all
	}
	if len(holding()) == 0 {
		t.Fatal("no file has it")
	}
	c := put("shop", "a", "bare")
	c.Erase = true
	jot(t, db, c)
	if err := db.Commit(nil, nil); err != nil { // as the next save of the copies does
		t.Fatal(err)
	}
	sweep(t, db)
	if left := holding(); left != nil {
		t.Errorf("it is in %q", left)
	}
	same(t, "ledger", ledger(t, db, "shop"), map[string]string{"a": "bare"})
}

// TestNoteFails: where the journal cannot be written, what is noted is committed, durably.
func TestNoteFails(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	jot(t, db, put("shop", "a", "1"))
	jot(t, db, put("shop", "a", "2"))
	db.journal.mu.Lock()
	closed := must(os.Open(db.options.Path)) // not for writing
	_ = db.journal.file.Close()
	db.journal.file = closed
	db.journal.mu.Unlock()
	jot(t, db, put("shop", "a", "3"))
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), map[string]string{"a": "3"})
	jot(t, db, put("shop", "a", "4"))
	jot(t, db, put("shop", "a", "5"))
	same(t, "and on", must(openAndRead(t, killed(t, db), nil)), map[string]string{"a": "5"})
	if n := len(journalsOf(t, db.options.Path)); n != 1 {
		t.Errorf("%d files of the journal, want 1", n)
	}
}

// TestNoteLarge: what is large is committed, and what was noted before it is older.
func TestNoteLarge(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	jot(t, db, put("shop", "a", "1"))
	jot(t, db, put("shop", "a", "2"))
	jot(t, db, put("shop", "a", strings.Repeat("3", noteBytes+1)))
	jot(t, db, put("shop", "b", "4"))
	got := must(openAndRead(t, killed(t, db), nil))
	if len(got["a"]) != noteBytes+1 || got["b"] != "4" {
		t.Errorf("a has %d bytes, b is %q", len(got["a"]), got["b"])
	}
}

// TestNoteAfterReplace: the file was replaced, whoever is told so. Until a ledger is saved anew,
// what is noted of it is no part of one, and is refused.
func TestNoteAfterReplace(t *testing.T) {
	damage := func(db *DB) error {
		return os.WriteFile(db.options.Path, bytes.Repeat([]byte("garbage "), 5000), 0o600)
	}
	for name, lose := range map[string]func(*testing.T, *DB){
		"replaced": func(t *testing.T, db *DB) {
			db.writeMu.Lock()
			defer db.writeMu.Unlock()
			if err := db.replace(errDamaged); !errors.Is(err, ErrReplaced) {
				t.Errorf("replace() = %v", err)
			}
			db.replaced = true
		},
		"swept": func(t *testing.T, db *DB) {
			db.writeMu.Lock()
			defer db.writeMu.Unlock()
			db.mu.Lock()
			defer db.mu.Unlock()
			if err := damage(db); err != nil {
				t.Error(err)
			}
			if err := db.salvageOpen(); err != nil {
				t.Errorf("salvageOpen() = %v", err)
			}
		},
		"a backup in its place": func(t *testing.T, db *DB) {
			backup, err := Open(Options{Path: newPath(t)})
			if err != nil {
				t.Fatal(err)
			}
			note(t, backup, ledgerOf("shop", map[string]string{"old": "1"}))
			closeDB(t, backup)
			db.writeMu.Lock()
			defer db.writeMu.Unlock()
			db.mu.Lock()
			_ = db.bolt.Close()
			db.bolt = nil
			db.mu.Unlock()
			write(t, db.options.Path, must(os.ReadFile(backup.options.Path)))
			if err := db.reopen(); !errors.Is(err, ErrReplaced) {
				t.Errorf("reopen() = %v", err)
			}
			db.replaced = true
		},
		"opened again, by Drop": func(t *testing.T, db *DB) {
			db.mu.Lock()
			_ = db.bolt.Close()
			db.bolt = nil
			db.mu.Unlock()
			if err := errors.Join(damage(db), db.Drop(pods)); err != nil {
				t.Errorf("Drop() = %v", err)
			}
		},
	} {
		for _, first := range []string{"commit", "note"} {
			t.Run(name+", "+first, func(t *testing.T) {
				db := open(t, Options{Path: newPath(t)})
				jot(t, db, put("shop", "a", "1"))
				jot(t, db, put("shop", "a", "2"))
				for range 2 {
					testLost(t, db, lose, first == "commit")
				}
			})
		}
	}
}

// testLost loses the file of a DB, after which a ledger is saved anew.
func testLost(t *testing.T, db *DB, lose func(*testing.T, *DB), commits bool) {
	t.Helper()
	lose(t, db)
	part := []cache.LedgerChange{put("shop", "b", "part")}
	if commits { // and is told, or the note is
		_ = db.Commit([]cache.Batch{{Saved: cache.Saved{Spec: cache.Spec{Resource: pods}}, Reset: true}}, nil)
	} else if err := db.Note(part); !errors.Is(err, ErrReplaced) {
		t.Errorf("it is told %v", err)
	}
	for range 2 {
		if err := db.Note(part); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Note() = %v", err)
		}
	}
	if err := db.Ledger("new", func(cache.LedgerEntry) error { return nil }); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Ledger() of one that nobody knows = %v", err)
	}
	jot(t, db, ledgerOf("shop", map[string]string{"c": "anew"}))
	jot(t, db, put("shop", "d", "more"))
	want := map[string]string{"c": "anew", "d": "more"}
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), want)
	same(t, "ledger", ledger(t, db, "shop"), want)
}

// TestNotesWhileCommitsFail: what is noted is there after a kill, and takes no more of the disk
// than it is large.
func TestNotesWhileCommitsFail(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	failing := []cache.Batch{{Saved: cache.Saved{Spec: cache.Spec{Resource: pods}}}} // nothing to add to
	if err := db.Commit(failing, []cache.LedgerChange{put("shop", "no", "1")}); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Fatalf("Commit() = %v", err)
	}
	same(t, "a first commit that failed", must(openAndRead(t, killed(t, db), nil)), map[string]string{})
	want := map[string]string{}
	for n := range 40 {
		key := fmt.Sprint(n % 8)
		jot(t, db, put("shop", key, fmt.Sprint(n)))
		want[key] = fmt.Sprint(n)
		if err := db.Commit(failing, nil); !errors.Is(err, cache.ErrNoSnapshot) && n > 0 {
			t.Fatalf("Commit() = %v", err)
		}
		if n%10 == 9 {
			same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), want)
		}
	}
	if files := journalsOf(t, db.options.Path); len(files) != 1 {
		t.Errorf("there are %q", files)
	}
	same(t, "ledger", ledger(t, db, "shop"), want)
}

// TestJournalTurns: a full file is followed by another, and removed.
func TestJournalTurns(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	want := map[string]string{}
	for n := range 200 {
		key := fmt.Sprint(n % 5)
		want[key] = strings.Repeat(fmt.Sprint(n), 20_000)
		jot(t, db, put("shop", key, want[key]))
		if n%9 == 0 {
			db.mustCommit(t)
		}
		if n%40 == 13 {
			same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), want)
		}
	}
	if files := journalsOf(t, db.options.Path); len(files) > 2 || strings.HasSuffix(files[0], JournalSuffix+"1") {
		t.Errorf("there are %q", files)
	}
}

// TestFirstCommitFails: nothing is noted before the snapshot file knows its journal.
func TestFirstCommitFails(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	db.writeMu.Lock()
	turning := must(db.journal.turn(db.vault, false))
	if db.journal.note([]cache.LedgerChange{put("shop", "a", "1")}, db.ledgers.damaged) {
		t.Error("it was noted in a journal that nobody knows of")
	}
	db.journal.giveBack(turning)
	db.writeMu.Unlock()
	jot(t, db, put("shop", "a", "1"))
	jot(t, db, put("shop", "a", "2"))
	same(t, "after a kill", must(openAndRead(t, killed(t, db), nil)), map[string]string{"a": "2"})
}

// TestNoteRefused: a DB that only reads, or is closed, and bad names.
func TestNoteRefused(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	jot(t, db, put("shop", "a", "1"))
	if err := db.Note([]cache.LedgerChange{put("", "a", "1")}); err == nil {
		t.Error("a ledger without a name was noted")
	}
	if err := db.Note([]cache.LedgerChange{put("shop", strings.Repeat("k", maxLedgerKey+1), "1")}); err == nil {
		t.Error("a key that is too long was noted")
	}
	path := db.options.Path
	closeDB(t, db)
	if err := db.Note([]cache.LedgerChange{put("shop", "a", "2")}); !errors.Is(err, ErrClosed) {
		t.Errorf("Note() of a closed DB = %v", err)
	}
	reading := must(Open(Options{Path: path, ReadOnly: true}))
	defer closeDB(t, reading)
	if err := reading.Note([]cache.LedgerChange{put("shop", "a", "2")}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Note() of a DB that only reads = %v", err)
	}
	if left := journalsOf(t, path); left != nil {
		t.Errorf("%q were made", left)
	}
}

// TestJournalLinked: the link to another file is not read, nor written.
func TestJournalLinked(t *testing.T) {
	db, _ := threeNotes(t, nil)
	path := killed(t, db)
	file := journalsOf(t, path)[0]
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.Rename(file, other), os.Symlink(other, file)); err != nil {
		t.Skip(err)
	}
	if _, err := openAndRead(t, path, nil); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("it is read: %v", err)
	}
	if info, err := os.Lstat(other); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		t.Errorf("the other file: %v, %v", info, err)
	}
}

// FuzzJournal: no bytes make the reading of a journal panic, or take long.
func FuzzJournal(f *testing.F) {
	at := notePlace{id: journalID{1}, number: 7}
	good := encodeJournalHead(at.id, at.number)
	for at.index = range uint64(3) {
		good = must(appendNote(good, at, nil, &journalNote{changes: []cache.LedgerChange{put("shop", "k", "v"), {Name: "bank", Reset: true, Delete: [][]byte{{1}}}}}))
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(append(good, make([]byte, journalAlloc)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		all := make(notes)
		_, _ = readNotes(data, at.id, at.number, nil, func(_ uint64, n *journalNote) error { return n.addTo(all) })
		all.changes()
		_, _ = decodeNote(data)
		_, _ = decodeMark(data)
	})
}
