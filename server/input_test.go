package server

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	const objects = "/v1/resources/pods/objects"
	for _, c := range []struct {
		path    string
		code    int
		field   string // of the cause
		message string
	}{
		{objects + "?labelSelektor=app", 400, "labelSelektor", "did you mean labelSelector? (known here: agg, cluster,"},
		{objects + "?xyzzy=1", 400, "xyzzy", "unknown parameter (known here"},
		{objects + "?limit=1&limit=2", 400, "limit", "given 2 times"},
		{objects + "?limit=-1", 400, "limit", "not a number from 0"},
		{objects + "?limit=ten", 400, "limit", `"ten"`},
		{objects + "?limit=99999999999999999999", 400, "limit", "not a number"},
		{objects + "?continue=rubbish", 400, "continue", ""},
		{objects + "?continue=x&resourceVersion=5", 400, "resourceVersion", "continue"},
		{objects + "?labelSelector=a%3D%3D%3Db", 400, "labelSelector", ""},
		{objects + "?labelSelector=app+in+(", 400, "labelSelector", ""},
		{objects + "?fieldSelector=status.phase", 200, "", ""},
		{objects + "?fieldSelector=a..b%3D1", 400, "fieldSelector", ""},
		{objects + "?fieldSelector=a[%3D1", 400, "fieldSelector", ""},
		{objects + "?index=node", 400, "index", "not name:value"},
		{objects + "?index=:n1", 400, "index", "not name:value"},
		{objects + "?index=colour:red", 400, "index", "namespace, label, owner, image, node"},
		{objects + "?namespace=", 400, "namespace", "empty"},
		{objects + "?namespace=[a", 400, "namespace", "not a glob"},
		{objects + "?resourceVersion=abc", 400, "resourceVersion", "not a version"},
		{objects + "?resourceVersion=-5", 400, "resourceVersion", "not a version"},
		{objects + "?resourceVersion=007", 400, "resourceVersion", "not a version"},
		{objects + "?resourceVersion=5&timeout=soon", 400, "timeout", "not a duration"},
		{objects + "?resourceVersion=5&timeout=1h", 400, "timeout", "30s"},
		{objects + "?timeout=1s", 400, "timeout", "resourceVersion"},
		{objects + "?fields=", 400, "fields", "empty"},
		{objects + "?fields=a..b", 400, "fields", ""},
		{objects + "?fields=a[", 400, "fields", ""},
		{objects + "?pretty=perhaps", 400, "pretty", "neither true nor false"},
		{objects + "?pretty=items&output=csv", 400, "pretty", "output=csv"},
		{objects + "?watch=true&pretty=items", 400, "pretty", "watch=true"},
		{objects + "?explain&pretty=items", 400, "pretty", "explain"},
		{objects + "/a/one?pretty=items", 400, "pretty", "of lists"},
		{"/v1/resources?pretty=items", 400, "pretty", "neither true nor false"},
		{objects + "?watch=perhaps", 400, "watch", "neither true nor false"},
		{objects + "?watch=true&limit=5", 400, "limit", "watch=true"},
		{objects + "?watch=true&continue=x", 400, "continue", "watch=true"},
		{objects + "?watch=true&pretty", 400, "pretty", "watch=true"},
		{objects + "?watch=true&timeoutSeconds=x", 400, "timeoutSeconds", "not a number"},
		{objects + "?watch=true&index=colour:red", 400, "index", "colour"},
		{objects + "?timeoutSeconds=5", 400, "timeoutSeconds", "watch=true"},
		{objects + "?cluster=west", 400, "cluster", "west"},
		{objects + "?a=%zz", 400, "query", "%zz"},
		{objects + "?a;b", 400, "query", "semicolon"},
		{objects + "/-/one", 400, "path", "namespaced"},
		{objects + "/a/one?fields=a..b", 400, "fields", ""},
		{objects + "/a/one?timeout=1s", 400, "timeout", "resourceVersion"},
		{objects + "/a/one?resourceVersion=x", 400, "resourceVersion", ""},
		{objects + "/a/one?pretty=x", 400, "pretty", ""},
		{objects + "/a/one?limit=1", 400, "limit", "known here: cluster, fields, pretty, resourceVersion, timeout"},
		{objects + "/a/none", 404, "", `pods "a/none" not found`},
		{"/v1/resources/nodes/objects/a/n1", 400, "path", "objects/-/n1"},
		{"/v1/resources/nodes/objects/-/n1", 200, "", ""},
		{"/v1/resources/pots", 404, "", "did you mean pods"},
		{"/v1/resources/pots/objects", 404, "", "did you mean pods"},
		{"/v1/resources/pots/indexes", 404, "", "unknown resource"},
		{"/v1/resources/events/objects", 404, "", "not watched"},
		{"/v1/resources/events/indexes/label", 404, "", "not watched"},
		{"/v1/resources/events", 200, "", ""},
		{"/v1/resources/secrets/objects", 503, "", "secrets is forbidden"},
		{"/v1/resources?cluster=west", 400, "cluster", "west"},
		{"/v1/resources?state=live", 400, "state", "known here: cluster, pretty"},
		{"/v1/resources?pretty=x", 400, "pretty", ""},
		{"/v1/resources/pods?pretty=x", 400, "pretty", ""},
		{"/v1/resources/pods?cluster=west", 400, "cluster", "west"},
		{"/v1/resources/pods/indexes?pretty=x", 400, "pretty", ""},
		{"/v1/resources/pods/indexes/nod", 404, "", "did you mean node? (there is: namespace, label, owner, image, node)"},
		{"/v1/resources/pods/indexes/nod/n1", 404, "", "did you mean node?"},
		{"/v1/resources/pods/indexes/node?limit=x", 400, "limit", ""},
		{"/v1/resources/pods/indexes/node?pretty=x", 400, "pretty", ""},
		{"/v1/resources/pods/indexes/node?continue=eyJ9", 400, "continue", "no token"},
		{"/v1/resources/pods/indexes/node?continue=%25", 400, "continue", "no token"},
		{"/v1/resources/pods/indexes/node/n1?limit=x", 400, "limit", ""},
		{"/v1/resources/", 404, "", "nothing is served"},
		{"/v1/nothing", 404, "", "the API begins at /v1/resources"},
		{"/nothing.js", 404, "", "nothing is served"},
		{"/livez?x=1", 400, "x", "takes none"},
		{"/readyz?x=1", 400, "x", "known here: stale, verbose"},
		{"/readyz?verbose=x", 400, "verbose", ""},
		{"/readyz?stale=yes", 400, "stale", "ok"},
		{"/metrics?x=1", 400, "x", "takes none"},
		{"/v1/resources?" + strings.Repeat("x", maxURL), 414, "", "bytes"},
	} {
		t.Run(c.path[:min(len(c.path), 80)], func(t *testing.T) {
			rec := w.get(t, c.path)
			if c.code == http.StatusOK {
				if rec.Code != c.code {
					t.Fatalf("code = %d: %s", rec.Code, rec.Body)
				}
				return
			}
			reason := map[int]metav1.StatusReason{
				400: metav1.StatusReasonBadRequest, 404: metav1.StatusReasonNotFound,
				503: metav1.StatusReasonServiceUnavailable, 414: "RequestURITooLong",
			}[c.code]
			s := wantStatus(t, rec, c.code, reason, c.message)
			if c.field != "" && (s.Details == nil || s.Details.Causes[0].Field != c.field) {
				t.Errorf("details = %+v, want field %q", s.Details, c.field)
			}
			if rec.Header().Get("ETag") != "" {
				t.Error("an error carries an ETag")
			}
		})
	}
}

