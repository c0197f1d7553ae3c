package kubeapi

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

func TestList(t *testing.T) {
	w := newWorld(t)
	for target, want := range map[string]string{
		"/api/v1/pods":                                                "one two three",
		"/api/v1/pods?resourceVersion=0":                              "one two three",
		"/api/v1/pods?resourceVersion=100":                            "one two three",
		"/clusters/default/api/v1/pods":                               "one two three",
		"/api/v1/namespaces/a/pods":                                   "one two",
		"/api/v1/namespaces/*/pods":                                   "",
		"/api/v1/namespaces/none/pods":                                "",
		"/api/v1/pods?labelSelector=app%3Dweb":                        "one three",
		"/api/v1/pods?labelSelector=app+notin+(web)":                  "two",
		"/api/v1/pods?fieldSelector=metadata.name%3Dtwo":              "two",
		"/api/v1/pods?fieldSelector=spec.host%3Dn1":                   "one three",
		"/api/v1/pods?fieldSelector=spec.hostNetwork%3Dfalse":         "one two three",
		"/api/v1/pods?fieldSelector=spec.hostNetwork%21%3Dfalse":      "",
		"/api/v1/pods?fieldSelector=spec.containers[0].name!%3Dx":     "one two three",
		"/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse":      "n1",
		"/apis/messaging.example.com/v1/queues":                       "",
		"/api/v1/pods?resourceVersion=100&limit=5":                    "one two three",
		"/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=100": "one two three",
	} {
		var list podList
		w.into(&list, target)
		if got := list.names(); got != want {
			t.Errorf("GET %s = %q, want %q", target, got, want)
		}
		if list.Metadata.ResourceVersion != "100" {
			t.Errorf("GET %s has version %q", target, list.Metadata.ResourceVersion)
		}
	}
}

// TestPages: all pages are of the version of the first.
func TestPages(t *testing.T) {
	w := newWorld(t)
	var first, second, selected podList
	w.into(&first, "/api/v1/pods?limit=2")
	w.pods.apply(t, cache.Deleted, pod("b", "three", "web", "n1", 101))
	w.into(&second, "/api/v1/pods?limit=2&continue="+first.Metadata.Continue)
	if first.names() != "one two" || second.names() != "three" || second.Metadata.ResourceVersion != "100" || second.Metadata.Continue != "" {
		t.Errorf("pages are %+v and %+v", first, second)
	}
	if n := first.Metadata.RemainingItemCount; n == nil || *n != 1 {
		t.Errorf("remainingItemCount = %v", n)
	}
	w.into(&selected, "/api/v1/pods?limit=1&labelSelector=app")
	if selected.Metadata.Continue == "" || selected.Metadata.RemainingItemCount != nil {
		t.Errorf("with a selector the metadata are %+v", selected.Metadata)
	}
	w.wantStatus(w.get("/api/v1/pods?limit=2&resourceVersion=5&continue="+first.Metadata.Continue), 400, metav1.StatusReasonBadRequest, "not allowed when using continue")
	w.wantStatus(w.get("/api/v1/nodes?limit=2&continue="+first.Metadata.Continue), 400, metav1.StatusReasonBadRequest, "invalid continue token")
}

// TestExactVersion: a list at a version is what there was then.
func TestExactVersion(t *testing.T) {
	w := newWorld(t)
	w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n9", 101))
	w.pods.apply(t, cache.Added, pod("a", "new", "web", "n1", 102))
	w.pods.apply(t, cache.Deleted, pod("b", "three", "web", "n1", 103))
	for version, want := range map[string]string{"100": "one three", "101": "three", "102": "new three", "103": "new"} {
		var list podList
		w.into(&list, "/api/v1/pods?resourceVersionMatch=Exact&labelSelector=app%3Dweb&resourceVersion="+version)
		if list.names() != want || list.Metadata.ResourceVersion != version {
			t.Errorf("at %s: %q at %s, want %q", version, list.names(), list.Metadata.ResourceVersion, want)
		}
	}
	w.wantStatus(w.get("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=99"), 410, metav1.StatusReasonExpired, "too old")
	w.wantStatus(w.get("/api/v1/pods?limit=1&resourceVersion=99"), 410, metav1.StatusReasonExpired, "too old")
}

func TestGet(t *testing.T) {
	w := newWorld(t)
	var o struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Spec     map[string]any
	}
	w.into(&o, "/api/v1/namespaces/a/pods/two")
	if o.Kind != "Pod" || o.Metadata.Name != "two" || o.Spec["nodeName"] != "n2" {
		t.Errorf("got %+v", o)
	}
	o.Spec = nil
	w.into(&o, "/api/v1/namespaces/a/pods/two", "Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if o.Kind != "PartialObjectMetadata" || o.Metadata.Labels["app"] != "db" || o.Spec != nil {
		t.Errorf("as metadata: %+v", o)
	}
	if body := w.get("/api/v1/nodes/n1", "Accept", "application/yaml").Body.String(); !strings.Contains(body, "\n  name: n1\n") {
		t.Errorf("YAML is %s", body)
	}
	if body := w.get("/api/v1/nodes/n1?pretty=1").Body.String(); !strings.Contains(body, "\n    \"name\": \"n1\"") {
		t.Errorf("pretty JSON is %s", body)
	}
	w.wantStatus(w.get("/api/v1/namespaces/a/pods/none"), 404, metav1.StatusReasonNotFound, `pods "none" not found`)
	w.wantStatus(w.get("/apis/messaging.example.com/v1/namespaces/a/queues/none"), 404, metav1.StatusReasonNotFound, `queues.messaging.example.com "none" not found`)
}

