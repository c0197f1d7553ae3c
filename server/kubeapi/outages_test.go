package kubeapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestOutage: an API server that did not answer is left alone for a while where a
// document is held, and one caller finds out that it is back.
func TestOutage(t *testing.T) {
	w := newWorld(t)
	answer := func(*http.Request) *http.Response { return jsonResponse(200, `{}`) }
	w.upstream.set(answer)
	age := func() {
		for _, key := range []cache.DocumentKey{{URI: "/version", Accept: typeJSON}, {URI: "/openapi/v3", Accept: typeJSON}} {
			key.Cluster = "default"
			w.documents.confirm(key, time.Now().Add(-2*documentAge))
		}
	}
	asked := 0
	want := func(what string, requests int) {
		t.Helper()
		for range 3 {
			for _, uri := range []string{"/version", "/openapi/v3"} {
				if rec := w.get(uri); rec.Code != 200 || rec.Body.String() != `{}` {
					t.Errorf("%s: %s is %d %s", what, uri, rec.Code, rec.Body)
				}
			}
		}
		if got := w.upstream.requests()[asked:]; len(got) != requests {
			t.Errorf("%s: the API server was asked %v, want %d", what, got, requests)
		}
		asked = len(w.upstream.requests())
	}
	want("at first", 2)
	age()
	w.upstream.set(func(*http.Request) *http.Response { return nil })
	want("away", 1)
	w.outages.until["default"] = time.Now()
	want("away after a pause", 1)
	w.upstream.set(answer)
	want("back within a pause", 0)
	w.outages.until["default"] = time.Now()
	want("back", 2)
}

// TestOutageAsksOnce: who comes while one caller asks does not wait with it.
func TestOutageAsksOnce(t *testing.T) {
	var o outages
	start := time.Now()
	o.begin(t.Context(), "a", start)
	if !o.last("a", start) || o.last("b", start) {
		t.Error("the wrong cluster does not answer")
	}
	later := time.Now().Add(outagePause)
	if o.last("a", later) || !o.last("a", later) {
		t.Error("not one asks after a pause")
	}
	o.end("a")
	if o.last("a", start) {
		t.Error("an answer is no end")
	}
}

// TestImpatientCaller: who leaves at once proves nothing.
func TestImpatientCaller(t *testing.T) {
	w := newWorld(t)
	w.upstream.set(func(*http.Request) *http.Response { return nil })
	gone, leave := context.WithCancel(t.Context())
	leave()
	w.serve(httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi/v3", nil).WithContext(gone))
	if len(w.outages.until) > 0 {
		t.Error("taken for an outage")
	}
}
