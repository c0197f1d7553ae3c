package e2e

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestSnapshotTrouble: whatever is wrong with the snapshot file, informerd
// starts, says so once, and serves what the API server has.
func TestSnapshotTrouble(t *testing.T) {
	inTurn(t, &smallLane, &doubleLane)
	c := smallCluster(t)
	createNamespace(t, c, "trouble")
	for n := range 40 {
		name := fmt.Sprintf("trouble-%d-%d", fresh(), n)
		createConfigMap(t, c, "trouble", name, map[string]string{"app": "trouble"}, map[string]any{"text": strings.Repeat(name, 50)})
	}
	good := filepath.Join(t.TempDir(), "good.db")
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: good})
	i.WaitLive(t, syncTime)
	waitSaved(t, i)
	i.Stop()
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}

	write := func(t *testing.T, data []byte) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "informerd.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := func(damage func([]byte) []byte) func(*testing.T) string {
		return func(t *testing.T) string { return write(t, damage(append([]byte(nil), data...))) }
	}
	cases := []struct {
		name string
		path func(*testing.T) string
		// off: snapshots are off while it runs, and readyz and metrics say so.
		off bool
		// said is how many log lines speak of it at least.
		said int
		// again: it is started again on what it left behind.
		again bool
	}{
		{name: "truncated", path: damaged(func(b []byte) []byte { return b[:len(b)/2] }), said: 1, again: true},
		{name: "truncated to a page", path: damaged(func(b []byte) []byte { return b[:4096] }), said: 1},
		{name: "empty", path: damaged(func([]byte) []byte { return nil })},
		{name: "no snapshot at all", path: damaged(func([]byte) []byte { return []byte(strings.Repeat("not a database\n", 1000)) }), said: 1},
		{name: "meta pages flipped", path: damaged(func(b []byte) []byte { b[20] ^= 0xff; b[4096+20] ^= 0xff; return b }), said: 1},
		{name: "bits flipped", path: damaged(func(b []byte) []byte {
			for at := 3 * 4096; at < len(b); at += 1999 {
				b[at] ^= 0x10
			}
			return b
		}), said: 1, again: true},
		{name: "newer format", path: func(t *testing.T) string {
			path := write(t, data)
			newerFormat(t, path)
			return path
		}, off: true, said: 1},
		{name: "a directory", path: func(t *testing.T) string { return t.TempDir() }, off: true, said: 1},
		{name: "in a file", path: func(t *testing.T) string { return filepath.Join(write(t, nil), "informerd.db") }, off: true, said: 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: tc.path(t)})
			i.WaitLive(t, syncTime)
			harness.CheckEqual(t, c, i, harness.Check{})
			if !tc.off {
				waitSaved(t, i)
			}
			checkSnapshotSaid(t, i, tc.off, tc.said)
			if !tc.again {
				return
			}
			i.Stop()
			// What it left behind is sound.
			mark := c.AuditMark(t)
			i.Start()
			i.WaitLive(t, syncTime)
			checkNoLists(t, c, mark)
			harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps", "secrets"}})
		})
	}

	t.Run("in use", func(t *testing.T) {
		path := write(t, data)
		first := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: path})
		first.WaitLive(t, syncTime)
		second := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: path})
		second.WaitLive(t, syncTime)
		harness.CheckEqual(t, c, second, harness.Check{})
		harness.CheckEqual(t, c, first, harness.Check{Resources: []string{"configmaps"}})
		checkSnapshotSaid(t, second, true, 1)
		checkSnapshotSaid(t, first, false, 0)
	})
	t.Run("of another cluster", func(t *testing.T) {
		other := doubleCluster(t)
		i := harness.StartInformerd(t, harness.Options{Kubeconfig: other.Kubeconfig("admin"), Snapshot: write(t, data)})
		i.WaitLive(t, syncTime)
		harness.CheckEqual(t, other, i, harness.Check{})
		if list, err := i.List("configmaps", "namespace=trouble"); err != nil || len(list.Items) > 0 {
			t.Errorf("objects of another cluster: %d, %v", len(list.Items), err)
		}
		if r := i.Resource(t, "configmaps"); r.Snapshot.Drops != 1 || !strings.Contains(r.Snapshot.DropReason, "another cluster") {
			t.Errorf("snapshot of configmaps: %+v", r.Snapshot)
		}
	})
}

// newerFormat makes the file one of a later informerd: docs/FORMAT.md draws the
// one value that all versions can read.
func newerFormat(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	value := binary.LittleEndian.AppendUint32([]byte("informerd snapshot\n"), 1000)
	value = binary.LittleEndian.AppendUint32(value, crc32.Checksum(value, crc32.MakeTable(crc32.Castagnoli)))
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("informerd")).Put([]byte("format"), value) })
	if err != nil {
		t.Fatal(err)
	}
}

// checkSnapshotSaid fails the test unless log, readyz and metrics tell of the
// snapshot what is true.
func checkSnapshotSaid(t *testing.T, i *harness.Informerd, off bool, said int) {
	t.Helper()
	lines := i.LogLines("level=WARN", "snapshot")
	lines = append(lines, i.LogLines("level=ERROR", "snapshot")...)
	if len(lines) < said || said == 0 && len(lines) > 0 {
		t.Errorf("the log says %d times that something is wrong with the snapshot, want %d: %q", len(lines), said, lines)
	}
	seen := map[string]bool{}
	for _, line := range lines {
		_, message, _ := strings.Cut(line, "level=")
		if seen[message] {
			t.Errorf("said twice: %s", line)
		}
		seen[message] = true
	}
	ready := string(i.MustGet(t, "/readyz?verbose").Body)
	if shown := strings.Contains(ready, "[!]snapshot off: "); shown != off {
		t.Errorf("readyz shows the snapshot as off: %t, want %t:\n%.300s", shown, off, ready)
	}
	metrics := i.MustGet(t, "/metrics")
	want := "informerd_snapshot_enabled 1"
	if off {
		want = "informerd_snapshot_enabled 0"
	}
	if metrics.Status != http.StatusOK || !strings.Contains(string(metrics.Body), want) {
		t.Errorf("metrics (%d) lack %q", metrics.Status, want)
	}
}
