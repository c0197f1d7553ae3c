package kubeapi

import (
	"net/http"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVersionSpelling: a resourceVersion is the number that it spells, or refused
// as by the API server.
func TestVersionSpelling(t *testing.T) {
	w := newWorld(t)
	one := func(version string) string {
		return "/api/v1/namespaces/a/pods/one?resourceVersion=" + url.QueryEscape(version)
	}
	all := func(version, more string) string {
		return "/api/v1/pods?resourceVersion=" + url.QueryEscape(version) + more
	}
	for _, version := range []string{"0", "00", "007", "0100"} {
		if rec := w.get(one(version)); rec.Code != 200 {
			t.Errorf("get at %s is %d %s", version, rec.Code, rec.Body)
		}
		var list podList
		w.into(&list, all(version, ""))
		w.into(&list, all(version, "&resourceVersionMatch=NotOlderThan"))
		if list.names() != "one two three" {
			t.Errorf("list at %s is %q", version, list.names())
		}
	}
	for target, want := range map[string]string{
		all("00", "&limit=2"):                         "one two",
		all("00", "&resourceVersionMatch=Exact"):      "one two three",
		all("0100", "&resourceVersionMatch=Exact"):    "one two three",
		all("000100", "&limit=1"):                     "one",
		all("0", "&limit=2"):                          "one two",
		all("00", "&labelSelector=app%3Dweb&limit=9"): "one three",
	} {
		var list podList
		if w.into(&list, target); list.names() != want {
			t.Errorf("GET %s is %q, want %q", target, list.names(), want)
		}
	}
	w.wantStatus(w.get(all("0", "&resourceVersionMatch=Exact")), 422, metav1.StatusReasonInvalid, "forbidden")
	w.wantStatus(w.get(all("00", "&continue=x")), 400, metav1.StatusReasonBadRequest, "specifying resource version is not allowed")

	for _, version := range []string{"-1", "-0", "+5", "1e3", " 5", "5 ", "0x1", "1_0", "18446744073709551616", "\x00"} {
		w.wantStatus(w.get(one(version)), 500, "", "strconv.ParseUint")
		w.wantStatus(w.get(all(version, "")), 400, metav1.StatusReasonBadRequest, "invalid resource version: resourceVersion: Invalid value: ")
		w.wantStatus(w.get(all(version, "&watch=1")), 500, "", "strconv.ParseUint")
	}

	present := []string{"ADDED one@10", "ADDED two@20", "ADDED three@30"}
	w.watch("/api/v1/pods?watch=1&resourceVersion=00").want(present...)
	changes := w.watch("/api/v1/pods?watch=1&resourceVersion=0100")
	none := w.watch("/api/v1/pods?watch=1&resourceVersion=00&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	w.pods.apply(t, "MODIFIED", pod("a", "one", "web", "n1", 101))
	changes.want("MODIFIED one@101")
	none.want("MODIFIED one@101")
}

// TestRequestTimeout: a timeout that is none is refused before all else, unless
// the request has no timeout.
func TestRequestTimeout(t *testing.T) {
	w := newWorld(t)
	w.modes.Passthrough = PassReads
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(200, `{}`) })
	for _, target := range []string{
		"/api/v1/pods?timeout=invalid", "/api/v1/pods?timeout=5", "/api/v1/namespaces/a/pods/one?timeout=x", "/api/v1/namespaces/a/pods/none?timeout=x",
		"/api/v1/namespaces/a/pods/one?watch=1&timeout=x", "/api/v1/nonsense?timeout=x", "/api?timeout=x", "/apis/apps/v1?timeout=x",
		"/version?timeout=x", "/openapi/v3?timeout=x", "/api/v1/pods?timeout=x&limit=x", "/api/v1/namespaces/a/pods/one/status?timeout=x",
	} {
		w.wantStatus(w.get(target), 400, metav1.StatusReasonBadRequest, "invalid timeout specified in the request URL - time: ")
	}
	for _, target := range []string{
		"/api/v1/pods?timeout=10s", "/api/v1/pods?timeout=", "/api/v1/pods?timeout=0s", "/api/v1/pods?timeout=-5s", "/api/v1/pods?timeout=20s&timeout=x",
		"/api/v1/namespaces/a/pods/one?timeoutSeconds=x", "/api/v1/namespaces/a/pods/one/log?timeout=x",
	} {
		if rec := w.get(target); rec.Code != 200 {
			t.Errorf("GET %s is %d %s", target, rec.Code, rec.Body)
		}
	}
	w.watch("/api/v1/pods?watch=1&timeout=x").want("ADDED one@10")
	w.watch("/api/v1/watch/pods?timeout=x").want("ADDED one@10")
	w.wantStatus(w.get("/api/v1/pods?timeout=1ms&resourceVersion=999"), 504, metav1.StatusReasonTimeout, "")
}
