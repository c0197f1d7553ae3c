package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/persist"
)

func runSnapshot(args ...string) (string, error) {
	cmd := newSnapshotCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestSnapshotCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "informerd.db")
	db, err := persist.Open(persist.Options{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	r := cache.Resource{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	data := bytes.Repeat([]byte("data"), 100)
	err = db.Commit([]cache.Batch{{
		Saved: cache.Saved{Spec: cache.Spec{Resource: r}, ResourceVersions: map[string]string{"": "4711"}},
		Reset: true,
		Put:   []cache.Record{{Key: cache.Key{Namespace: "shop", Name: "web"}, Data: data}},
	}}, []cache.LedgerChange{{Name: "to-chat", Put: []cache.LedgerEntry{{Key: []byte("k"), Value: []byte("v")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := runSnapshot("info", path); err == nil || !strings.Contains(out, "in use") {
		t.Errorf("info beside a running informerd: %v\n%s", err, out)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	out, err := runSnapshot("info", path)
	if err != nil || !strings.Contains(out, "deployments.apps") || !strings.Contains(out, "4711") || !strings.Contains(out, "to-chat") {
		t.Errorf("info: %v\n%s", err, out)
	}
	out, err = runSnapshot("info", path, "-o", "json")
	var info persist.FileInfo
	if err != nil || json.Unmarshal([]byte(out), &info) != nil || info.Resources[0].Objects != 1 {
		t.Errorf("info -o json: %v\n%s", err, out)
	}
	if out, err := runSnapshot("compact", path); err != nil {
		t.Errorf("compact: %v\n%s", err, out)
	}
	if out, err := runSnapshot("verify", path); err != nil || !strings.Contains(out, "sound") {
		t.Errorf("verify: %v\n%s", err, out)
	}

	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file[bytes.Index(file, data)] ^= 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = runSnapshot("verify", path)
	if err == nil || !strings.Contains(out, "deployments.v1.apps: object shop/web: checksum") {
		t.Errorf("verify of a damaged file: %v\n%s", err, out)
	}
	if _, err := runSnapshot("info", path, "-o", "xml"); err == nil {
		t.Error("-o xml was taken")
	}
}

// writeKeys writes a key file with a key of each name, which is made of that name.
func writeKeys(t *testing.T, path string, names ...string) {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name[:1], 32))) + "\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotCommandsEncrypted: the name of the key is shown to everybody, all else to
// who has it.
func TestSnapshotCommandsEncrypted(t *testing.T) {
	dir := t.TempDir()
	path, right, wrong := dir+"/informerd.db", dir+"/keys", dir+"/wrong"
	writeKeys(t, right, "new", "old")
	writeKeys(t, wrong, "other")
	keys, err := persist.ReadKeys(right)
	if err != nil {
		t.Fatal(err)
	}
	db, err := persist.Open(persist.Options{Path: path, NoSync: true, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	r := cache.Resource{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	err = errors.Join(db.Commit([]cache.Batch{{
		Saved: cache.Saved{Spec: cache.Spec{Resource: r}, ResourceVersions: map[string]string{"": "4711"}},
		Reset: true,
		Put:   []cache.Record{{Key: cache.Key{Namespace: "shop", Name: "web"}, Data: []byte("{}")}},
	}}, nil), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		say, hide string
		fails     bool
	}{
		{[]string{"info", path}, `with the key "new"`, "deployments", false},
		{[]string{"info", path, "--key-file", right}, "deployments.apps", "damaged", false},
		{[]string{"info", path, "--key-file", wrong}, "other", "deployments", true},
		{[]string{"info", path, "--key-file", dir + "/none"}, "no such file", "deployments", true},
		{[]string{"info", path, "-o", "json"}, `"encryptionKey": "new"`, "deployments", false},
		{[]string{"verify", path}, "--key-file", "deployments", true},
		{[]string{"verify", path, "--key-file", right}, "sound: 1 objects of 1 resources", "damaged", false},
		{[]string{"compact", path}, "was", "deployments", false},
		{[]string{"verify", path, "--key-file", right}, "sound: 1 objects of 1 resources", "damaged", false},
	} {
		out, err := runSnapshot(c.args...)
		if (err != nil) != c.fails || !strings.Contains(out, c.say) || strings.Contains(out, c.hide) {
			t.Errorf("%v: %v, want it to say %q and not %q\n%s", c.args, err, c.say, c.hide, out)
		}
	}
}
