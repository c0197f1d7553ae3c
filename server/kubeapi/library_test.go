package kubeapi

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// fakeShelf keeps documents as a snapshot does.
type fakeShelf struct {
	mu    sync.Mutex // guards byKey
	byKey map[cache.DocumentKey]cache.Document
}

func (s *fakeShelf) Documents() ([]cache.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []cache.Document
	for _, d := range s.byKey {
		all = append(all, d)
	}
	return all, nil
}

func (s *fakeShelf) SaveDocument(d cache.Document, forget []cache.DocumentKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range forget {
		delete(s.byKey, k)
	}
	s.byKey[d.DocumentKey] = d
	return nil
}

// TestDocumentsOutlive: what the API server said before a restart is answered
// with while it is away, and confirmed by its tag when it is back.
func TestDocumentsOutlive(t *testing.T) {
	shelf := &fakeShelf{byKey: map[cache.DocumentKey]cache.Document{}}
	w := newWorld(t)
	w.API.Documents = shelf
	w.upstream.set(func(r *http.Request) *http.Response {
		return jsonResponse(200, `{"at":"`+r.URL.RequestURI()+`"}`, "ETag", `"x"`)
	})
	for _, uri := range []string{"/openapi/v3", "/openapi/v3/apis/apps/v1?hash=1", "/openapi/v3/apis/apps/v1?hash=2"} {
		if rec := w.get(uri); rec.Code != 200 {
			t.Fatalf("%s is %d %s", uri, rec.Code, rec.Body)
		}
	}

	w = newWorld(t)
	w.API.Documents = shelf
	w.restoreDocuments()
	for _, uri := range []string{"/openapi/v3", "/openapi/v3/apis/apps/v1?hash=2"} {
		if rec := w.get(uri); rec.Code != 200 || rec.Body.String() != `{"at":"`+uri+`"}` || rec.Header().Get("ETag") != `"x"` {
			t.Errorf("%s after a restart is %d %s", uri, rec.Code, rec.Body)
		}
	}
	w.wantStatus(w.get("/openapi/v3/apis/apps/v1?hash=1"), 503, metav1.StatusReasonServiceUnavailable, "")

	w.documents.confirm(cache.DocumentKey{Cluster: "default", URI: "/openapi/v3", Accept: typeJSON}, time.Now().Add(-time.Hour))
	w.upstream.set(func(r *http.Request) *http.Response {
		if r.Header.Get("If-None-Match") != `"x"` {
			t.Errorf("asked for %s without its tag", r.URL)
		}
		return jsonResponse(304, ``)
	})
	for range 2 {
		if rec := w.get("/openapi/v3"); rec.Code != 200 || rec.Body.String() != `{"at":"/openapi/v3"}` {
			t.Errorf("confirmed: %d %s", rec.Code, rec.Body)
		}
	}
	if got := w.upstream.requests(); len(got) != 1 {
		t.Errorf("the API server was asked %v", got)
	}
}

// TestLibraryBounds: the oldest documents go when there are too many, or too
// large ones.
func TestLibraryBounds(t *testing.T) {
	var l library
	add := func(n, size int) []cache.DocumentKey {
		d := cache.Document{DocumentKey: cache.DocumentKey{URI: fmt.Sprintf("/%d", n)}, Fetched: time.Unix(int64(n), 0), Data: make([]byte, size)}
		return l.put(d)
	}
	for n := range maxDocuments {
		if gone := add(n, 1); len(gone) > 0 {
			t.Fatalf("%v went at %d", gone, n)
		}
	}
	if gone := add(1000, 1); len(gone) != 1 || gone[0].URI != "/0" {
		t.Errorf("%v went, want /0", gone)
	}
	if gone := add(1001, maxDocumentBytes-100); len(gone) != maxDocuments-100 {
		t.Errorf("%d went, want %d", len(gone), maxDocuments-100)
	}
	if len(l.byKey) != 101 || l.bytes != maxDocumentBytes {
		t.Errorf("%d documents of %d bytes", len(l.byKey), l.bytes)
	}
}
