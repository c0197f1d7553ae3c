package server

import (
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

func TestLivez(t *testing.T) {
	w := newWorld(t)
	w.caches.resources, w.caches.clusters = nil, nil
	if rec := w.get(t, "/livez"); rec.Code != 200 || rec.Body.String() != "ok\n" {
		t.Errorf("livez = %d %s", rec.Code, rec.Body)
	}
}

func TestReadyz(t *testing.T) {
	for state, want := range map[cache.State]struct {
		code int
		line string
	}{
		cache.Unwatched: {200, ""},
		cache.Syncing:   {503, "[-]pods syncing: because"},
		cache.Warm:      {200, "[+]pods warm: because"},
		cache.Live:      {200, "[+]pods ok"},
		cache.Stale:     {200, "[+]pods stale: because"},
		cache.Forbidden: {200, "[!]pods forbidden: because"},
		cache.Failed:    {200, "[!]pods failed: because"},
	} {
		w := newWorld(t)
		w.pods.set(state, "because")
		if rec := w.get(t, "/readyz"); rec.Code != want.code {
			t.Errorf("%s: readyz = %d, want %d", state, rec.Code, want.code)
		} else if want.code == 200 && rec.Body.String() != "ok\n" {
			t.Errorf("%s: readyz = %s", state, rec.Body)
		} else if want.code == 503 && (!strings.Contains(rec.Body.String(), want.line) || rec.Header().Get("Retry-After") == "") {
			t.Errorf("%s: readyz = %v %s", state, rec.Header(), rec.Body)
		}
		body := w.get(t, "/readyz?verbose").Body.String()
		if !strings.Contains(body, want.line+"\n") {
			t.Errorf("%s: verbose = %s", state, body)
		}
		if want.line == "" && strings.Contains(body, "pods") {
			t.Errorf("%s: verbose = %s", state, body)
		}
	}
}

func TestReadyzExplains(t *testing.T) {
	w := newWorld(t)
	w.caches.clusters[0] = cache.ClusterStatus{Discovered: true, Server: "https://127.0.0.1:1", Err: "connection refused"}
	w.caches.snapshot = cache.SnapshotStatus{Enabled: true, Err: "no space left on device"}
	w.pods.set(cache.Syncing, "two\nlines")
	body := w.get(t, "/readyz").Body.String()
	for _, line := range []string{
		"[!]cluster unreachable: connection refused\n", "[!]snapshot failing: no space left on device\n",
		"[-]pods syncing: two lines\n", "[!]secrets forbidden: secrets is forbidden\n", "[+]nodes ok\n",
		"readyz check failed: 1 of 3 resources have no data yet\n",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("%q is missing in\n%s", line, body)
		}
	}
	var got readiness
	rec := w.get(t, "/readyz", "Accept", "application/json")
	decode(t, rec.Body, &got)
	if rec.Code != 503 || got.Ready || got.Clusters[0].Error != "connection refused" || got.Snapshot.Error == "" || len(got.Resources) != 3 {
		t.Errorf("JSON: %d %+v", rec.Code, got)
	}
	for _, res := range got.Resources {
		if res.Ready != (res.Name != "pods") {
			t.Errorf("resource %+v", res)
		}
	}
	w.caches.snapshot = cache.SnapshotStatus{Reason: "the file is locked by another process"}
	if body := w.get(t, "/readyz").Body.String(); !strings.Contains(body, "[!]snapshot off: the file is locked by another process\n") {
		t.Error(body)
	}
}

func TestNotReadyBeforeDiscovery(t *testing.T) {
	w := newWorld(t)
	w.caches.resources = nil
	if rec := w.get(t, "/readyz"); rec.Code != 503 || !strings.Contains(rec.Body.String(), "no resource has been discovered yet") {
		t.Errorf("readyz = %d %s", rec.Code, rec.Body)
	}
	w = newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "", Discovered: true, Reachable: true}, {Name: "west", Discovered: true, Err: "refused"}}
	if rec := w.get(t, "/readyz"); rec.Code != 503 || !strings.Contains(rec.Body.String(), "no resource of cluster west") {
		t.Errorf("readyz = %d %s", rec.Code, rec.Body)
	}
}
