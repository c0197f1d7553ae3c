package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/kubeapi"
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

// awayUpstream is an API server that cannot be reached, at an address.
type awayUpstream struct{ passingUpstream }

func (awayUpstream) Get(context.Context, string, http.Header) (*http.Response, error) {
	return nil, errors.New("Get https://10.9.8.7:6443: connection refused")
}

// TestAddressesAreNotTold: nor where the API server is, when it does not answer.
func TestAddressesAreNotTold(t *testing.T) {
	up := awayUpstream{func(*http.Request) (*http.Response, error) {
		return nil, errors.New("dial 10.9.8.7: connection refused")
	}}
	reach := func(passthrough kubeapi.Passthrough) func(*Options) {
		return func(o *Options) {
			o.Upstream = func(string) kubeapi.Upstream { return up }
			o.Modes = func() kubeapi.Modes { return kubeapi.Modes{Passthrough: passthrough} }
		}
	}
	ask := func(w *world, target string) string {
		rec := w.do(t, http.MethodGet, target, cache.ReadsHeader, cache.ConsistentReads)
		return fmt.Sprint(rec.Code, rec.Header(), rec.Body)
	}
	for _, passthrough := range []kubeapi.Passthrough{kubeapi.PassNone, kubeapi.PassAll} {
		guarded := newWorld(t, reach(passthrough), func(o *Options) {
			o.Access = func(*http.Request) (access.Asker, error) { return jane().GrantPaths(), nil }
		})
		open := newWorld(t, reach(passthrough))
		for _, target := range []string{
			"/openapi/v3", "/version", "/api", "/apis", "/api/v1", "/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/one",
			"/api/v1/namespaces/a/pods?watch=1&timeoutSeconds=1", "/api/v1/namespaces/a/pods/one/log", "/apis/other/v1/things",
		} {
			if answer := ask(guarded, target); strings.Contains(answer, "10.9.8.7") {
				t.Errorf("passthrough %s, %s: %s", passthrough, target, answer)
			}
		}
		if answer := ask(open, "/openapi/v3"); !strings.Contains(answer, "10.9.8.7") {
			t.Errorf("without authentication: %s", answer)
		}
	}
}

// TestClusterReasonsAreNotTold: nor is who must say who they are told why a cluster does
// not tell which resources it has.
func TestClusterReasonsAreNotTold(t *testing.T) {
	const why = "dial 10.9.8.7: connection refused"
	targets := []string{
		"/v1/query", "/v1/query?resources=th*", "/v1/query?resources=things", "/v1/query?resources=things&watch=true&groupBy=kind",
		"/v1/search?q=one", "/v1/graph/pods/a/one", "/v1/graph/dangling", "/v1/health", "/v1/health/pods/a/one", "/v1/complete?for=resources",
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
	// Documents of the Kubernetes API tell it in a header.
	if rec := w.get(t, "/api/v1"); rec.Code != http.StatusOK || strings.Contains(fmt.Sprint(rec.Header(), rec.Body), "10.9.8.7") ||
		!strings.Contains(rec.Header().Get("Warning"), "not all resources") {
		t.Errorf("/api/v1: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	w = newWorld(t)
	w.caches.clusters = unknown
	for _, target := range targets[:3] {
		if rec := w.get(t, target); !strings.Contains(rec.Body.String(), "10.9.8.7") {
			t.Errorf("without authentication, %s: %d %s", target, rec.Code, rec.Body)
		}
	}
}
