package main

import (
	"bytes"
	"encoding/json"
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
	}})
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
	if err != nil || !strings.Contains(out, "deployments.apps") || !strings.Contains(out, "4711") {
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
