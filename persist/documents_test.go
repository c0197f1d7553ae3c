package persist

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

func document(cluster, uri, data string) cache.Document {
	return cache.Document{
		DocumentKey: cache.DocumentKey{Cluster: cluster, URI: uri, Accept: "application/json"},
		ContentType: "application/json", ETag: `"e"`, Fetched: time.Unix(1_700_000_000, 0), Data: []byte(data),
	}
}

func saveDocument(t testing.TB, db *DB, d cache.Document, forget ...cache.DocumentKey) {
	t.Helper()
	if err := db.SaveDocument(d, forget); err != nil {
		t.Fatal(err)
	}
}

func documents(t testing.TB, db *DB) []cache.Document {
	t.Helper()
	all, err := db.Documents()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDocuments(t *testing.T) {
	db := open(t, Options{Path: newPath(t)})
	if all := documents(t, db); len(all) != 0 {
		t.Errorf("an empty file has %v", all)
	}
	large := document("", "/openapi/v2", strings.Repeat("0123456789abcdef", 1<<16))
	first, second := document("", "/openapi/v3?hash=1", "1"), document("east", "/version", "")
	for _, d := range []cache.Document{first, large, second} {
		saveDocument(t, db, d)
	}
	db = reopen(t, db)
	same(t, "documents", documents(t, db), []cache.Document{large, first, second})

	changed := document("", "/openapi/v3?hash=2", "2")
	saveDocument(t, db, changed, first.DocumentKey, cache.DocumentKey{URI: "/nothing"})
	second.Data = []byte("again")
	saveDocument(t, db, second)
	db = reopen(t, db)
	same(t, "documents", documents(t, db), []cache.Document{large, changed, second})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := Info(db.options.Path, nil); err != nil || info.Documents != 3 {
		t.Errorf("Info() = %+v, %v", info, err)
	}
	db = open(t, db.options)

	if err := db.SaveDocument(document("", "a\x00b", ""), nil); err == nil {
		t.Error("a key with NUL was saved")
	}
}

// TestDocumentsCompacted: a compacted file has its documents.
func TestDocumentsCompacted(t *testing.T) {
	db, _ := wasteful(t)
	want := document("", "/version", "v")
	saveDocument(t, db, want)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(db.options.Path); err != nil {
		t.Fatal(err)
	}
	same(t, "documents", documents(t, open(t, Options{Path: db.options.Path})), []cache.Document{want})
}

// TestDocumentDamaged: a damaged document is left out, and Verify names it; what
// is damaged in their pages costs no resource.
func TestDocumentDamaged(t *testing.T) {
	path := newPath(t)
	db := open(t, Options{Path: path})
	commit(t, db, threeBatch(20, "1")...)
	resources := loadThree(t, db)
	sound, marked := document("", "/a", "sound"), document("", "/b", strings.Repeat("marked", 2000))
	saveDocument(t, db, sound)
	saveDocument(t, db, marked)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(whole, bytes.Repeat([]byte("marked"), 100))

	image := bytes.Clone(whole)
	image[at] ^= 1
	writeFile(t, path, image)
	report, err := Verify(path, nil)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].String(), "/b") {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
	db = open(t, Options{Path: path})
	same(t, "documents", documents(t, db), []cache.Document{sound})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	image = bytes.Clone(whole)
	page := image[bytes.LastIndex(image, []byte("\x00/b\x00"))/4096*4096:]
	page[8] ^= 0xFF // its flags
	writeFile(t, path, image)
	db = open(t, Options{Path: path})
	same(t, "resources", loadThree(t, db), resources)
	same(t, "documents", documents(t, db), []cache.Document(nil))
	saveDocument(t, db, sound)
	same(t, "documents", documents(t, db), []cache.Document{sound})
}

// TestForgetDocuments: of a cluster that is gone nothing is left in the file after Sweep,
// and of others everything is.
func TestForgetDocuments(t *testing.T) {
	bothWays(t, func(t *testing.T, keys *Keyring) {
		path := newPath(t)
		db := open(t, Options{Path: path, Keys: keys})
		commit(t, db, bulkBatch(deployments, 3))
		kept := document("east", "/version", "kept-for-good")
		saveDocument(t, db, kept)
		saveDocument(t, db, document("west", "/version", "taken-away-1"))
		saveDocument(t, db, document("west", "/openapi/v3", "taken-away-2"))
		if err := db.ForgetDocuments("west"); err != nil {
			t.Fatal(err)
		}
		sweep(t, db)
		same(t, "documents", documents(t, db), []cache.Document{kept})
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if keys == nil && (bytes.Contains(data, []byte("taken-away")) || !bytes.Contains(data, []byte("kept-for-good"))) {
			t.Error("the file does not hold what it is to hold")
		}
		if err := db.ForgetDocuments("north"); err != nil {
			t.Error(err)
		}
		if got := load(t, db, deployments); len(got.Records) != 3 {
			t.Errorf("%d objects, want 3", len(got.Records))
		}
	})
}
