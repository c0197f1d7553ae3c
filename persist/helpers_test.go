package persist

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

func TestMain(m *testing.M) {
	// All children are started by one goroutine, which lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/informerd/informerd/test/child.startOnLauncher.func1.1"))
}

var (
	pods        = cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	deployments = cache.Resource{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	eastPods    = cache.Resource{Cluster: "east", GVR: pods.GVR}
)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "informerd.db") }

// open opens the file without fsync and checks it once the test is over.
func open(t testing.TB, o Options) *DB {
	t.Helper()
	o.NoSync = true
	db, err := Open(o)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		checkFile(t, o.Path)
	})
	return db
}

// keyring has a key of each name, made of the first letter of it.
func keyring(names ...string) *Keyring {
	k := &Keyring{file: "keys"}
	for _, name := range names {
		k.keys = append(k.keys, fileKey{name, bytes.Repeat([]byte(name[:1]), keySize)})
	}
	return k
}

// bothWays runs a test of a file that is not encrypted, and of one that is.
func bothWays(t *testing.T, test func(*testing.T, *Keyring)) {
	t.Run("plain", func(t *testing.T) { test(t, nil) })
	t.Run("encrypted", func(t *testing.T) { test(t, keyring("a")) })
}

// reopen closes db and opens its file again.
func reopen(t testing.TB, db *DB) *DB {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	checkFile(t, db.options.Path)
	return open(t, db.options)
}

// checkFile holds the file against bbolt's own check, and ours against both.
func checkFile(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return
	}
	b, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Errorf("bbolt.Open() = %v", err)
		return
	}
	defer b.Close()
	err = b.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt's check: %v", err)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if s := check(tx, file, info.Size()); !s.sound() {
			t.Errorf("our check: whole %v, parts %v, rest %v", s.whole, s.parts, s.rest)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// snapshot is all that Load returns.
type snapshot struct {
	Saved   cache.Saved
	Records []cache.Record
}

func load(t testing.TB, db *DB, r cache.Resource) snapshot {
	t.Helper()
	s, err := tryLoad(db, r)
	if err != nil {
		t.Fatalf("Load(%s) = %v", r, err)
	}
	return s
}

func tryLoad(db cache.Snapshots, r cache.Resource) (s snapshot, err error) {
	s.Saved, err = db.Load(r, func(rec cache.Record) error {
		s.Records = append(s.Records, rec)
		return nil
	})
	return s, err
}

func commit(t testing.TB, db *DB, batches ...cache.Batch) {
	t.Helper()
	if err := db.Commit(batches, nil); err != nil {
		t.Fatalf("Commit() = %v", err)
	}
}

// termsAsText has terms compared by what they are.
var termsAsText = cmp.Transformer("term", unique.Handle[cache.Term].Value)

// same compares what is equal in meaning: no terms and an empty list of them.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) { // which is a hundred times faster
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), termsAsText); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func savedOf(r cache.Resource, version string) cache.Saved {
	return cache.Saved{
		Spec: cache.Spec{
			Resource:   r,
			Kind:       "Pod",
			Namespaced: true,
			Watch:      true,
			Indexes:    map[string]string{"node": "spec.nodeName"},
			Drop:       []string{"metadata.managedFields"},
		},
		ResourceVersions: map[string]string{"": version},
		ClusterUID:       "c1",
		ServerVersion:    "v1.36.3",
		Lineage:          "L-" + r.GVR.Resource,
		Terms:            1,
		SavedAt:          time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
	}
}

func interned(terms ...cache.Term) (all []unique.Handle[cache.Term]) {
	for _, t := range terms {
		all = append(all, unique.Make(t))
	}
	return all
}

func record(namespace, name, version string) cache.Record {
	return cache.Record{
		Key:             cache.Key{Namespace: namespace, Name: name},
		UID:             "uid-" + namespace + "-" + name,
		ResourceVersion: version,
		Created:         1_700_000_000,
		Terms: interned(
			cache.Term{Index: cache.NamespaceIndex, Value: namespace},
			cache.Term{Index: cache.LabelIndex, Value: "app=" + name},
			cache.Term{Index: "node", Value: "node-1"},
		),
		Size: 20,
		Data: []byte(`{"version":"` + version + `"}`),
	}
}

// bulk is n records of about 1.1 KB each, in no order.
func bulk(n int) []cache.Record {
	rng := rand.New(rand.NewPCG(1, 2))
	records := make([]cache.Record, n)
	for i := range records {
		records[i] = bulkRecord(rng, i)
	}
	rng.Shuffle(n, func(i, j int) { records[i], records[j] = records[j], records[i] })
	return records
}

func bulkRecord(rng *rand.Rand, i int) cache.Record {
	data := make([]byte, 820+rng.IntN(100))
	for j := range data {
		data[j] = byte(rng.Uint32())
	}
	app := fmt.Sprintf("app-%d", i%300)
	namespace := fmt.Sprintf("team-%d", i%40)
	return cache.Record{
		Key:             cache.Key{Namespace: namespace, Name: fmt.Sprintf("%s-7d4b9c6f58-%05d", app, i)},
		UID:             fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*7919),
		ResourceVersion: fmt.Sprint(1_000_000 + i),
		Created:         1_700_000_000 + int64(i),
		Terms: interned(
			cache.Term{Index: cache.NamespaceIndex, Value: namespace},
			cache.Term{Index: cache.LabelIndex, Value: "app=" + app},
			cache.Term{Index: cache.LabelIndex, Value: "app.kubernetes.io/part-of=shop"},
			cache.Term{Index: cache.LabelIndex, Value: "pod-template-hash=7d4b9c6f58"},
			cache.Term{Index: cache.OwnerIndex, Value: fmt.Sprintf("%08x-1111-4000-8000-000000000000", i%300)},
			cache.Term{Index: "node", Value: fmt.Sprintf("node-%d", i%200)},
			cache.Term{Index: "phase", Value: "Running"},
		),
		Dictionary: 1,
		Size:       7600,
		Data:       data,
	}
}

func bulkBatch(r cache.Resource, n int) cache.Batch {
	b := cache.Batch{Saved: savedOf(r, "1"), Reset: true, Put: bulk(n)}
	b.Saved.Dictionaries = map[uint32][]byte{1: make([]byte, 100<<10)}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// equal is for what Load returned both times.
