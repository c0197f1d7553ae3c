package server

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// cutAt is a client that leaves when it has read mark.
type cutAt struct {
	*httptest.ResponseRecorder
	mark string
	cut  context.CancelFunc
}

func (c *cutAt) Write(p []byte) (int, error) {
	n, err := c.ResponseRecorder.Write(p)
	if c.mark != "" && bytes.Contains(c.Body.Bytes(), []byte(c.mark)) {
		c.cut()
	}
	return n, err
}

// one asks for target, up to mark if that is not "".
func (w *world) one(t *testing.T, target, mark string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path, table := strings.CutPrefix(target, "table of ")
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Host = "localhost:8080"
	if table {
		r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	}
	out := &cutAt{httptest.NewRecorder(), mark, cancel}
	w.Handler().ServeHTTP(out, r)
	return out.ResponseRecorder
}

// TestOneView: an answer is made of one View of each resource, however many
// different ones follow each other while it is made. A state from one and objects
// from another would make an empty list of a resource that is not empty, and of
// a copy that is old one that is live.
func TestOneView(t *testing.T) {
	for _, test := range []struct {
		target, mark string
		full, empty  string // what is in an answer of either
	}{
		{"/v1/resources/pods", "", `"objects":3`, `"objects":0`},
		{"/v1/resources/pods/objects", "", `"resourceVersion":"100"`, `"resourceVersion":"200"`},
		{"/v1/resources/pods/objects?limit=2", "", `"continue"`, `"resourceVersion":"200"`},
		{"/v1/resources/pods/objects?facets=spec.nodeName", "", `"value":"n1","objects":2`, `"values":[]`},
		{"/v1/resources/pods/objects?groupBy=spec.nodeName", "", `"n1"`, `"items":[]`},
		{"/v1/resources/pods/objects?view=table", "", `"three"`, `"items":[]`},
		{"/v1/resources/pods/objects?explain=true", "", `"matched":3`, `"matched":0`},
		{"/v1/resources/pods/objects/a/one", "", `"uid-a-one"`, `not found`},
		{"/v1/resources/pods/indexes", "", `"name":"node"`, `"name":"node"`},
		{"/v1/resources/pods/indexes/node", "", `"value":"n1"`, `"items":[]`},
		{"/v1/resources/pods/indexes/node/n1", "", `"three"`, `"items":[]`},
		{"/v1/resources/pods/objects?watch=true", "BOOKMARK", `"three"`, `"resourceVersion":"200"`},
		{"/v1/resources/pods/objects?watch=true&facets=spec.nodeName", "event: FACETS", `"value":"n1","objects":2`, `"values":[]`},
		{"/v1/resources/pods/objects?watch=true&groupBy=spec.nodeName", "event: GROUPS", `"n1"`, `"items":[]`},
		{"/v1/query?resources=pods", "", `"resourceVersion":"100"`, `"resourceVersion":"200"`},
		{"/v1/query?resources=pods&view=table", "", `"three"`, `"items":[]`},
		{"/v1/query?resources=pods&groupBy=spec.nodeName", "", `"n1"`, `"items":[]`},
		{"/v1/query?resources=pods&watch=true&facets=spec.nodeName", "event: FACETS", `"value":"n1","objects":2`, `"values":[]`},
		{"/v1/graph/pods/a/one", "", `"uid-a-one"`, `not found`},
		{"/v1/graph/dangling", "", `"items"`, `"items"`},
		{"/v1/health?all&status=good,progressing", "", `"kind":"Pod","good":0,"progressing":3`, `"progressing":0`},
		{"/v1/health/pods/a/one", "", `"id":"pods/a/one"`, `not found`},
		{"/v1/search?q=three", "", `"total":1`, `"total":0`},
		{"/v1/complete?for=resources&prefix=pods", "", `"objects":3`, `"objects":0`},
		{"/v1/complete?for=paths&resource=pods&prefix=spec.n", "", `spec.nodeName`, `"items":[]`},
		{"/v1/complete?for=values&resource=pods&path=spec.priority", "", `"of":3`, `"items":[]`},
		{"/api/v1/pods", "", `"resourceVersion":"100"`, `"resourceVersion":"200"`},
		{"/api/v1/pods?limit=2", "", `"continue"`, `"resourceVersion":"200"`},
		{"table of /api/v1/pods", "", `"three"`, `"rows":[]`},
		{"/api/v1/namespaces/a/pods/one", "", `"uid-a-one"`, `not found`},
		{"table of /api/v1/namespaces/a/pods/one", "", `"uid-a-one"`, `not found`},
		{"/api/v1/pods?watch=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true", "BOOKMARK", `"three"`, `"resourceVersion":"200"`},
	} {
		t.Run(test.target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				other := newResource(t, w.pods.spec, cache.Stale)
				other.replace(t, "200")
				for i, first := range []string{"100", "200"} {
					views := []*cache.View{
						(&cache.View{Spec: w.pods.spec, State: cache.Live, Proof: time.Now()}).Hold(w.pods.store),
						(&cache.View{Spec: w.pods.spec, State: cache.Stale, Reason: "watch down", Proof: time.Now().Add(-time.Hour)}).Hold(other.store),
					}
					w.pods.views, w.pods.taken = append(views[i:], views[:i]...), 0
					rec := w.one(t, test.target, test.mark)
					if w.pods.taken != 1 {
						t.Errorf("%d Views were taken, want 1", w.pods.taken)
					}
					want, state := test.full, "live"
					if first == "200" {
						want, state = test.empty, "stale"
					}
					if !strings.Contains(rec.Body.String(), want) {
						t.Errorf("the View at %s is answered with %d %s, want %s", first, rec.Code, rec.Body, want)
					}
					if got := rec.Header().Get("Informerd-State"); got != "" && got != state {
						t.Errorf("the answer from the View at %s says %s", first, got)
					}
					if got := rec.Header().Get("Informerd-Resource-Version"); got != "" && got != first {
						t.Errorf("the answer from the View at %s says it is of %s", first, got)
					}
				}
			})
		})
	}
}

// TestUnreadableView: a View without a Store is refused, whatever the next one
// would be.
func TestUnreadableView(t *testing.T) {
	w := newWorld(t)
	w.pods.views = []*cache.View{
		{Spec: w.pods.spec, State: cache.Syncing, Reason: "listing"},
		(&cache.View{Spec: w.pods.spec, State: cache.Live, Proof: time.Now()}).Hold(w.pods.store),
	}
	for _, target := range []string{
		"/v1/resources/pods/objects", "/v1/resources/pods/objects?watch=true", "/v1/resources/pods/objects/a/one", "/v1/query?resources=pods",
		"/v1/graph/pods/a/one", "/v1/resources/pods/indexes", "/api/v1/pods", "/api/v1/pods?watch=true", "/api/v1/namespaces/a/pods/one",
	} {
		w.pods.taken = 0
		if rec := w.one(t, target, ""); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "listing") {
			t.Errorf("GET %s = %d %s, want 503 with the reason", target, rec.Code, rec.Body)
		}
	}
}
