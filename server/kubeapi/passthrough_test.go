package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// TestPassthrough: what is passed on, and what is not, by mode.
func TestPassthrough(t *testing.T) {
	for _, test := range []struct {
		method, target string
		passedBy       []Passthrough
	}{
		{"GET", "/api/v1/pods", nil},
		{"GET", "/api/v1/namespaces/a/pods/one", nil},
		{"GET", "/apis/coordination.k8s.io/v1/leases", []Passthrough{PassReads, PassAll}},
		{"GET", "/apis/coordination.k8s.io/v1/leases?watch=1", []Passthrough{PassReads, PassAll}},
		{"GET", "/apis/other.example.com/v1/things", []Passthrough{PassReads, PassAll}},
		{"GET", "/apis/coordination.k8s.io/v1/leases?shardSelector=x", []Passthrough{PassReads, PassAll}},
		{"GET", "/api/v1/namespaces/a/pods/one/log?follow=true", []Passthrough{PassReads, PassAll}},
		{"GET", "/clusters/default/api/v1/namespaces/a/pods/one/status", []Passthrough{PassReads, PassAll}},
		{"GET", "/api/v1/namespaces/a/pods/one/exec?command=sh", []Passthrough{PassAll}},
		{"GET", "/api/v1/namespaces/a/pods/one//exec?command=sh", []Passthrough{PassAll}},
		{"GET", "/api/v1/namespaces/a/pods//one/exec?command=sh", []Passthrough{PassAll}},
		{"GET", "/api//v1/namespaces/a/pods/one/exec?command=sh", []Passthrough{PassAll}},
		{"GET", "/api/v1/namespaces/a/services/web/proxy/admin", []Passthrough{PassAll}},
		{"GET", "/api/v1/nodes/n1/proxy/exec/a/one/main", []Passthrough{PassAll}},
		{"POST", "/api/v1/namespaces/a/pods", []Passthrough{PassAll}},
		{"DELETE", "/api/v1/namespaces/a/pods/one", []Passthrough{PassAll}},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", []Passthrough{PassAll}},
	} {
		for _, mode := range []Passthrough{"", PassNone, PassReads, PassAll} {
			w := newWorld(t)
			w.modes.Passthrough = mode
			w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
			rec := w.do(test.method, test.target, "Authorization", "Bearer caller", "X-Remote-User", "admin", "Impersonate-User", "somebody")
			want := false
			for _, m := range test.passedBy {
				want = want || m == mode
			}
			if got := rec.Code == 299; got != want {
				t.Errorf("passthrough %q: %s %s = %d %s, want it passed on: %v", mode, test.method, test.target, rec.Code, rec.Body, want)
			}
			if !want {
				continue
			}
			passed := w.upstream.passed[0]
			if w.upstream.own != 0 || passed.Header.Get("Authorization") != "Bearer caller" || passed.Header.Get("X-Remote-User") != "" ||
				passed.Header.Get("Impersonate-User") != "somebody" || passed.Header.Get("X-Forwarded-For") != "" {
				t.Errorf("%s %s was passed on with %v", test.method, test.target, passed.Header)
			}
			if got := passed.Method + " " + passed.URL.String(); got != test.method+" https://upstream"+strings.TrimPrefix(test.target, "/clusters/default") {
				t.Errorf("%s %s was passed on as %s", test.method, test.target, got)
			}
		}
	}
}

// TestPassthroughRefusal: the API server's own refusal reaches the caller, and
// so does its absence.
func TestPassthroughRefusal(t *testing.T) {
	w := newWorld(t)
	w.modes.Passthrough = PassAll
	w.wantStatus(w.get("/apis/coordination.k8s.io/v1/leases"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
	w.upstream.set(func(*http.Request) *http.Response {
		return jsonResponse(403, `{"kind":"Status","reason":"Forbidden","message":"not you","code":403}`)
	})
	w.wantStatus(w.get("/apis/coordination.k8s.io/v1/leases"), 403, metav1.StatusReasonForbidden, "not you")
	w.upstream.set(func(*http.Request) *http.Response { return nil })
	w.wantStatus(w.get("/apis/coordination.k8s.io/v1/leases"), 503, metav1.StatusReasonServiceUnavailable, "connection refused")
}

// TestPassthroughDiscovery: what can be asked for is what the API server has,
// as far as it can be read.
func TestPassthroughDiscovery(t *testing.T) {
	w := newWorld(t)
	w.upstream.set(func(r *http.Request) *http.Response {
		if r.URL.Path == "/apis" {
			return jsonResponse(200, `{"items":[{"metadata":{"name":"authorization.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"selfsubjectaccessreviews","verbs":["create"],"scope":"Cluster"}]}]}]}`)
		}
		return jsonResponse(200, `{"items":[{"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["create","get","list","watch"],`+
			`"subresources":[{"subresource":"exec","verbs":["create","get"]},{"subresource":"log","verbs":["get"]},{"subresource":"eviction","verbs":["create"]}]},{"resource":"bindings","verbs":["create"],"scope":"Namespaced"}]}]}]}`)
	})
	for mode, want := range map[Passthrough]string{
		PassNone:  "nodes pods",
		PassReads: "pods pods/log",
		PassAll:   "pods pods/exec pods/log pods/eviction bindings",
	} {
		w.modes.Passthrough = mode
		var list metav1.APIResourceList
		w.into(&list, "/api/v1")
		var names []string
		for _, r := range list.APIResources {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("passthrough %s: %q, want %q", mode, got, want)
		}
		rec := w.get("/apis/authorization.k8s.io/v1")
		// They are answered here where the API server is not asked.
		if whole := strings.Contains(rec.Body.String(), "selfsubjectrulesreviews"); rec.Code != 200 || whole != (mode != PassAll) {
			t.Errorf("passthrough %s: reviews are %d %s", mode, rec.Code, rec.Body)
		}
	}
	w.upstream.set(nil)
	w.documents.byKey = nil
	var list metav1.APIResourceList
	if w.into(&list, "/api/v1"); len(list.APIResources) != 2 {
		t.Errorf("during an outage: %+v", list.APIResources)
	}
}

// TestFlags: parameters are read as the API server reads them.
func TestFlags(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "follow=0": false, "follow=false": false, "follow=False": false,
		"follow=true": true, "follow=1": true, "follow=t": true, "follow": true, "follow=no": true,
		"watch=FALSE": false, "watch=1": true, "watch": true,
	} {
		r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/one/log?"+query, nil)
		if got := Streams(r); got != want {
			t.Errorf("%q streams: %v", query, got)
		}
	}
}

// TestShardsAreNotPassedOn: while the copy of what is watched cannot answer, who asks for a shard is
// refused for a moment, where others are passed on: the API server may know no shards.
func TestShardsAreNotPassedOn(t *testing.T) {
	w := newWorld(t)
	w.modes.Passthrough = PassReads
	w.pods.state = cache.Syncing
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
	const of = "shardSelector=shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
	for target, want := range map[string]int{
		"/api/v1/pods": 299, "/api/v1/pods?" + of: 503, "/api/v1/pods?watch=1&" + of: 503, "/api/v1/namespaces/a/pods?" + of: 503,
	} {
		if rec := w.do("GET", target, "Authorization", "Bearer caller"); rec.Code != want || want == 503 && !strings.Contains(rec.Body.String(), "retryAfterSeconds") {
			t.Errorf("%s = %d, %v, %s; want %d", target, rec.Code, rec.Header(), rec.Body, want)
		}
	}
}
