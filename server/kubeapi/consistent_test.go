package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// present makes the upstream one whose objects are at version, after the events
// of a watch.
func (w *world) present(version string, events ...string) {
	w.upstream.set(func(r *http.Request) *http.Response {
		if r.URL.Query().Get("watch") == "" {
			if r.Header.Get(ReadsHeader) != string(Consistent) {
				return jsonResponse(200, `{"metadata":{"resourceVersion":"1"}}`) // as another informerd, from what it holds
			}
			return jsonResponse(200, fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, version))
		}
		body := ""
		for _, e := range events {
			body += fmt.Sprintf(`{"type":"MODIFIED","object":{"metadata":{"resourceVersion":%q}}}`, e)
		}
		return jsonResponse(200, body+fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%q}}}`, version))
	})
}

// TestConsistentQuiet: a copy to whose objects nothing happened is complete,
// although its version is lower.
func TestConsistentQuiet(t *testing.T) {
	w := newWorld(t)
	w.present("150")
	var list podList
	w.into(&list, "/api/v1/pods", ReadsHeader, "consistent")
	if list.names() != "one two three" {
		t.Errorf("got %s", list.names())
	}
	w.into(&list, "/api/v1/pods?limit=2&resourceVersion=140")
	if list.names() != "one two" {
		t.Errorf("a page at a version is %s", list.names())
	}
	for _, asked := range w.upstream.requests() {
		if !strings.Contains(asked, "limit=1") && !strings.Contains(asked, "resourceVersion=100") {
			t.Errorf("the API server was asked %s", asked)
		}
	}
}

// TestConsistentBehindTheCopy: an API server that is behind the copy has another history,
// so the copy is not what it holds.
func TestConsistentBehindTheCopy(t *testing.T) {
	w := newWorld(t)
	w.present("90")
	rec := w.get("/api/v1/pods", ReadsHeader, "consistent")
	if body := rec.Body.String(); rec.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"retryAfterSeconds":1`) || !strings.Contains(body, "restored") {
		t.Errorf("%d: %s", rec.Code, body)
	}
	w.present("100")
	var list podList
	w.into(&list, "/api/v1/pods", ReadsHeader, "consistent")
	if list.names() != "one two three" {
		t.Errorf("got %s", list.names())
	}
}

// TestConsistentWaits: an event under way is waited for.
func TestConsistentWaits(t *testing.T) {
	w := newWorld(t)
	w.present("150", "120", "130")
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close() // who waited for it was of this bubble
		answered := make(chan string, 1)
		go func() {
			var list podList
			w.into(&list, "/api/v1/pods", ReadsHeader, "consistent")
			answered <- list.names()
		}()
		w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 120))
		time.Sleep(time.Second) // of the bubble's clock: until the bookmark was read
		synctest.Wait()
		if asked := w.upstream.requests(); len(asked) != 3 || !strings.Contains(asked[1], "watch=true") {
			t.Errorf("the API server was asked %v, want a list, a watch, and a list for its bookmark", asked)
		}
		select {
		case got := <-answered:
			t.Fatalf("answered %q before the last event came", got)
		default:
		}
		w.pods.apply(t, cache.Deleted, pod("a", "two", "web", "n1", 130))
		if got := <-answered; got != "three" {
			t.Errorf("got %q", got)
		}
	})
}

// TestBookmarkBeyond: a bookmark beyond what the API server has reached proves nothing. It
// is of the history before a restore, or what lies between does not tell the truth.
func TestBookmarkBeyond(t *testing.T) {
	w := newWorld(t)
	w.present("110")
	reached := w.upstream.answer
	w.upstream.set(func(r *http.Request) *http.Response {
		if r.URL.Query().Get("watch") == "" {
			return reached(r)
		}
		return jsonResponse(200, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1000150"}}}`)
	})
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close() // who waited for it was of this bubble
		for _, target := range []string{
			"/api/v1/pods?resourceVersion=140&resourceVersionMatch=Exact", "/api/v1/pods?resourceVersion=140", "/api/v1/namespaces/a/pods/one?resourceVersion=140",
		} {
			w.wantStatus(w.get(target), 504, metav1.StatusReasonTimeout, "Too large resource version: 140, current: 100")
		}
	})
}

// TestConsistentNamespaces: informerd asks for no more than it may read.
func TestConsistentNamespaces(t *testing.T) {
	w := newWorld(t)
	w.pods.store.SetSources([]string{"a", "b"})
	w.present("150")
	present := w.upstream.answer
	w.upstream.set(func(r *http.Request) *http.Response {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/") {
			return jsonResponse(403, `{}`)
		}
		return present(r)
	})
	for target, want := range map[string]string{"/api/v1/pods": "one two three", "/api/v1/namespaces/b/pods": "three"} {
		var list podList
		if w.into(&list, target, ReadsHeader, "consistent"); list.names() != want || list.Metadata.ResourceVersion != "150" {
			t.Errorf("GET %s: %q at %s", target, list.names(), list.Metadata.ResourceVersion)
		}
		w.into(&list, target+"?resourceVersion=140")
	}
	for _, asked := range w.upstream.requests() {
		if !strings.Contains(asked, "/namespaces/a/") && !strings.Contains(asked, "/namespaces/b/") {
			t.Errorf("the API server was asked %s", asked)
		}
	}
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(403, `{}`) })
	w.wantStatus(w.get("/api/v1/pods", ReadsHeader, "consistent"), 503, metav1.StatusReasonServiceUnavailable, "cannot learn the present version of pods")
}