func TestNotWatchedNamesItsCause(t *testing.T) {
	s := wantStatus(t, newWorld(t).get(t, "/v1/resources/events/objects"), 404, metav1.StatusReasonNotFound, "events")
	if s.Details == nil || s.Details.Causes[0].Type != "NotWatched" {
		t.Errorf("details = %+v", s.Details)
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		for _, path := range []string{"/", "/v1/resources", "/v1/resources/pods/objects/a/one", "/readyz"} {
			rec := w.do(t, method, path)
			wantStatus(t, rec, 405, metav1.StatusReasonMethodNotAllowed, method)
			if got := rec.Header().Get("Allow"); got != "GET, HEAD" {
				t.Errorf("%s %s: Allow = %q", method, path, got)
			}
		}
	}
}

func TestAccept(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		path, accept string
		code         int
		message      string
	}{
		{"/v1/resources", "", 200, ""},
		{"/v1/resources", "*/*", 200, ""},
		{"/v1/resources", "text/html, application/json;q=0.5", 200, ""},
		{"/v1/resources", "application/*", 200, ""},
		{"/v1/resources", "application/json;q=0, */*", 406, "application/json"},
		{"/v1/resources", "application/yaml", 406, "application/json"},
		{"/v1/resources/pods/objects", "text/event-stream", 406, "watch=true"},
		{"/v1/resources/pods/objects?watch=true", "application/json", 406, "text/event-stream"},
	} {
		rec := w.get(t, c.path, "Accept", c.accept)
		if rec.Code != c.code {
			t.Errorf("%s, Accept %q = %d, want %d", c.path, c.accept, rec.Code, c.code)
		} else if c.code != 200 {
			wantStatus(t, rec, c.code, metav1.StatusReasonNotAcceptable, c.message)
		}
	}
}

func TestBodyIsRefused(t *testing.T) {
	w := newWorld(t)
	srv := serve(t, w)
	for method, code := range map[string]int{"GET": 413, "POST": 405} {
		r, _ := http.NewRequest(method, srv+"/v1/resources", strings.NewReader("{}"))
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code || !resp.Close {
			t.Errorf("%s with a body = %d, closed %v", method, resp.StatusCode, resp.Close)
		}
	}
}
