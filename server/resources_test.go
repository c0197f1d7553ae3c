package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cache"
)

var update = flag.Bool("update", false, "write golden files")

// golden compares with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestResourcesGolden(t *testing.T) {
	w := newWorld(t)
	w.pods.status.Relists, w.pods.status.Expired, w.pods.status.SnapshotAt = 2, 1, then.Add(time.Minute)
	w.pods.spec.Namespaces = []string{"team-*"}
	w.secrets.spec.Redact = []string{"data", "stringData"}
	w.nodes.set(cache.Stale, "the watch is down")
	w.secrets.status.SnapshotDrops, w.secrets.status.SnapshotReason = 1, "snapshot is damaged"
	body := w.get(t, "/v1/resources?pretty").Body.Bytes()
	var lines [][]byte
	for line := range bytes.Lines(body) {
		for _, moving := range []string{`"age":`, `"provenTime":`, `"lastEventTime":`, `"bytes":`} {
			if i := bytes.Index(line, []byte(moving)); i >= 0 {
				line = append(line[:i:i], moving+" ...\n"...)
			}
		}
		lines = append(lines, line)
	}
	golden(t, "resources.json", bytes.Join(lines, nil))
}

func TestOneResourceIsOneItem(t *testing.T) {
	w := newWorld(t)
	var all struct{ Items []map[string]any }
	w.getJSON(t, "/v1/resources", &all)
	for _, item := range all.Items {
		var one map[string]any
		h := w.getJSON(t, "/v1/resources/"+item["name"].(string), &one)
		delete(one, "age")
		delete(item, "age")
		if d := cmp.Diff(item, one); d != "" {
			t.Error(d)
		}
		if h.Get("Informerd-State") != one["state"] {
			t.Errorf("%s: Informerd-State = %q", one["name"], h.Get("Informerd-State"))
		}
	}
}

func TestTimeAloneDoesNotChangeTheTag(t *testing.T) {
	w := newWorld(t)
	tag := w.get(t, "/v1/resources").Header().Get("ETag")
	w.pods.status.Proof = time.Now()
	w.pods.status.SnapshotAt = time.Now()
	if rec := w.get(t, "/v1/resources", "If-None-Match", tag); rec.Code != 304 {
		t.Errorf("code %d", rec.Code)
	}
	for _, change := range []func(){
		func() { w.pods.set(cache.Stale, "down") },
		func() { w.pods.status.Proof = time.Now() },
		func() { w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 110)) },
	} {
		before := w.get(t, "/v1/resources").Header().Get("ETag")
		change()
		if rec := w.get(t, "/v1/resources", "If-None-Match", before); rec.Code != 200 {
			t.Errorf("code %d", rec.Code)
		}
	}
}

func TestResourcesOfOneCluster(t *testing.T) {
	w := newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true}, {Name: "west", Discovered: true}}
	w.pods.spec.Cluster = "east"
	var got struct{ Items []map[string]any }
	w.getJSON(t, "/v1/resources?cluster=east", &got)
	if len(got.Items) != 1 || got.Items[0]["cluster"] != "east" {
		t.Errorf("items %v", got.Items)
	}
}

func TestIndexes(t *testing.T) {
	w := newWorld(t)
	body := w.get(t, "/v1/resources/pods/indexes").Body.String()
	want := `{"kind":"IndexList","apiVersion":"informerd/v1","metadata":{"resourceVersion":"100"},"items":[` +
		`{"name":"namespace","values":2},{"name":"label","values":2},{"name":"owner","values":0},` +
		`{"name":"image","path":"spec.containers[*].image","values":1},{"name":"node","path":"spec.nodeName","values":2}]}` + "\n"
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]string{
		"node":                              `"metadata":{"resourceVersion":"100"},"items":[{"value":"n1","objects":2},{"value":"n2","objects":1}]`,
		"label?prefix=app%3Dw":              `"metadata":{"resourceVersion":"100"},"items":[{"value":"app=web","objects":2}]`,
		"label?limit=1":                     `"metadata":{"resourceVersion":"100","continue":"dmFwcD1kYg","truncated":true},"items":[{"value":"app=db","objects":1}]`,
		"label?limit=1&continue=dmFwcD1kYg": `"metadata":{"resourceVersion":"100"},"items":[{"value":"app=web","objects":2}]`,
		"label?limit=2":                     `"metadata":{"resourceVersion":"100"},"items":[{"value":"app=db","objects":1},{"value":"app=web","objects":2}]`,
		"owner":                             `"metadata":{"resourceVersion":"100"},"items":[]`,
	} {
		got := w.get(t, "/v1/resources/pods/indexes/"+path).Body.String()
		if want = `{"kind":"IndexValueList","apiVersion":"informerd/v1",` + want + "}\n"; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
	if err := w.pods.store.SetIndexes(map[string]string{"phase": "status.phase"}); err != nil {
		t.Fatal(err)
	}
	if got := w.get(t, "/v1/resources/pods/indexes/phase").Body.String(); !strings.Contains(got, `{"value":"Running","objects":3}`) {
		t.Errorf("got %s", got)
	}
	var pretty json.RawMessage
	w.getJSON(t, "/v1/resources/pods/indexes/phase?pretty", &pretty)
}
