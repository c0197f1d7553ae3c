package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

var pods = schema.GroupResource{Resource: "pods"}

// TestAttributes: paths and parameters are judged as the API server judges them.
func TestAttributes(t *testing.T) {
	w := newWorld(t)
	for target, want := range map[string]access.Attributes{
		"/api/v1/pods":                                                {Verb: "list", Version: "v1", Resource: "pods"},
		"/api/v1/pods?watch=false":                                    {Verb: "list", Version: "v1", Resource: "pods"},
		"/api/v1/pods?watch=1":                                        {Verb: "watch", Version: "v1", Resource: "pods"},
		"/api/v1/namespaces/a/pods?labelSelector=x%3D1":               {Verb: "list", Version: "v1", Resource: "pods", Namespace: "a", LabelSelector: "x=1"},
		"/api/v1/namespaces/a/pods/one":                               {Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "one"},
		"/api/v1/namespaces/a/pods/one?watch=true":                    {Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "one"},
		"/api/v1/namespaces/a/pods/one/log":                           {Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "one", Subresource: "log"},
		"/api/v1/namespaces/a/pods/one/proxy/x/y":                     {Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "one", Subresource: "proxy"},
		"/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Done": {Verb: "list", Version: "v1", Resource: "pods", Namespace: "a", Name: "one", FieldSelector: "metadata.name=one"},
		"/api/v1/pods?watch=1&fieldSelector=metadata.name%3Done":      {Verb: "watch", Version: "v1", Resource: "pods", Name: "one", FieldSelector: "metadata.name=one"},
		"/api/v1/pods?fieldSelector=metadata.name!%3Done":             {Verb: "list", Version: "v1", Resource: "pods", FieldSelector: "metadata.name!=one"},
		"/api/v1/pods?fieldSelector=metadata.name%3D..":               {Verb: "list", Version: "v1", Resource: "pods", FieldSelector: "metadata.name=.."},
		"/api/v1/pods?limit=x&fieldSelector=metadata.name%3Done":      {Verb: "list", Version: "v1", Resource: "pods", FieldSelector: "metadata.name=one"},
		"/api/v1/watch/namespaces/a/pods/one":                         {Verb: "watch", Version: "v1", Resource: "pods", Namespace: "a", Name: "one"},
		"/api/v1/watch/pods?fieldSelector=metadata.name%3Done":        {Verb: "watch", Version: "v1", Resource: "pods", FieldSelector: "metadata.name=one"},
		"/api/v1/namespaces":                                          {Verb: "list", Version: "v1", Resource: "namespaces"},
		"/api/v1/namespaces/a":                                        {Verb: "get", Version: "v1", Resource: "namespaces", Namespace: "a", Name: "a"},
		"/api/v1/namespaces/a/status":                                 {Verb: "get", Version: "v1", Resource: "namespaces", Namespace: "a", Name: "a", Subresource: "status"},
		"/clusters/default/apis/apps/v1/namespaces/a/deployments/x":   {Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "x"},
	} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		req, err := w.parse(r)
		if err != nil {
			t.Fatal(err)
		}
		want.Cluster = "default"
		if d := cmp.Diff(want, req.attributes(r)); d != "" {
			t.Errorf("%s (-want +got):\n%s", target, d)
		}
	}
}

// TestWatchOfOneObjectIsChecked: who may watch one object watches that one, however it is
// asked for, and no other (rancher/steve's GHSA-j5hq-5jcr-xwx7, where a watch of one name
// was not checked).
func TestWatchOfOneObjectIsChecked(t *testing.T) {
	t.Parallel() // it waits, for seconds
	w := newWorld(t)
	w.asker = accesstest.NewUser("jane").Grant(pods, cache.NewScope(nil, map[string][]string{"a": {"one"}}))
	for target, allowed := range map[string]bool{
		"/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Done":                           true,
		"/api/v1/namespaces/a/pods?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Done": true,
		"/api/v1/watch/namespaces/a/pods/one?resourceVersion=0":                                 true,
		"/api/v1/namespaces/a/pods/one":                                                         true,
		"/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dtwo":                   false,
		"/api/v1/namespaces/b/pods?watch=1&fieldSelector=metadata.name%3Done":                   false,
		"/api/v1/pods?watch=1&fieldSelector=metadata.name%3Done":                                false,
		"/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name!%3Done":                  false,
		"/api/v1/namespaces/a/pods?watch=1":                                                     false,
		"/api/v1/namespaces/a/pods":                                                             false,
		"/api/v1/watch/namespaces/a/pods":                                                       false,
		"/api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name%3Done":                     false,
		"/api/v1/watch/namespaces/a/pods/two":                                                   false,
		"/api/v1/watch/namespaces/a/pods/two?fieldSelector=metadata.name%3Done":                 false,
		"/api/v1/namespaces/a/pods/two":                                                         false,
	} {
		at := target + "?timeoutSeconds=1"
		if strings.Contains(target, "?") {
			at = target + "&timeoutSeconds=1"
		}
		rec := w.get(at)
		if !allowed {
			if rec.Code == http.StatusOK || strings.Contains(rec.Body.String(), "uid-") {
				t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
			}
			continue
		}
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "uid-a-one") || strings.Contains(rec.Body.String(), "uid-a-two") {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

// TestVisible: lists and watches may be of what may be seen, by a parameter that the API
// server never gets, or by the configuration.
func TestVisible(t *testing.T) {
	w := newWorld(t)
	w.asker = accesstest.NewUser("jane").Grant(pods, cache.NewScope([]string{"a"}, nil))
	var l podList
	w.into(&l, "/api/v1/pods?visible=true")
	if l.names() != "one two" || l.Metadata.ResourceVersion != "100" {
		t.Errorf("visible: %s at %s", l.names(), l.Metadata.ResourceVersion)
	}
	w.wantStatus(w.get("/api/v1/pods?visible=false"), http.StatusForbidden, metav1.StatusReasonForbidden, `cannot list resource "pods"`)
	w.wantStatus(w.get("/api/v1/nodes?visible=true"), http.StatusForbidden, metav1.StatusReasonForbidden, `cannot list resource "nodes"`)
	w.modes.Lists = Visible
	w.into(&l, "/api/v1/pods")
	if l.names() != "one two" {
		t.Errorf("by configuration: %s", l.names())
	}
	watch := w.watch("/api/v1/pods?watch=1&resourceVersion=100")
	w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n1", 101))
	w.pods.apply(t, cache.Modified, pod("a", "two", "web", "n1", 102))
	watch.want("MODIFIED two@102")

	w.modes = Modes{Passthrough: PassReads}
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(http.StatusOK, "{}") })
	w.get("/apis/coordination.k8s.io/v1/leases?visible=true&limit=3")
	for _, asked := range w.upstream.requests() {
		if strings.Contains(asked, "visible") {
			t.Errorf("the API server was asked for %s", asked)
		}
	}
}

