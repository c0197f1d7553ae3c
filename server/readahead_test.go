package server

import (
	"net/http"
	"testing"

	"github.com/informerd/informerd/cache"
)

// aheadOf has the pods of w answer ahead of a snapshot, of which all is found: a Resource may find
// more than is asked for.
func aheadOf(w *world) (asked *int) {
	asked = new(int)
	w.pods.set(cache.Syncing, "starting")
	w.pods.ahead = func(cache.Query) *cache.View {
		*asked++
		v := &cache.View{Spec: w.pods.spec, State: cache.Warm, Reason: "the rest is being read"}
		return v.Hold(w.pods.store)
	}
	return asked
}

// TestReadAhead: what a resource has ahead of its snapshot is answered with, and is filtered like
// anything else.
func TestReadAhead(t *testing.T) {
	w := newWorld(t)
	aheadOf(w)
	for target, want := range map[string]string{
		"/v1/resources/pods/indexes/node/n1":             "one three",
		"/v1/resources/pods/indexes/node/n1?namespace=b": "three",
		"/v1/resources/pods/indexes/label/app=web":       "one three",
		"/v1/resources/pods/objects?namespace=a":         "one two",
		"/v1/resources/pods/objects?index=node:n2":       "two",
	} {
		var l podList
		h := w.getJSON(t, target, &l)
		if l.names() != want || h.Get(cache.StateHeader) != "warm" {
			t.Errorf("GET %s = %q (%s), want %q, warm", target, l.names(), h.Get(cache.StateHeader), want)
		}
	}
	if rec := w.get(t, "/v1/resources/pods/indexes/nod/n1"); rec.Code != http.StatusNotFound {
		t.Errorf("GET of an index that there is not = %d %s, want 404", rec.Code, rec.Body)
	}
}

// TestNotReadAhead: answers that others refer to, or that refer to others, wait for the snapshot.
func TestNotReadAhead(t *testing.T) {
	w := newWorld(t)
	asked := aheadOf(w)
	for _, target := range []string{
		"/v1/resources/pods/indexes/node/n1?limit=1",
		"/v1/resources/pods/indexes/node/n1?resourceVersion=100",
		"/v1/resources/pods/indexes/node/n1?explain=true",
		"/v1/resources/pods/indexes/node/n1?watch=true",
		"/v1/resources/pods/objects/a/one",
		"/v1/resources/pods/indexes/node",
	} {
		wantStatus(t, w.get(t, target), http.StatusServiceUnavailable, "ServiceUnavailable", "no data yet")
	}
	if *asked != 0 {
		t.Errorf("%d of them were read ahead", *asked)
	}
}

// TestReadAheadSeen: who may see a part sees that part ahead of the snapshot, too, and who may see
// nothing is refused before anything is read.
func TestReadAheadSeen(t *testing.T) {
	w := newGuarded(t, jane())
	asked := aheadOf(w)
	var l podList
	if h := w.getJSON(t, "/v1/resources/pods/indexes/node/n1", &l); l.names() != "one" {
		t.Errorf("jane sees %q (%v), want what is in a", l.names(), h)
	}
	before := *asked
	if rec := w.get(t, "/v1/resources/pods/objects?namespace=b"); rec.Code != http.StatusForbidden || *asked != before {
		t.Errorf("GET of what jane may not see = %d %s, read %d times", rec.Code, rec.Body, *asked-before)
	}
}
