package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestReasonsAreOfTheWhole: who sees a part of a resource is not told why the copy is not
// live, whatever they ask for: a reason may name what is in the other part, informerd's
// user, and where it asked.
func TestReasonsAreOfTheWhole(t *testing.T) {
	const reason = `User "informerd" cannot ask https://10.9.8.7`
	for _, state := range []cache.State{cache.Stale, cache.Warm, cache.Syncing, cache.Forbidden, cache.Failed} {
		synctest.Test(t, func(t *testing.T) {
			w := newGuarded(t, jane().GrantPaths())
			w.pods.status.Missing = []cache.MissingNamespace{{Namespace: "a", State: cache.Forbidden, Reason: reason}}
			w.pods.set(state, reason)
			w.secrets.set(cache.Failed, reason)
			recorders := map[string]*httptest.ResponseRecorder{}
			for _, q := range questions {
				recorders[q] = w.get(t, q)
			}
			done := make(chan struct{})
			for _, q := range streams {
				rec := httptest.NewRecorder()
				recorders[q] = rec
				go func() {
					defer func() { done <- struct{}{} }()
					r := httptest.NewRequest(http.MethodGet, q, nil)
					r.Host = "localhost:8080"
					w.Handler().ServeHTTP(rec, r)
				}()
			}
			time.Sleep(2 * time.Second)
			if state == cache.Stale {
				w.pods.set(cache.Warm, reason) // which streams tell
			}
			for range streams {
				<-done
			}
			for q, rec := range recorders {
				if text := fmt.Sprint(rec.Header(), rec.Body); strings.Contains(text, "10.9.8.7") {
					t.Errorf("%s, %s: %d %s", state, q, rec.Code, text)
				}
			}
		})
	}
	// Who sees all of it is told.
	w := newWorld(t)
	w.pods.set(cache.Stale, reason)
	rec := w.get(t, podObjects)
	if warning := rec.Header().Get("Warning"); !strings.Contains(warning, "10.9.8.7") {
		t.Errorf("the whole: warning %q", warning)
	}
}

// TestClusterReasonsAreNotTold: nor is who must say who they are told why a cluster does
// not tell which resources it has.
func TestClusterReasonsAreNotTold(t *testing.T) {
	const why = "dial 10.9.8.7: connection refused"
	targets := []string{
		"/v1/query", "/v1/query?resources=th*", "/v1/query?resources=things", "/v1/query?resources=things&watch=true&groupBy=kind",
		"/v1/search?q=one", "/v1/graph/pods/a/one", "/v1/graph/dangling", "/v1/complete?for=resources",
		"/v1/resources/things", "/v1/resources/things/objects", "/apis/example.com/v1/namespaces/a/things/x",
	}
	unknown := []cache.ClusterStatus{{Err: why}}
	w := newGuarded(t, jane().GrantPaths())
	w.caches.clusters = unknown
	for _, target := range targets {
		if rec := w.get(t, target); strings.Contains(rec.Body.String(), "10.9.8.7") {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
	w = newWorld(t)
	w.caches.clusters = unknown
	for _, target := range targets[:3] {
		if rec := w.get(t, target); !strings.Contains(rec.Body.String(), "10.9.8.7") {
			t.Errorf("without authentication, %s: %d %s", target, rec.Code, rec.Body)
		}
	}
}
