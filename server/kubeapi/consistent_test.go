package kubeapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// present makes the upstream one whose objects are at version, after the events
// of a watch.
func (w *world) present(version string, events ...string) {
	w.upstream.set(func(r *http.Request) *http.Response {
		if r.URL.Query().Get("watch") == "" {
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

// TestConsistentWaits: an event under way is waited for.
func TestConsistentWaits(t *testing.T) {
	w := newWorld(t)
	w.present("150", "120", "130")
	answered := make(chan string)
	go func() {
		var list podList
		w.into(&list, "/api/v1/pods", ReadsHeader, "consistent")
		answered <- list.names()
	}()
	w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 120))
	select {
	case got := <-answered:
		t.Errorf("answered %q before the last event came", got)
	default:
	}
	w.pods.apply(t, cache.Deleted, pod("a", "two", "web", "n1", 130))
	if got := <-answered; got != "three" {
		t.Errorf("got %q", got)
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