// TestProvenVersion: whoever asks for a version gets none that is older, on all
// pages, in all forms.
func TestProvenVersion(t *testing.T) {
	t.Parallel() // it waits, for seconds
	w := newWorld(t)
	w.present("150")
	for target, want := range map[string]string{
		"/api/v1/pods?resourceVersion=140":                                                        "140",
		"/api/v1/pods?resourceVersion=140&resourceVersionMatch=Exact":                             "140",
		"/api/v1/pods?resourceVersion=140&resourceVersionMatch=NotOlderThan&labelSelector=app":    "140",
		"/api/v1/pods?resourceVersion=140&limit=2":                                                "140",
		"/api/v1/pods?resourceVersion=140&limit=2&resourceVersionMatch=NotOlderThan":              "140",
		"/api/v1/pods?resourceVersion=90&limit=2&resourceVersionMatch=NotOlderThan":               "100",
		"/api/v1/pods?resourceVersion=100&limit=2":                                                "100",
		"/api/v1/namespaces/a/pods?resourceVersion=140&limit=1&resourceVersionMatch=NotOlderThan": "140",
	} {
		var list, next podList
		if w.into(&list, target); list.Metadata.ResourceVersion != want {
			t.Errorf("GET %s is of version %s, want %s", target, list.Metadata.ResourceVersion, want)
		}
		if list.Metadata.Continue == "" {
			continue
		}
		path, _, _ := strings.Cut(target, "?")
		if w.into(&next, path+"?limit=1&continue="+list.Metadata.Continue); next.Metadata.ResourceVersion != want {
			t.Errorf("the page after GET %s is of version %s", target, next.Metadata.ResourceVersion)
		}
	}
	s := w.watch("/api/v1/pods?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=140")
	for range 3 {
		s.next()
	}
	if e := s.next(); e.Type != "BOOKMARK" || e.Object.Metadata.ResourceVersion != "140" {
		t.Errorf("after the initial events comes %+v, want a bookmark at 140", e)
	}
}

// interrupt is a Filter that lets everything pass, and calls something when it is
// compiled for the second time.
type interrupt struct {
	calls int
	call  func()
}

func (f *interrupt) String() string                                      { return "interrupt" }
func (f *interrupt) Match(context.Context, []byte) (bool, uint64, error) { return true, 0, nil }
func (f *interrupt) Clock() bool                                         { return false }
func (f *interrupt) OfIdentity() bool                                    { return false }
func (f *interrupt) Within() ([]rawjson.Path, bool)                      { return nil, false }
func (f *interrupt) Hints() cache.Hints {
	if f.calls++; f.calls == 2 {
		f.call()
	}
	return cache.Hints{}
}

// TestExactMoved: a copy that moves on beyond a version while it is read there
// is read as it was.
func TestExactMoved(t *testing.T) {
	w := newWorld(t)
	moving := &interrupt{call: func() { w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 145)) }}
	page, err := exactPage(t.Context(), new(cache.View).Hold(w.pods.store).Reader(cache.WholeScope()), &internalversion.ListOptions{}, cache.Query{Filter: moving}, "140")
	if err != nil || page.Version != "140" || len(page.Objects) != 3 {
		t.Errorf("exactPage() = %+v, %v, want three objects at 140", page, err)
	}
	if moving.calls < 3 {
		t.Errorf("compiled %d times, so nothing happened meanwhile", moving.calls)
	}
}

func TestConsistentMode(t *testing.T) {
	w := newWorld(t)
	w.modes.Reads = Consistent
	w.wantStatus(w.get("/api/v1/pods"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
	w.wantStatus(w.get("/api/v1/namespaces/a/pods/one"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
	w.wantStatus(w.get("/api/v1/pods?watch=1"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
	w.wantStatus(w.get("/api/v1/pods", ReadsHeader, "sometimes"), 400, metav1.StatusReasonBadRequest, "cached")
	for _, headers := range [][]string{{ReadsHeader, "cached"}, {}} {
		target := "/api/v1/pods"
		if len(headers) == 0 {
			target += "?resourceVersion=0"
		}
		if rec := w.get(target, headers...); rec.Code != http.StatusOK {
			t.Errorf("%s %v = %d %s", target, headers, rec.Code, rec.Body)
		}
	}
	w.present("100")
	if rec := w.get("/api/v1/pods"); rec.Code != http.StatusOK {
		t.Errorf("consistent: %d %s", rec.Code, rec.Body)
	}
}
