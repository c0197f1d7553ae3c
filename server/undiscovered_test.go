package server

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// startingWorld is a server whose cluster has not told which resources it has.
// Those of known are known of a snapshot.
func startingWorld(t *testing.T, known ...string) *world {
	w := newWorld(t)
	w.caches.clusters[0].Discovered, w.caches.clusters[0].Err = false, "connection refused"
	all := w.caches.resources
	w.caches.resources = nil
	for _, r := range all {
		for _, name := range known {
			if r.spec.Name() == name {
				w.caches.resources = append(w.caches.resources, r)
			}
		}
	}
	return w
}

// TestNothingKnown: what is not known yet is neither absent nor empty.
func TestNothingKnown(t *testing.T) {
	for _, target := range []string{
		"/v1/resources/pods", "/v1/resources/pods/objects", "/v1/resources/pods/objects/a/one", "/v1/resources/pods/indexes",
		"/v1/query", "/v1/query?resources=*", "/v1/query?resources=pods", "/v1/query?resources=*.apps,pods",
		"/v1/query?watch=true", "/v1/query?watch=true&groupBy=kind", "/v1/query?resources=pods&watch=true", "/v1/query?groupBy=kind",
		"/v1/search?q=web", "/v1/graph/dangling", "/v1/graph/dangling?kinds=pods", "/v1/graph/pods/a/one", "/v1/health", "/v1/health?watch=true", "/v1/health/pods/a/one",
		"/v1/complete?for=resources", "/v1/complete?for=paths&resource=pods",
		"/api/v1/namespaces/a/pods/one", "/api/v1/pods", "/api", "/apis", "/api/v1",
	} {
		t.Run(target, func(t *testing.T) {
			rec := startingWorld(t).get(t, target)
			wantStatus(t, rec, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "connection refused")
			if rec.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

// TestPageStarts: what the page asks first is answered before anything is known,
// so that it can show how far the start is.
func TestPageStarts(t *testing.T) {
	w := startingWorld(t)
	for _, target := range []string{"/", "/v1/resources", "/livez", "/metrics", "/v1/openapi.json"} {
		if rec := w.get(t, target); rec.Code != http.StatusOK {
			t.Errorf("GET %s = %d %s", target, rec.Code, rec.Body)
		}
	}
	if rec := w.get(t, "/readyz"); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "no resource has been discovered yet") {
		t.Errorf("GET /readyz = %d %s", rec.Code, rec.Body)
	}
}

// TestPartKnown: what a snapshot knows is answered, and that there may be more is
// said.
func TestPartKnown(t *testing.T) {
	w := startingWorld(t, "pods")
	var list struct {
		Metadata struct{ Resources []kindState }
		Items    []any
	}
	h := w.getJSON(t, "/v1/query", &list)
	if n := len(list.Metadata.Resources); len(list.Items) != 3 || n != 2 {
		t.Fatalf("%d objects of %+v", len(list.Items), list.Metadata.Resources)
	}
	if s := list.Metadata.Resources[1]; s.Resource != "*" || s.Answered || s.State != cache.Syncing || !strings.Contains(s.Reason, "connection refused") {
		t.Errorf("what is not known is %+v", s)
	}
	if got := h.Get("Informerd-Unanswered"); got != "*" {
		t.Errorf("Informerd-Unanswered is %q", got)
	}
	if rec := w.get(t, "/v1/query", "If-None-Match", h.Get("ETag")); rec.Code != http.StatusOK {
		t.Errorf("the tag is taken for that of a whole: %d", rec.Code)
	}
	for _, target := range []string{"/v1/search?q=one", "/v1/graph/dangling", "/v1/graph/pods/a/one", "/v1/health", "/v1/health/pods/a/one"} {
		var a struct{ Unanswered []unansweredItem }
		w.getJSON(t, target, &a)
		if len(a.Unanswered) != 1 || a.Unanswered[0].Resource != "*" || a.Unanswered[0].State != cache.Syncing {
			t.Errorf("GET %s lacks %+v", target, a.Unanswered)
		}
	}
	for _, target := range []string{"/v1/resources/nodes", "/v1/query?resources=nodes", "/v1/query?resources=*.apps", "/v1/graph/dangling?kinds=nodes"} {
		wantStatus(t, w.get(t, target), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not all resources")
	}
	w.getJSON(t, "/v1/query?resources=pods", &list)
	if len(list.Metadata.Resources) != 1 {
		t.Errorf("one that is named comes with %+v", list.Metadata.Resources)
	}
	w.caches.clusters[0].Discovered = true
	w.getJSON(t, "/v1/query", &list)
	if len(list.Metadata.Resources) != 1 {
		t.Errorf("all is known and it comes with %+v", list.Metadata.Resources)
	}
	wantStatus(t, w.get(t, "/v1/query?resources=*.apps"), http.StatusNotFound, metav1.StatusReasonNotFound, "no resource is called like")
}