// TestNobodyAsks: a request of which nobody said who makes it sees nothing.
func TestNobodyAsks(t *testing.T) {
	w := newWorld(t)
	w.asker = nil
	for _, target := range []string{"/api/v1/pods", "/api/v1/pods?visible=true", "/api/v1/namespaces/a/pods/one", "/api/v1/pods?watch=1", "/version", "/apis"} {
		w.wantStatus(w.get(target), http.StatusForbidden, metav1.StatusReasonForbidden, "cannot")
	}
}

// TestWatchByPathKeepsSelector: all terms that a watch was judged by are executed, also
// where its path names the object.
func TestWatchByPathKeepsSelector(t *testing.T) {
	t.Parallel() // it waits, for seconds
	w := newWorld(t)
	for selector, sees := range map[string]bool{
		"": true, "metadata.name=one": true, "metadata.name=one,spec.nodeName=n1": true, "metadata.name=one,spec.nodeName=n9": false,
	} {
		rec := w.get("/api/v1/watch/namespaces/a/pods/one?timeoutSeconds=1&resourceVersion=0&fieldSelector=" + url.QueryEscape(selector))
		if body := rec.Body.String(); strings.Contains(body, "uid-a-one") != sees || strings.Contains(body, "uid-a-two") {
			t.Errorf("%q: %d %s", selector, rec.Code, body)
		}
	}
}

// TestRightsAfterWaits: who loses rights while a request waits for its version is not
// answered with what came meanwhile.
func TestRightsAfterWaits(t *testing.T) {
	t.Parallel() // it waits, for seconds
	for target, code := range map[string]int{
		"/api/v1/namespaces/a/pods/one?resourceVersion=101":                                                              http.StatusForbidden,
		"/api/v1/namespaces/a/pods?resourceVersion=101":                                                                  http.StatusForbidden,
		"/api/v1/namespaces/a/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=101": http.StatusGone,
	} {
		w := newWorld(t)
		jane := accesstest.NewUser("jane").Grant(pods, cache.NewScope([]string{"a"}, nil))
		w.asker = jane
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- w.get(target + "&timeoutSeconds=3") }()
		time.Sleep(rightsInterval + 100*time.Millisecond)
		jane.Grant(pods, cache.NewScope([]string{"b"}, nil))
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
		rec := <-done
		if body := rec.Body.String(); !strings.Contains(body, fmt.Sprintf(`"code":%d`, code)) || strings.Contains(body, "uid-a-one") {
			t.Errorf("%s: %d %s", target, rec.Code, body)
		}
	}
}

// TestRightsAfterAdmission: nor is who waited for a place answered by the rights of before.
func TestRightsAfterAdmission(t *testing.T) {
	t.Parallel() // it waits, for seconds
	for target, code := range map[string]int{
		"/api/v1/namespaces/a/pods/one":                      http.StatusForbidden,
		"/api/v1/namespaces/a/pods":                          http.StatusForbidden,
		"/api/v1/pods?visible=true":                          http.StatusForbidden,
		"/api/v1/namespaces/a/pods?watch=1&timeoutSeconds=1": http.StatusGone,
		"/apis":    http.StatusForbidden,
		"/version": http.StatusForbidden,
	} {
		w := newWorld(t)
		jane := accesstest.NewUser("jane").Grant(pods, cache.NewScope([]string{"a"}, nil)).GrantPaths()
		w.asker = jane
		w.Admit = func(context.Context, Class) (func(), error) {
			time.Sleep(rightsInterval + 100*time.Millisecond)
			jane.Grant(pods, cache.NewScope([]string{"b"}, nil)).RevokePaths()
			return func() {}, nil
		}
		rec := w.get(target)
		if body := rec.Body.String(); rec.Code != code || strings.Contains(body, "uid-a-one") {
			t.Errorf("%s: %d %s", target, rec.Code, body)
		}
	}
}
