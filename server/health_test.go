package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		cache.Stale:     {200, "[!]pods stale: because"},
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
	w.caches.clusters = []cache.ClusterStatus{{Name: "", Discovered: true, Reachable: true}, {Name: "west", Discovered: true, Reachable: true}}
	if rec := w.get(t, "/readyz"); rec.Code != 503 || !strings.Contains(rec.Body.String(), "no resource of cluster west") {
		t.Errorf("readyz = %d %s", rec.Code, rec.Body)
	}
}

// readyz asks and wants code, and parts of the whole text.
func (w *world) readyz(t *testing.T, query string, code int, parts ...string) {
	t.Helper()
	rec := w.get(t, "/readyz?verbose"+query)
	if rec.Code != code {
		t.Errorf("readyz%s = %d, want %d:\n%s", query, rec.Code, code, rec.Body)
	}
	for _, part := range parts {
		if !strings.Contains(rec.Body.String(), part) {
			t.Errorf("readyz%s does not say %q:\n%s", query, part, rec.Body)
		}
	}
}

// TestReadyzSilence: an API server that proves nothing any more is told, whatever
// it does to connections.
func TestReadyzSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		w.pods.status.Proof, w.nodes.status.Proof = began.Add(-20*time.Second), began
		w.readyz(t, "", 200, "[+]cluster ok\n", "[+]pods ok\n")
		for _, r := range []*fakeResource{w.pods, w.nodes} {
			r.set(cache.Stale, "nothing was proven")
		}
		time.Sleep(75 * time.Second)
		w.readyz(t, "", 200, "[+]cluster ok\n", "[!]pods stale")
		time.Sleep(time.Second)
		const says = "the API server has not proven anything current for 76 s"
		w.readyz(t, "", 503, "[-]cluster silent: "+says+"\n", "[!]pods stale: nothing was proven\n", "readyz check failed: "+says+"\n")
		w.readyz(t, "&stale=ok", 200, "[!]cluster silent: "+says+"\n", "readyz check passed")
		w.caches.clusters[0].Reachable, w.caches.clusters[0].Err = false, "connection refused"
		w.readyz(t, "", 503, "[-]cluster silent: "+says+" (unreachable: connection refused)\n")

		var got readiness
		rec := w.get(t, "/readyz", "Accept", "application/json")
		decode(t, rec.Body, &got)
		if c := got.Clusters[0]; got.Ready || c.Ready || c.Reason != says || !c.ProvenTime.Equal(began) {
			t.Errorf("JSON: %+v", got)
		}
		// One that is proven shows that the server answers: the others' fault is
		// their own.
		w.caches.clusters[0].Reachable = true
		w.nodes.set(cache.Live, "")
		w.nodes.status.Proof = time.Now()
		time.Sleep(time.Hour)
		w.readyz(t, "", 200, "[+]cluster ok\n", "[!]pods stale")
	})
}

// TestReadyzWarm: a copy from the snapshot, however old, is something to answer
// from; that the API server does not answer is told after a while.
func TestReadyzWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, r := range []*fakeResource{w.pods, w.nodes} {
			r.set(cache.Warm, "resuming")
			r.status.Since, r.status.Proof = time.Now(), time.Now().Add(-24*time.Hour)
		}
		w.nodes.status.Proof = time.Time{}
		time.Sleep(75 * time.Second)
		w.readyz(t, "", 200, "[+]pods warm: resuming\n")
		time.Sleep(time.Second)
		w.readyz(t, "", 503, "has not proven anything current for 76 s")
		w.readyz(t, "&stale=ok", 200)
	})
}

// TestReadyzOwnFault: what is wrong with one resource holds up nothing else. With
// all of them there is nothing to answer from.
func TestReadyzOwnFault(t *testing.T) {
	w := newWorld(t)
	w.pods.set(cache.Failed, "conversion webhook: connection refused")
	w.readyz(t, "", 200, "[!]pods failed: conversion webhook: connection refused\n")
	w.nodes.set(cache.Failed, "the same")
	w.readyz(t, "", 503, "[-]cluster without data: no resource can be read\n")
	w.readyz(t, "&stale=ok", 503)
}