// TestRefused: what is not served says why.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.wantStatus(w.get("/apis/coordination.k8s.io/v1/leases"), 404, metav1.StatusReasonNotFound, "does not watch leases")
	w.wantStatus(w.get("/api/v1/namespaces/a/pods/one/log"), 404, metav1.StatusReasonNotFound, "subresources")
	w.wantStatus(w.get("/api/v1/things"), 404, metav1.StatusReasonNotFound, "could not find")
	w.wantStatus(w.get("/clusters/other/api/v1/pods"), 404, metav1.StatusReasonNotFound, "no cluster")
	w.wantStatus(w.get("/api/v1/pods", "Accept", "application/vnd.kubernetes.protobuf"), 406, metav1.StatusReasonNotAcceptable, "application/json")
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		w.wantStatus(w.do(method, "/api/v1/namespaces/a/pods/one"), 405, metav1.StatusReasonMethodNotAllowed, "read replica")
		w.wantStatus(w.do(method, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/one"), 405, metav1.StatusReasonMethodNotAllowed, "read replica")
	}
	w.pods.state = cache.Syncing
	w.wantStatus(w.get("/api/v1/pods"), 503, metav1.StatusReasonServiceUnavailable, "no data yet")
	w.clusters = append(w.clusters, cache.ClusterStatus{Name: "other", Discovered: true, Reachable: true})
	w.wantStatus(w.get("/api/v1/pods"), 404, metav1.StatusReasonNotFound, "/clusters/NAME")
}

// TestMissingNamespace: a namespace that may not be read is not answered as an
// empty one, and lists of all name it.
func TestMissingNamespace(t *testing.T) {
	w := newWorld(t)
	w.pods.store.SetSources([]string{"a", "b"})
	w.pods.missing = []cache.MissingNamespace{{Namespace: "b", State: cache.Forbidden, Reason: "not you"}}
	for _, target := range []string{"/api/v1/namespaces/b/pods", "/api/v1/namespaces/b/pods/three", "/api/v1/namespaces/b/pods?watch=1"} {
		w.wantStatus(w.get(target), 503, metav1.StatusReasonServiceUnavailable, "pods of namespace b is forbidden in informerd: there is no data to answer from: not you")
	}
	var list podList
	if warning := w.into(&list, "/api/v1/pods").Values("Warning"); len(warning) == 0 || !strings.Contains(warning[0], "299") || !strings.Contains(warning[0], "b (forbidden)") {
		t.Errorf("a list of all namespaces has the warnings %q", warning)
	}
	if warning := w.into(&list, "/api/v1/namespaces/a/pods").Values("Warning"); len(warning) != 0 || list.names() != "one two" {
		t.Errorf("a list of the other namespace is %q with the warnings %q", list.names(), warning)
	}
	w.modes.Passthrough = PassReads
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
	if rec := w.get("/api/v1/namespaces/b/pods"); rec.Code != 299 {
		t.Errorf("with passthrough it is %d %s", rec.Code, rec.Body)
	}
}

// TestGetNotSelected: that an object is not in a copy of some does not mean that
// it does not exist.
func TestGetNotSelected(t *testing.T) {
	for name, change := range map[string]func(*cache.Spec){
		"labels":     func(s *cache.Spec) { s.LabelSelector = "app=web" },
		"fields":     func(s *cache.Spec) { s.FieldSelector = "spec.nodeName=n1" },
		"namespaces": func(s *cache.Spec) { s.Namespaces = []string{"b"} },
	} {
		w := newWorld(t)
		change(&w.pods.spec)
		store, err := cache.NewStore(w.pods.spec, cache.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		w.pods.store = store
		w.pods.replace(t, "100", pod("b", "three", "web", "n1", 30))
		w.wantStatus(w.get("/api/v1/namespaces/a/pods/two"), 403, metav1.StatusReasonForbidden, `pods "two" may exist, but informerd does not watch it`)
		if rec := w.get("/api/v1/namespaces/b/pods/three"); rec.Code != 200 {
			t.Errorf("%s: what is held is %d %s", name, rec.Code, rec.Body)
		}
		w.modes.Passthrough = PassReads
		w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
		if rec := w.get("/api/v1/namespaces/a/pods/two"); rec.Code != 299 || rec.Header().Get("Informerd-State") != "" {
			t.Errorf("%s: with passthrough it is %d %s %v", name, rec.Code, rec.Body, rec.Header())
		}
	}
}
