package persist

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/informerd/informerd/cache"
)

// manyRecords are decoded in batches, by several goroutines.
const manyRecords = 20*readBatch + 100

func manyPods(t *testing.T, keys *Keyring) *DB {
	t.Helper()
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, bulkBatch(pods, manyRecords))
	return db
}

// TestLoadMany: records come in the order of their keys, whoever decodes them.
func TestLoadMany(t *testing.T) {
	for name, keys := range map[string]*Keyring{"plain": nil, "encrypted": keyring("a")} {
		t.Run(name, func(t *testing.T) {
			want := bulk(manyRecords)
			slices.SortFunc(want, func(a, b cache.Record) int { return a.Key.Compare(b.Key) })
			got := load(t, manyPods(t, keys), pods)
			same(t, "records", got.Records, want)
		})
	}
}

// TestLoadManyEnds: an early end leaves nobody behind who reads the file, which is closed at
// once; nor does a panic, or a record that is damaged, up to which all come.
func TestLoadManyEnds(t *testing.T) {
	stop := errors.New("enough")
	for name, keys := range map[string]*Keyring{"plain": nil, "encrypted": keyring("a")} {
		for _, after := range []int{1, readBatch, 3*readBatch + 1, manyRecords} {
			t.Run(name, func(t *testing.T) {
				db := manyPods(t, keys)
				n := 0
				if _, err := db.Load(pods, func(cache.Record) error {
					if n++; n == after {
						return stop
					}
					return nil
				}); !errors.Is(err, stop) || n != after {
					t.Errorf("Load() = %v after %d records, want %d", err, n, after)
				}
				if isDecoding() {
					t.Error("the file is read after the Load has ended")
				}
				func() {
					defer func() {
						if recover() == nil {
							t.Error("Load() swallowed the panic")
						}
					}()
					n := 0
					_, _ = db.Load(pods, func(cache.Record) error {
						if n++; n == after {
							panic("of yield")
						}
						return nil
					})
				}()
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// isDecoding reports whether a goroutine reads what is stored.
func isDecoding() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*readPart).decode"))
}

// TestLoadManyDamaged: what lies before a damaged record comes in order, and nothing after it.
func TestLoadManyDamaged(t *testing.T) {
	db := manyPods(t, nil)
	records := load(t, db, pods).Records
	path := db.options.Path
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	const damaged = 7*readBatch + 11
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, records[damaged].Data)
	if at < 0 {
		t.Fatal("the record is not in the file")
	}
	file[at] ^= 1
	writeFile(t, path, file)
	n := 0
	_, err = open(t, Options{Path: path}).Load(pods, func(rec cache.Record) error {
		if rec.Key != records[n].Key {
			t.Errorf("record %d is %v, want %v", n, rec.Key, records[n].Key)
		}
		n++
		return nil
	})
	if !errors.Is(err, cache.ErrCorrupt) || n != damaged {
		t.Errorf("Load() = %v after %d records, want %d", err, n, damaged)
	}
}
