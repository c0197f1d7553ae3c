package persist

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/informerd/informerd/cache"
)

// hush is what no file may hold once a rule has taken it away.
var hush = []byte("hunter2-is-no-secret")

// secret is a batch that holds everything of pods, with what is hushed or without.
// Its dictionary was trained on it.
func secret(spec cache.Spec, value []byte) cache.Batch {
	spec.Resource = pods
	b := cache.Batch{Reset: true, Saved: cache.Saved{
		Spec: spec, ClusterUID: "uid", ResourceVersions: map[string]string{"": "7"},
		Dictionaries: map[uint32][]byte{40000: slices.Concat([]byte("dictionary "), value)},
	}}
	for i := range 200 {
		name := fmt.Sprintf("p%03d", i)
		data := fmt.Appendf(nil, `{"metadata":{"name":%q},"data":%q}`, name, value)
		b.Put = append(b.Put, cache.Record{
			Key: cache.Key{Namespace: "default", Name: name}, UID: name, ResourceVersion: "7",
			Dictionary: 40000, Size: uint32(len(data)), Data: data,
		})
	}
	return b
}

var tight = cache.Spec{Redact: []string{"data"}}

// holds reports whether any file beside path, and path itself, has the bytes.
func holds(t *testing.T, path string) (names []string) {
	t.Helper()
	for _, suffix := range []string{"", DamagedSuffix, newSuffix} {
		data, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(data, hush) {
			names = append(names, "informerd.db"+suffix)
		}
	}
	return names
}

// loose is a file that holds what is going to be taken away, in the records, and in
// the dictionary.
func loose(t *testing.T) (*DB, string) {
	t.Helper()
	path := newPath(t)
	db := open(t, Options{Path: path})
	commit(t, db, secret(cache.Spec{}, hush))
	if holds(t, path) == nil {
		t.Fatal("the file never held it, so that this test shows nothing")
	}
	return db, path
}

func sweep(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Sweep(); err != nil {
		t.Fatalf("Sweep() = %v", err)
	}
}

// TestErase: what a rule takes away is in no page of the file once it was swept, and
// what else it holds still is.
func TestErase(t *testing.T) {
	for name, takeAway := range map[string]func(*testing.T, *DB){
		"redacted":   func(t *testing.T, db *DB) { commit(t, db, secret(tight, nil)) },
		"dropped":    func(t *testing.T, db *DB) { commit(t, db, secret(cache.Spec{Drop: []string{"data"}}, nil)) },
		"deselected": func(t *testing.T, db *DB) { commit(t, db, secret(cache.Spec{LabelSelector: "a=b"}, nil)) },
		"elsewhere":  func(t *testing.T, db *DB) { commit(t, db, secret(cache.Spec{Namespaces: []string{"b"}}, nil)) },
		"unwatched": func(t *testing.T, db *DB) {
			if err := db.Erase(pods); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, path := loose(t)
			commit(t, db, bulkBatch(deployments, 3))
			takeAway(t, db)
			if holds(t, path) == nil {
				t.Error("free pages do not hold it: is Sweep of any use?")
			}
			sweep(t, db)
			if names := holds(t, path); names != nil {
				t.Errorf("still in %v", names)
			}
			if got := load(t, db, deployments); len(got.Records) != 3 {
				t.Errorf("%d other objects, want 3", len(got.Records))
			}
			commit(t, db, bulkBatch(eastPods, 2)) // it can be written to
			reopen(t, db)
		})
	}
}

// TestEraseOutlivesTheProcess: one that ends between the commit and the rewriting
// leaves it to the next.
func TestEraseOutlivesTheProcess(t *testing.T) {
	db, path := loose(t)
	commit(t, db, secret(tight, nil))
	db = reopen(t, db)
	if names := holds(t, path); names != nil {
		t.Errorf("still in %v", names)
	}
	if got := load(t, db, pods); len(got.Records) != 200 {
		t.Errorf("%d objects, want 200", len(got.Records))
	}
}

// TestEraseFails: a disk that takes no copy leaves the file as it is, and marked.
func TestEraseFails(t *testing.T) {
	db, path := loose(t)
	commit(t, db, secret(tight, nil))
	full := errors.New("no space left")
	db.options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		if name == path+newSuffix {
			return nil, full
		}
		return os.OpenFile(name, flag, mode)
	}
	if err := db.Sweep(); !errors.Is(err, full) {
		t.Fatalf("Sweep() = %v, want %v", err, full)
	}
	if got := load(t, db, pods); len(got.Records) != 200 {
		t.Errorf("%d objects, want 200", len(got.Records))
	}
	db.options.OpenFile = os.OpenFile
	sweep(t, db)
	if names := holds(t, path); names != nil {
		t.Errorf("still in %v", names)
	}
}

// TestEraseMovedAside: a damaged file is kept beside the new one, and holds what the
// old one held.
func TestEraseMovedAside(t *testing.T) {
	for name, rule := range map[string]struct {
		spec cache.Spec
		kept bool
	}{
		"redacted since": {tight, false},
		"nothing to do":  {cache.Spec{Drop: []string{managedFields}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, path := loose(t)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt(make([]byte, 8<<10), 0); err != nil { // both meta pages
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, Options{Path: path})
			if names := holds(t, path); !slices.Equal(names, []string{"informerd.db" + DamagedSuffix}) {
				t.Fatalf("held by %v", names)
			}
			commit(t, db, secret(rule.spec, nil))
			sweep(t, db)
			if names := holds(t, path); (names != nil) != rule.kept {
				t.Errorf("held by %v, want it kept: %v", names, rule.kept)
			}
		})
	}
}

// TestSweepOfTheSame: what takes nothing away costs no rewriting.
func TestSweepOfTheSame(t *testing.T) {
	db, path := loose(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, db, secret(cache.Spec{}, hush))
	if err := db.Drop(pods); err != nil { // its definition is gone
		t.Fatal(err)
	}
	sweep(t, db)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("another file, %v", err)
	}
}

// TestEraseLedger: what a ledger had, and must not be kept, is in no page either.
func TestEraseLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	db := open(t, Options{Path: path})
	const last = "the last state of what left"
	has := func() bool {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(content, []byte(last))
	}
	note(t, db, ledgerOf("shop", map[string]string{"a": last, "b": "other"}))
	note(t, db, cache.LedgerChange{Name: "shop", Erase: true, Put: []cache.LedgerEntry{{Key: []byte("a"), Value: []byte("bare")}}})
	if !has() {
		t.Error("free pages do not hold it: is Sweep of any use?")
	}
	sweep(t, db)
	if has() {
		t.Error("it is still there")
	}
	if got := ledger(t, db, "shop"); got["a"] != "bare" || got["b"] != "other" {
		t.Errorf("the ledger is %v", got)
	}
}
