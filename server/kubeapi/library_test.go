package kubeapi

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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

func (s *fakeShelf) ForgetDocuments(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byKey, func(k cache.DocumentKey, _ cache.Document) bool { return k.Cluster == cluster })
	return nil
}

// TestDocumentsOfARemovedCluster: of a cluster that is there no more nothing is kept that
// its API server said, in memory or saved, and of others all is.
func TestDocumentsOfARemovedCluster(t *testing.T) {
	shelf := &fakeShelf{byKey: map[cache.DocumentKey]cache.Document{}}
	w := newWorld(t)
	w.API.Documents = shelf
	here := cache.DocumentKey{Cluster: w.Caches.Clusters()[0].Name, URI: "/version"}
	gone := cache.DocumentKey{Cluster: "gone", URI: "/version"}
	w.keep(here, &document{body: []byte("{}")})
	w.keep(gone, &document{body: []byte("{}")}) // it was asked before it was removed
	if len(shelf.byKey) != 1 {
		t.Fatalf("saved are %v", shelf.byKey)
	}
	for _, d := range []cache.Document{{DocumentKey: gone}, {DocumentKey: cache.DocumentKey{Cluster: "old", URI: "/version"}}} {
		w.documents.put(d)
		if err := shelf.SaveDocument(d, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Forget("gone")
	if _, ok := w.documents.get(gone); ok || len(shelf.byKey) != 2 {
		t.Errorf("kept is %t, saved are %v", ok, shelf.byKey)
	}
	w.KeepOnly([]string{here.Cluster})
	if _, ok := w.documents.get(here); !ok || len(shelf.byKey) != 1 {
		t.Errorf("of the cluster that is there: kept is %t, saved are %v", ok, shelf.byKey)
	}
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
	for _, uri := range []string{"/openapi/v3", "/openapi/v3/apis/apps/v1?hash=2", "/openapi/v3/apis/apps/v1?hash=1"} {
		path, _, _ := strings.Cut(uri, "?")
		if rec := w.get(uri); rec.Code != 200 || rec.Body.String() != `{"at":"`+path+`"}` || rec.Header().Get("ETag") != `"x"` {
			t.Errorf("%s after a restart is %d %s", uri, rec.Code, rec.Body)
		}
	}

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

// TestDocumentEditions: the links of /openapi/v3 say which edition of a document they
// mean. It is asked for when another one is held; the API server, which would redirect
// who means an edition that it has not, or not any more, is never told; and while it is
// away the one that is held answers.
func TestDocumentEditions(t *testing.T) {
	const path = "/openapi/v3/apis/apps/v1"
	w := newWorld(t)
	edition := "A"
	w.upstream.set(func(r *http.Request) *http.Response {
		switch hash := r.URL.Query().Get("hash"); {
		case hash != "" && hash != edition:
			return jsonResponse(301, ``, "Location", path+"?hash="+edition)
		case r.Header.Get("If-None-Match") == `"`+edition+`"`:
			return jsonResponse(304, ``)
		}
		return jsonResponse(200, `{"edition":"`+edition+`"}`, "ETag", `"`+edition+`"`)
	})
	for _, step := range []struct {
		edition, hash, want string
		asked               int
	}{
		{"A", "A", "A", 1},
		{"A", "A", "A", 1}, // what is held is what is meant
		{"B", "A", "A", 1},
		{"B", "B", "B", 2},
		{"B", "A", "B", 3}, // of a list that was read before
		{"B", "", "B", 3},
		{"", "C", "B", 3}, // the API server is away
	} {
		if edition = step.edition; edition == "" {
			w.upstream.set(nil)
		}
		uri := path
		if step.hash != "" {
			uri += "?hash=" + step.hash
		}
		if rec := w.get(uri); rec.Code != 200 || rec.Body.String() != `{"edition":"`+step.want+`"}` {
			t.Errorf("%+v: %d %s", step, rec.Code, rec.Body)
		}
		if got := w.upstream.requests(); len(got) != step.asked {
			t.Errorf("%+v: the API server was asked %q", step, got)
		}
	}
}

// TestDocumentsOfOlder: what an older informerd saved, one document for each edition, is
// taken over as one.
func TestDocumentsOfOlder(t *testing.T) {
	saved := func(uri, body string, fetched int64) cache.Document {
		data, err := pack([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return cache.Document{DocumentKey: cache.DocumentKey{Cluster: "default", URI: uri, Accept: typeJSON}, Fetched: time.Unix(fetched, 0), Data: data}
	}
	shelf := &fakeShelf{byKey: map[cache.DocumentKey]cache.Document{}}
	for _, d := range []cache.Document{saved("/openapi/v3?hash=1", "{}", 1), saved("/openapi/v3", `{"new":1}`, 3), saved("/openapi/v3?hash=2", "{}", 2)} {
		shelf.byKey[d.DocumentKey] = d
	}
	for range 2 {
		w := newWorld(t)
		w.API.Documents = shelf
		w.restoreDocuments()
		if rec := w.get("/openapi/v3"); rec.Body.String() != `{"new":1}` {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	for key := range shelf.byKey {
		if strings.Contains(key.URI, "?") {
			t.Errorf("%s is still saved", key.URI)
		}
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