// TestReadyzClusters: a cluster that is silent, or comes later, is named, and does not take
// the others from those who read them.
func TestReadyzClusters(t *testing.T) {
	w := newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true, Reachable: true}, {Name: "west", Discovered: true, Reachable: true}}
	w.pods.spec.Cluster, w.secrets.spec.Cluster, w.events.spec.Cluster, w.nodes.spec.Cluster = "east", "east", "east", "west"
	w.readyz(t, "", 200, "[+]cluster east ok\n", "[+]cluster west ok\n")
	w.nodes.set(cache.Stale, "")
	w.nodes.status.Proof = time.Now().Add(-100 * time.Second)
	w.readyz(t, "", 200, "[+]cluster east ok\n", "[!]cluster west silent: the API server of cluster west has not proven anything current for 100 s\n", "readyz check passed\n")
	w.caches.clusters = append(w.caches.clusters, cache.ClusterStatus{Name: "north", Reachable: true, Since: time.Now()})
	w.readyz(t, "", 200, "[!]cluster north undiscovered: no resource of cluster north has been discovered yet\n")
	for _, c := range []*fakeResource{w.pods, w.secrets, w.events} {
		c.set(cache.Stale, "")
		c.status.Proof = time.Now().Add(-100 * time.Second)
	}
	w.readyz(t, "", 503, "[-]cluster east silent", "[-]cluster north undiscovered", "readyz check failed: the API server of cluster east")
	w.readyz(t, "&stale=ok", 200, "[!]cluster east silent", "[!]cluster west silent")
}

// TestReadyzWithout: a cluster that lets nothing be read does not hold up the start of the
// others, and one that has no data yet does so for some minutes.
func TestReadyzWithout(t *testing.T) {
	w := newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true, Reachable: true}, {Name: "west", Discovered: true, Reachable: true}}
	w.pods.spec.Cluster, w.secrets.spec.Cluster, w.events.spec.Cluster, w.nodes.spec.Cluster = "east", "east", "east", "west"
	w.nodes.set(cache.Syncing, "")
	w.readyz(t, "", 503, "[-]cluster west syncing: 1 of 1 resources of cluster west have no data yet")
	w.began = time.Now().Add(-startLimit - time.Second)
	w.readyz(t, "", 200, "[!]cluster west syncing")
	w = newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true, Reachable: true}, {Name: "west", Discovered: true, Reachable: true}}
	w.pods.spec.Cluster, w.secrets.spec.Cluster, w.events.spec.Cluster, w.nodes.spec.Cluster = "east", "east", "east", "west"
	w.nodes.set(cache.Forbidden, "nodes is forbidden")
	w.readyz(t, "", 200, "[+]cluster east ok\n", "[!]cluster west without data")
}

// TestReadyzStartsWithAll: at the start all clusters that answer are waited for, and one
// that does not is not.
func TestReadyzStartsWithAll(t *testing.T) {
	w := newWorld(t)
	began := time.Now()
	w.caches.clusters = []cache.ClusterStatus{
		{Name: "east", Discovered: true, Reachable: true},
		{Name: "west", Err: "not connected yet", Since: began},
	}
	for _, c := range []*fakeResource{w.pods, w.secrets, w.events, w.nodes} {
		c.spec.Cluster = "east"
	}
	w.readyz(t, "", 503, "[+]cluster east ok\n", "[-]cluster west undiscovered", "readyz check failed: no resource of cluster west")
	w.caches.clusters[1].Since = began.Add(-time.Minute)
	w.readyz(t, "&stale=ok", 200, "[+]cluster east ok\n", "[!]cluster west undiscovered")
	w.caches.clusters[1].Reachable = true
	w.readyz(t, "", 200, "[!]cluster west undiscovered")
}
