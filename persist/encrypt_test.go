package persist

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// filled is a closed file of three resources and a document, as keys have it.
func filled(t *testing.T, keys *Keyring) (path string, holds map[cache.Resource]snapshot) {
	t.Helper()
	db := open(t, Options{Path: newPath(t), Keys: keys})
	commit(t, db, threeBatch(20, "111")...)
	saveDocument(t, db, document("", "/openapi", "of the server"))
	holds = loadThree(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return db.options.Path, holds
}

// openLogged also returns what the log says.
func openLogged(t *testing.T, path string, keys *Keyring) (*DB, *bytes.Buffer) {
	t.Helper()
	said := new(bytes.Buffer)
	return open(t, Options{Path: path, Keys: keys, Log: slog.New(slog.NewTextHandler(said, nil))}), said
}

func closeDB(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func isCold(t *testing.T, db *DB) {
	t.Helper()
	if all, err := db.Saved(); err != nil || len(all) != 0 {
		t.Errorf("%d resources are saved, %v", len(all), err)
	}
	if all := documents(t, db); len(all) != 0 {
		t.Errorf("%d documents are saved", len(all))
	}
}

func holdsAll(t *testing.T, db *DB, want map[cache.Resource]snapshot) {
	t.Helper()
	same(t, "resources", loadThree(t, db), want)
	same(t, "documents", documents(t, db), []cache.Document{document("", "/openapi", "of the server")})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestNothingReadable: no byte of a value, a name or a namespace, nor of what the
// description of a resource says, is in an encrypted file; all are in one that is not.
func TestNothingReadable(t *testing.T) {
	fill := func(keys *Keyring) []byte {
		db := open(t, Options{Path: newPath(t), Keys: keys, stageBytes: 20_000})
		for _, reset := range []bool{true, false} {
			b := cache.Batch{Reset: reset, Saved: savedOf(cache.Resource{Cluster: "eastern", GVR: deployments.GVR}, "4711000")}
			b.Saved.Dictionaries = map[uint32][]byte{7: []byte("dictionary-of-words")}
			for i := range 60 {
				rec := record("namespace-hidden", fmt.Sprintf("name-hidden-%03d", i), "4711001")
				rec.Data, rec.Dictionary = bytes.Repeat([]byte("value-hidden"), 100), 7
				b.Put = append(b.Put, rec)
			}
			if !reset {
				b.Delete = []cache.Key{b.Put[0].Key}
				b.Put = b.Put[1:]
			}
			commit(t, db, b)
		}
		saveDocument(t, db, document("eastern", "/openapi/v3/apis/hidden", "document-hidden"))
		closeDB(t, db)
		file, err := os.ReadFile(db.options.Path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain, encrypted := fill(nil), fill(keyring("a"))
	words := []string{"namespace-hidden", "name-hidden-001", "value-hidden", "uid-namespace", "app=name", "node-1", "4711000",
		"4711001", "eastern", "deployments", "apps", "dictionary-of-words", "/openapi/v3", "document-hidden", "application/json", "spec.nodeName", "managedFields"}
	for _, word := range words {
		if !bytes.Contains(plain, []byte(word)) {
			t.Errorf("%q is not in a plain file either: it shows nothing", word)
		}
		if bytes.Contains(encrypted, []byte(word)) {
			t.Errorf("%q is in the encrypted file", word)
		}
	}
	if !bytes.Contains(encrypted, []byte("\x01a")) {
		t.Error("the name of the key is not in the file")
	}
}

// TestOtherKeys: a file that no key unlocks is kept aside, and used again with the right
// one.
func TestOtherKeys(t *testing.T) {
	forged := keyring("a")
	forged.keys[0].secret = bytes.Repeat([]byte("b"), keySize)
	for name, c := range map[string]struct {
		keys *Keyring
		want []string
	}{
		"another":      {keyring("b", "c"), []string{`\"a\"`, "keys", "b, c"}},
		"of that name": {forged, []string{`another key \"a\"`, "keys"}},
		"none":         {nil, []string{`\"a\"`, "snapshot.encryption.keyFile"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, want := filled(t, keyring("a"))
			for _, err := range []error{errorOf(Open(Options{Path: path, Keys: c.keys, ReadOnly: true})), errorOf(Verify(path, c.keys))} {
				if !errors.Is(err, ErrKey) {
					t.Errorf("reading only = %v, want ErrKey", err)
				}
			}
			db, said := openLogged(t, path, c.keys)
			isCold(t, db)
			for _, word := range append(c.want, "level=ERROR", "starting cold") {
				if !strings.Contains(said.String(), word) {
					t.Errorf("the log does not say %s: %s", word, said)
				}
			}
			if !exists(path + EncryptedSuffix) {
				t.Error("it was not kept")
			}
			heals(t, db)
			// Saved for the first time under a rule that redacts, as Secrets are in
			// every cold start, which takes nothing away from anything.
			hushed := secret(tight, nil)
			hushed.Saved.Spec.Resource = cache.Resource{Cluster: "west", GVR: pods.GVR}
			commit(t, db, hushed)
			sweep(t, db)
			closeDB(t, db)

			db, said = openLogged(t, path, c.keys)
			if got := load(t, db, pods); len(got.Records) != 3 || said.Len() > 0 {
				t.Errorf("the next start loads %d records, and says %s", len(got.Records), said)
			}
			closeDB(t, db)

			db, said = openLogged(t, path, keyring("a"))
			holdsAll(t, db, want)
			if exists(path+EncryptedSuffix) || !strings.Contains(said.String(), "back in its place") {
				t.Errorf("it is not back in its place: %s", said)
			}
		})
	}
}

func errorOf[T any](_ T, err error) error { return err }

// TestPlainIsNotBelieved: anybody can write a file that is not encrypted.
func TestPlainIsNotBelieved(t *testing.T) {
	damage := func(t *testing.T, path string) {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt(make([]byte, 8<<10), 0) // both meta pages
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, alter := range map[string]func(*testing.T, string){
		"sound":   func(*testing.T, string) {},
		"damaged": damage,
		"moved aside": func(t *testing.T, path string) {
			damage(t, path)
			closeDB(t, open(t, Options{Path: path}))
			if !exists(path + DamagedSuffix) {
				t.Fatal("it was not moved aside")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := filled(t, nil)
			alter(t, path)
			if _, err := Open(Options{Path: path, Keys: keyring("a"), ReadOnly: true}); err == nil {
				t.Error("it can be read")
			}
			db, said := openLogged(t, path, keyring("a"))
			isCold(t, db)
			if !strings.Contains(said.String(), "not encrypted as the configuration demands, removed") {
				t.Errorf("the log says %s", said)
			}
			heals(t, db)
			closeDB(t, db)
			for _, suffix := range []string{"", DamagedSuffix, EncryptedSuffix, newSuffix} {
				if data, err := os.ReadFile(path + suffix); err == nil && (suffix != "" || bytes.Contains(data, []byte("111111"))) {
					t.Errorf("%s is there, or holds what is not encrypted", suffix)
				}
			}
		})
	}
}

// TestForeignIsKept: what is no snapshot at all is not removed, keys or no.
func TestForeignIsKept(t *testing.T) {
	path := newPath(t)
	text := bytes.Repeat([]byte("my only copy\n"), 1000)
	writeFile(t, path, text)
	open(t, Options{Path: path, Keys: keyring("a")})
	if data, err := os.ReadFile(path + DamagedSuffix); err != nil || !bytes.Equal(data, text) {
		t.Errorf("it is gone: %v", err)
	}
}

// TestHoldsPlain finds the format wherever it is.
func TestHoldsPlain(t *testing.T) {
	for i, at := range []int{0, 1, 1<<20 - 30, 1<<20 - 13, 1<<20 - 1, 1 << 20, 1<<21 - 40, 1<<21 - 5, 3 << 20} {
		path := newPath(t)
		format := encodeFormat([]uint32{plainFormat, plainLedgersFormat}[i%2])
		file := make([]byte, at, at+200)
		file = append(append(file, format...), make([]byte, at%100)...)
		writeFile(t, path, file)
		if ok, err := holdsPlain(path); err != nil || !ok {
			t.Errorf("at %d: %v, %v", at, ok, err)
		}
		file[at+3]++
		writeFile(t, path, file)
		if ok, err := holdsPlain(path); err != nil || ok {
			t.Errorf("without it: %v, %v", ok, err)
		}
	}
}

// TestRotation: a new first key has everything written anew, after which the old one,
// and what was encrypted with it, is of no use.
func TestRotation(t *testing.T) {
	path, want := filled(t, keyring("old"))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+DamagedSuffix, []byte("of before"))
	db, said := openLogged(t, path, keyring("new", "old"))
	holdsAll(t, db, want)
	if !strings.Contains(said.String(), "encrypted with another key") || exists(path+DamagedSuffix) || exists(path+newSuffix) {
		t.Errorf("the log says %s; or something is left beside the file", said)
	}
	commit(t, db, threeBatch(5, "222")...)
	closeDB(t, db)
	if info, err := Info(path, nil); err != nil || info.EncryptionKey != "new" || info.Format != encryptedFormat {
		t.Errorf("Info() = %+v, %v", info, err)
	}

	db, said = openLogged(t, path, keyring("new"))
	if got := load(t, db, pods); len(got.Records) != 5 || said.Len() > 0 {
		t.Errorf("%d records with the new key alone, want 5; the log says %s", len(got.Records), said)
	}
	old, err := keyring("old").unlock(lockOf(t, before))
	if err != nil || old.sameAs(db.vault) {
		t.Errorf("the data key is the one of before, %v", err)
	}
	reopen(t, db) // with the same keys nothing is written anew
	if said.Len() > 0 {
		t.Errorf("the log says %s", said)
	}
}

// lockOf is the lock of a file with the given bytes.
func lockOf(t *testing.T, file []byte) lock {
	t.Helper()
	path := newPath(t)
	writeFile(t, path, file)
	s, err := openSource(Options{Path: path}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.lock == nil {
		t.Fatal("it is not encrypted")
	}
	return *s.lock
}

// TestRotationFails: a disk that takes no copy leaves the file as it is, and usable.
func TestRotationFails(t *testing.T) {
	path, want := filled(t, keyring("old"))
	said := new(bytes.Buffer)
	o := Options{Path: path, Keys: keyring("new", "old"), Log: slog.New(slog.NewTextHandler(said, nil))}
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		if name == path+newSuffix {
			return nil, errors.New("no space left")
		}
		return os.OpenFile(name, flag, mode)
	}
	db := open(t, o)
	holdsAll(t, db, want)
	if !strings.Contains(said.String(), "the old one is still needed") || !strings.Contains(said.String(), "no space left") {
		t.Errorf("the log says %s", said)
	}
	closeDB(t, db)
	if info, err := Info(path, nil); err != nil || info.EncryptionKey != "old" {
		t.Errorf("Info() = %+v, %v", info, err)
	}
	holdsAll(t, open(t, Options{Path: path, Keys: keyring("new", "old")}), want)
	if info := lockOf(t, must(os.ReadFile(path))); info.key != "new" {
		t.Errorf("the next start leaves it encrypted with %q", info.key)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRotationLeavesOutDamage: what cannot be read of a resource is not carried over.
func TestRotationLeavesOutDamage(t *testing.T) {
	path, want := filled(t, keyring("old"))
	tamperWith(t, path, keyring("old"), deployments, func(b *bbolt.Bucket) error {
		k, v := b.Bucket(objectsBucket).Cursor().First()
		v = bytes.Clone(v)
		v[len(v)-1] ^= 1
		return b.Bucket(objectsBucket).Put(bytes.Clone(k), v)
	})
	db, said := openLogged(t, path, keyring("new", "old"))
	if _, err := tryLoad(db, deployments); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Load() = %v, want ErrNoSnapshot", err)
	}
	same(t, "the others", load(t, db, pods), want[pods])
	if !strings.Contains(said.String(), "snapshot dropped, it is damaged") {
		t.Errorf("the log says %s", said)
	}
}

// TestCompactNeedsNoKey: a copy is encrypted as the file was.
func TestCompactNeedsNoKey(t *testing.T) {
	path, want := filled(t, keyring("a"))
	if _, _, err := Compact(path); err != nil {
		t.Fatal(err)
	}
	holdsAll(t, open(t, Options{Path: path, Keys: keyring("a")}), want)
}

// TestEraseEncrypted: what a rule takes away is not even there encrypted, nor in what was
// moved aside because its key was not at hand.
func TestEraseEncrypted(t *testing.T) {
	path, _ := filled(t, keyring("b"))
	db := open(t, Options{Path: path, Keys: keyring("a")})
	commit(t, db, secret(cache.Spec{}, hush))
	_, before := rawObjects(t, db)
	commit(t, db, secret(tight, nil))
	sweep(t, db)
	file := must(os.ReadFile(path))
	for _, v := range before {
		if bytes.Contains(file, v[:100]) {
			t.Fatal("an object of before is still in the file")
		}
	}
	if exists(path + EncryptedSuffix) {
		t.Error("what was moved aside is still there")
	}
	if got := load(t, db, pods); len(got.Records) != 200 {
		t.Errorf("%d objects, want 200", len(got.Records))
	}
	commit(t, db, bulkBatch(deployments, 3))
	reopen(t, db)
}

func rawObjects(t *testing.T, db *DB) (keys, values [][]byte) {
	t.Helper()
	err := db.view(func(tx *bbolt.Tx) error {
		keys, values = contents(bucketAt(tx, rootBucket, resourcesBucket, must(db.vault.resourceName(pods)), objectsBucket))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, values
}

// TestReplacedWhileOpen: an encrypted file that is replaced is so by an encrypted one.
func TestReplacedWhileOpen(t *testing.T) {
	db := open(t, Options{Path: newPath(t), Keys: keyring("a")})
	commit(t, db, threeBatch(60, "111")...)
	before := db.vault
	if err := os.Truncate(db.options.Path, 8192); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(threeBatch(60, "222"), nil); !errors.Is(err, ErrReplaced) {
		t.Fatalf("Commit() = %v, want ErrReplaced", err)
	}
	commit(t, db, threeBatch(3, "333")...)
	if db.vault == nil || db.vault.sameAs(before) {
		t.Error("the new file has no data key of its own")
	}
	db = reopen(t, db)
	if got := load(t, db, pods); len(got.Records) != 3 {
		t.Errorf("%d records, want 3", len(got.Records))
	}
}

// TestSalts: a salt is used for so many values and by one Open, and what was written
// under another can still be read.
func TestSalts(t *testing.T) {
	db := open(t, Options{Path: newPath(t), Keys: keyring("a")})
	salts := func() (all []string) {
		_, values := rawObjects(t, db)
		for _, v := range values {
			if s := string(v[1 : 1+saltSize]); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		return all
	}
	commit(t, db, threeBatch(20, "111")[0])
	if n := len(salts()); n != 1 {
		t.Errorf("%d salts for one commit", n)
	}
	db = reopen(t, db)
	db.vault.uses = saltUses - 3
	commit(t, db, cache.Batch{Saved: savedOf(pods, "222"), Put: threeBatch(10, "222")[0].Put})
	if n := len(salts()); n != 3 {
		t.Errorf("%d salts, want that of before, one that is used up, and one more", n)
	}
	clear(db.vault.salts)
	if got := load(t, db, pods); len(got.Records) != 20 {
		t.Errorf("%d records", len(got.Records))
	}
}

// FuzzShelf: what is altered in any way, or read from elsewhere, is an error, and what is
// not is what was put.
func FuzzShelf(f *testing.F) {
	v := must(newVault(keyring("a").first()))
	f.Add([]byte("ns\x00name"), []byte("value"), 3, byte(1), []byte("anything"))
	f.Add([]byte{}, []byte{}, 60, byte(0), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte, at int, flip byte, noise []byte) {
		s, other := v.shelf(kindObject, []byte("0123456789abcdef")), v.shelf(kindObject, []byte("another resource"))
		stored := s.stored(key)
		sealed := must(s.seal(stored, key, value))
		k, got, err := s.open(stored, sealed)
		if err != nil || !bytes.Equal(k, key) || !bytes.Equal(got, value) {
			t.Fatalf("%q, %q, %v", k, got, err)
		}
		if _, _, err := other.open(stored, sealed); err == nil {
			t.Error("it can be read as another resource's")
		}
		if _, _, err := v.shelf(kindMeta, s.place[1:]).open(stored, sealed); err == nil {
			t.Error("it can be read as of another kind")
		}
		if _, _, err := s.open(append(stored, 0), sealed); err == nil {
			t.Error("it can be read under another key")
		}
		if _, _, err := s.open(stored, noise); err == nil {
			t.Error("anything can be read")
		}
		if flip == 0 {
			return
		}
		sealed[uint(at)%uint(len(sealed))] ^= flip
		if _, _, err := s.open(stored, sealed); err == nil {
			t.Error("it can be read though it was altered")
		}
	})
}
