package persist

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// tamperWith has somebody who can write to the file change the bucket of a resource.
func tamperWith(t *testing.T, path string, keys *Keyring, r cache.Resource, fn func(*bbolt.Bucket) error) {
	t.Helper()
	v, err := keys.unlock(lockOf(t, must(os.ReadFile(path))))
	if err != nil {
		t.Fatal(err)
	}
	b, err := bbolt.Open(path, private, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		return fn(bucketAt(tx, rootBucket, resourcesBucket, must(v.resourceName(r))))
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
}

// contents are keys and values of a bucket, copied.
func contents(b *bbolt.Bucket) (keys, values [][]byte) {
	_ = b.ForEach(func(k, v []byte) error {
		keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
		return nil
	})
	return keys, values
}

// TestTampered: who can write to the file and has no key cannot make it say anything
// that it did not say as a whole.
func TestTampered(t *testing.T) {
	keys := keyring("a")
	batch := func(version string) cache.Batch {
		b := threeBatch(20, version)[0]
		b.Saved.Dictionaries = map[uint32][]byte{1: []byte("dictionary " + version), 2: []byte("another " + version)}
		return b
	}
	var old struct{ meta, dictionary, object, key []byte }
	for name, tamper := range map[string]func(b *bbolt.Bucket) error{
		"altered object": func(b *bbolt.Bucket) error {
			k, v := contents(b.Bucket(objectsBucket))
			v[3][len(v[3])-20] ^= 1
			return b.Bucket(objectsBucket).Put(k[3], v[3])
		},
		"two swapped": func(b *bbolt.Bucket) error {
			k, v := contents(b.Bucket(objectsBucket))
			return errors.Join(b.Bucket(objectsBucket).Put(k[3], v[4]), b.Bucket(objectsBucket).Put(k[4], v[3]))
		},
		"moved to another key": func(b *bbolt.Bucket) error {
			k, v := contents(b.Bucket(objectsBucket))
			k[3][0] ^= 1
			return b.Bucket(objectsBucket).Put(k[3], v[3])
		},
		"left out": func(b *bbolt.Bucket) error {
			k, _ := contents(b.Bucket(objectsBucket))
			return b.Bucket(objectsBucket).Delete(k[3])
		},
		"earlier object":     func(b *bbolt.Bucket) error { return b.Bucket(objectsBucket).Put(old.key, old.object) },
		"earlier meta":       func(b *bbolt.Bucket) error { return b.Put(metaKey, old.meta) },
		"earlier dictionary": func(b *bbolt.Bucket) error { return b.Bucket(dictionariesBucket).Put(dictionaryKey(1), old.dictionary) },
		"swapped dictionaries": func(b *bbolt.Bucket) error {
			k, v := contents(b.Bucket(dictionariesBucket))
			return errors.Join(b.Bucket(dictionariesBucket).Put(k[0], v[1]), b.Bucket(dictionariesBucket).Put(k[1], v[0]))
		},
		"meta as a dictionary": func(b *bbolt.Bucket) error { return b.Bucket(dictionariesBucket).Put(dictionaryKey(1), b.Get(metaKey)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			for _, version := range []string{"111", "222"} {
				db := open(t, Options{Path: path, Keys: keys})
				commit(t, db, batch(version))
				closeDB(t, db)
				if version == "222" {
					break
				}
				tamperWith(t, path, keys, pods, func(b *bbolt.Bucket) error {
					k, v := contents(b.Bucket(objectsBucket))
					old.key, old.object, old.meta = k[3], v[3], bytes.Clone(b.Get(metaKey))
					old.dictionary = bytes.Clone(b.Bucket(dictionariesBucket).Get(dictionaryKey(1)))
					return nil
				})
			}
			tamperWith(t, path, keys, pods, tamper)
			report, err := Verify(path, keys)
			if err != nil || len(report.Problems) == 0 {
				t.Errorf("Verify() = %+v, %v", report, err)
			}
			db := open(t, Options{Path: path, Keys: keys})
			got, err := tryLoad(db, pods)
			if !errors.Is(err, cache.ErrCorrupt) || len(got.Records) != 0 {
				t.Errorf("Load() = %d records, %v; want ErrCorrupt and none", len(got.Records), err)
			}
			heals(t, db)
		})
	}
}

// TestEarlierDictionaryIsNotTaken: not even if a commit comes between.
func TestEarlierDictionaryIsNotTaken(t *testing.T) {
	for _, reset := range []bool{false, true} {
		keys, path := keyring("a"), newPath(t)
		batch := threeBatch(20, "111")[0]
		db := open(t, Options{Path: path, Keys: keys})
		commit(t, db, batch)
		closeDB(t, db)
		var old []byte
		tamperWith(t, path, keys, pods, func(b *bbolt.Bucket) error {
			old = bytes.Clone(b.Bucket(dictionariesBucket).Get(dictionaryKey(1)))
			return nil
		})
		db = open(t, Options{Path: path, Keys: keys})
		batch.Saved.Dictionaries = map[uint32][]byte{1: []byte("trained anew")}
		commit(t, db, batch)
		closeDB(t, db)
		tamperWith(t, path, keys, pods, func(b *bbolt.Bucket) error { return b.Bucket(dictionariesBucket).Put(dictionaryKey(1), old) })
		db = open(t, Options{Path: path, Keys: keys})
		batch.Saved.Dictionaries, batch.Reset = nil, reset
		commit(t, db, batch)
		if _, err := tryLoad(db, pods); !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("reset %v: Load() = %v, want ErrCorrupt", reset, err)
		}
	}
}

// TestDamageStaysInOneEncryptedResource damages a page: the others are salvaged as they
// are, encrypted.
func TestDamageStaysInOneEncryptedResource(t *testing.T) {
	keys := keyring("a")
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, threeBatch(60, "111")...)
	want := loadThree(t, db)
	stored, _ := rawObjects(t, db)
	closeDB(t, db)
	path := db.options.Path
	file := must(os.ReadFile(path))
	page := file[bytes.LastIndex(file, stored[30])/4096*4096:]
	page[8] ^= 1 // its flags
	writeFile(t, path, file)
	db, said := openLogged(t, path, keys)
	for _, r := range three {
		got, err := tryLoad(db, r)
		if r == pods && !errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Load(%s) = %v, want ErrCorrupt", r, err)
		}
		if r != pods && (err != nil || !equal(got, want[r])) {
			t.Errorf("Load(%s) = %v", r, err)
		}
	}
	if !strings.Contains(said.String(), "its pages are damaged") {
		t.Errorf("the log says %s", said)
	}
	heals(t, db)
}
