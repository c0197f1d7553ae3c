package kubeapi

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/accesstest"
)

const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// TestDiscovery: what is watched is there, in both forms, the API server up or
// not.
func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	w.resources = append([]*resource{
		newResource(t, "metrics.k8s.io", "v1beta1", "pods", "PodMetrics", true),
		newResource(t, "apps", "v1", "deployments", "Deployment", true),
	}, w.resources...)
	w.resources[0].spec.Aggregated = true

	var core, groups apidiscovery.APIGroupDiscoveryList
	w.into(&core, "/api", "Accept", acceptAggregated)
	header := w.into(&groups, "/apis", "Accept", acceptAggregated)
	if got := header.Get("Content-Type"); got != "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" {
		t.Errorf("Content-Type = %q", got)
	}
	if len(core.Items) != 1 || len(core.Items[0].Versions[0].Resources) != 2 {
		t.Fatalf("core group is %+v", core.Items)
	}
	pods := core.Items[0].Versions[0].Resources[1]
	if pods.Resource != "pods" || pods.SingularResource != "pod" || pods.ShortNames[0] != "po" || pods.Categories[0] != "all" ||
		pods.Scope != apidiscovery.ScopeNamespace || strings.Join(pods.Verbs, " ") != "get list watch" || pods.ResponseKind.Kind != "Pod" {
		t.Errorf("pods are %+v", pods)
	}
	var names []string
	for _, g := range groups.Items {
		names = append(names, g.Name)
	}
	if got := strings.Join(names, " "); got != "apps authentication.k8s.io authorization.k8s.io messaging.example.com metrics.k8s.io" {
		t.Errorf("groups are %q: built-in ones come first, aggregated ones last", got)
	}

	var versions metav1.APIVersions
	var list metav1.APIGroupList
	var group metav1.APIGroup
	var resources metav1.APIResourceList
	w.into(&versions, "/api")
	w.into(&list, "/apis")
	w.into(&group, "/apis/apps")
	w.into(&resources, "/api/v1")
	if len(versions.Versions) != 1 || len(list.Groups) != 5 || group.PreferredVersion.GroupVersion != "apps/v1" ||
		len(resources.APIResources) != 2 || resources.GroupVersion != "v1" || resources.APIResources[1].Kind != "Pod" {
		t.Errorf("legacy discovery is %+v %+v %+v %+v", versions, list, group, resources)
	}
	for _, none := range []string{"/apis/coordination.k8s.io", "/apis/coordination.k8s.io/v1", "/api/v2", "/apis/apps/v1beta1"} {
		w.wantStatus(w.get(none), 404, metav1.StatusReasonNotFound, "")
	}
}

// TestDiscoveryIncomplete: while the cluster has not told what it serves, or what
// requests are passed on to does not answer, documents say that they may lack
// something, in both forms, and when they are not sent again, too.
func TestDiscoveryIncomplete(t *testing.T) {
	w := newWorld(t)
	says := func(want string) {
		t.Helper()
		for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/messaging.example.com", "/apis/messaging.example.com/v1"} {
			for _, accept := range []string{acceptAggregated, "application/json"} {
				first := w.get(path, "Accept", accept)
				again := w.get(path, "Accept", accept, "If-None-Match", first.Header().Get("ETag"))
				if first.Code != 200 || again.Code != 304 {
					t.Errorf("%s: %d, then %d", path, first.Code, again.Code)
				}
				for _, h := range []http.Header{first.Header(), again.Header()} {
					if got := h.Get(cache.DiscoveryHeader); got != want || (want == "") != (h.Get("Warning") == "") {
						t.Errorf("%s: %s %q, want %q; Warning: %q", path, cache.DiscoveryHeader, got, want, h.Get("Warning"))
					}
				}
			}
		}
	}
	says("")
	w.clusters[0].Discovered = false
	says("incomplete")
	w.clusters[0].Discovered = true
	w.modes.Passthrough = PassReads
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(503, `{}`) })
	says("incomplete")
}

func TestDiscoveryTag(t *testing.T) {
	w := newWorld(t)
	tag := w.get("/apis", "Accept", acceptAggregated).Header().Get("ETag")
	if rec := w.get("/apis", "Accept", acceptAggregated, "If-None-Match", tag); tag == "" || rec.Code != http.StatusNotModified || rec.Body.Len() > 0 {
		t.Errorf("with tag %q: %d %s", tag, rec.Code, rec.Body)
	}
	w.queues.spec.Watch = false
	if rec := w.get("/apis", "Accept", acceptAggregated, "If-None-Match", tag); rec.Code != http.StatusOK {
		t.Errorf("after a change: %d", rec.Code)
	}
}

// TestDocuments: what the API server says about itself is asked for once, and
// there when it is not.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	var info struct{ Major, Minor, GitVersion string }
	w.into(&info, "/version")
	if info.GitVersion != "v1.36.3" || info.Minor != "36" {
		t.Errorf("version is %+v", info)
	}
	w.wantStatus(w.get("/openapi/v3"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")

	w.upstream.set(func(r *http.Request) *http.Response {
		if r.URL.Path == "/openapi/v3" {
			return jsonResponse(200, `{"paths":{}}`, "ETag", `"x"`)
		}
		return jsonResponse(404, `{}`)
	})
	for range 3 {
		if rec := w.get("/openapi/v3"); rec.Code != 200 || rec.Body.String() != `{"paths":{}}` || rec.Header().Get("ETag") != `"x"` {
			t.Errorf("OpenAPI is %d %s", rec.Code, rec.Body)
		}
	}
	packed := w.get("/openapi/v3", "Accept-Encoding", "gzip")
	if got := unzip(t, packed.Body); got != `{"paths":{}}` || packed.Header().Get("Content-Encoding") != "gzip" ||
		packed.Header().Get("Content-Length") == "" || packed.Header().Get("ETag") != `"x"` {
		t.Errorf("to who accepts gzip OpenAPI is %q, %v", got, packed.Header())
	}
	if rec := w.get("/openapi/v3", "Accept-Encoding", "gzip;q=0"); rec.Body.String() != `{"paths":{}}` || rec.Header().Get("Content-Encoding") != "" {
		t.Errorf("to who does not, it is %q, %v", rec.Body, rec.Header())
	}
	w.wantStatus(w.get("/openapi/v3/nonsense"), 404, metav1.StatusReasonNotFound, "")
	if got := w.upstream.requests(); len(got) != 2 {
		t.Errorf("the API server was asked %v", got)
	}
	w.upstream.set(nil)
	w.documents.confirm(cache.DocumentKey{Cluster: "default", URI: "/openapi/v3", Accept: typeJSON}, time.Now().Add(-2*documentAge))
	if rec := w.get("/openapi/v3", "If-None-Match", `"x"`); rec.Code != http.StatusNotModified {
		t.Errorf("during an outage: %d %s", rec.Code, rec.Body)
	}
	w.clusters = []cache.ClusterStatus{{Name: "default", Discovered: true, Reachable: true}}
	w.wantStatus(w.get("/version"), 503, metav1.StatusReasonServiceUnavailable, "")
}

func unzip(t *testing.T, packed io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentPaths: with informerd's own credentials nothing is asked for but
// the documents there are.
func TestDocumentPaths(t *testing.T) {
	w := newWorld(t)
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(200, `{}`) })
	for _, target := range []string{
		"/openapi/v2", "/openapi/v3", "/openapi/v3/version", "/openapi/v3/api/v1?hash=A%2FB", "/openapi/v3/apis/apps/v1",
		"/openapi/v3/apis/messaging.example.com/v1", "/openapi/v3/.well-known/openid-configuration",
	} {
		if rec := w.get(target); rec.Code != 200 {
			t.Errorf("GET %s = %d %s", target, rec.Code, rec.Body)
		}
		path, _, _ := strings.Cut(target, "?")
		if got := w.upstream.requests(); len(got) == 0 || got[len(got)-1] != "GET "+path {
			t.Errorf("GET %s: the API server was asked %v", target, got)
		}
	}
	asked := len(w.upstream.requests())
	for _, target := range []string{
		"/openapi", "/openapi/v9", "/openapi/v2/more", "/openapi/api/v1/secrets",
		"/openapi/..%2fapi/v1/secrets", "/openapi/v3/../../api/v1/secrets", "/openapi/%2e%2e/api/v1/secrets", "/openapi/v3/%2e%2e%2f..%2fapi/v1/secrets",
		"/clusters/default/openapi/v3/../../api/v1/secrets", "/openapi/v3/./version", "/openapi//v2", "/openapi/v3//version",
		"/openapi/v2%3Fa=b", "/openapi/v3/version%23", "/openapi/v3/%252e%252e/version", "/openapi/v3/api%5cv1",
		"/api/v1/namespaces/../pods", "/api/v1/namespaces/a/pods/one/log/..%2fexec",
	} {
		w.wantStatus(w.get(target), 404, metav1.StatusReasonNotFound, "")
	}
	if got := w.upstream.requests(); len(got) > asked {
		t.Errorf("the API server was asked %v", got[asked:])
	}
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(302, ``, "Location", "/api/v1/secrets") })
	w.wantStatus(w.get("/openapi/v3/api"), 503, metav1.StatusReasonServiceUnavailable, "302")
}

// TestStorageVersionHash: the older form of discovery has what the API server
// says of how it stores, while it was ever asked.
func TestStorageVersionHash(t *testing.T) {
	for _, mode := range []Passthrough{PassNone, PassReads} {
		w := newWorld(t)
		w.modes.Passthrough = mode
		hash := func() string {
			var list metav1.APIResourceList
			w.into(&list, "/api/v1")
			for _, r := range list.APIResources {
				if r.Name == "pods" {
					return r.StorageVersionHash
				}
			}
			t.Fatalf("no pods in %+v", list)
			return ""
		}
		if got := hash(); got != "" {
			t.Errorf("passthrough %q: never told, the hash is %q", mode, got)
		}
		w.upstream.set(func(r *http.Request) *http.Response {
			switch {
			case r.URL.Path == "/api/v1":
				return jsonResponse(200, `{"resources":[{"name":"pods","storageVersionHash":"xPOwRZ+Yhw8="},{"name":"pods/status"}]}`)
			case r.URL.Path == "/apis":
				return jsonResponse(200, `{"items":[]}`)
			}
			return jsonResponse(200, `{"items":[{"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["get","list","watch"]}]}]}]}`)
		})
		w.outages.end("default")
		for range 2 {
			if got := hash(); got != "xPOwRZ+Yhw8=" {
				t.Errorf("passthrough %q: the hash is %q", mode, got)
			}
			w.upstream.set(nil)
		}
	}
}

// TestOneDocument: however often and in whatever words a document is asked for, it is
// asked for once and kept once.
func TestOneDocument(t *testing.T) {
	w := newWorld(t)
	w.upstream.set(func(r *http.Request) *http.Response {
		time.Sleep(50 * time.Millisecond)
		return jsonResponse(200, fmt.Sprintf(`{"form":%q}`, r.Header.Get("Accept")), "ETag", `"x"`)
	})
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			accept := fmt.Sprintf("text/csv, application/json;q=0.%03d, x/y%d;q=0.5", n+1, n)
			if rec := w.get("/openapi/v3/apis/apps/v1", "Accept", accept); rec.Code != 200 || rec.Body.String() != `{"form":"application/json"}` {
				t.Errorf("%s: %d %s", accept, rec.Code, rec.Body)
			}
		})
	}
	all.Wait()
	if got := w.upstream.requests(); len(got) != 1 {
		t.Errorf("the API server was asked %d times", len(got))
	}
	for accept, want := range map[string]string{
		"": typeJSON, "*/*": typeJSON, "application/*": typeJSON, "text/csv": unknownForm,
		"application/com.github.proto-openapi.spec.v3@v1.0+protobuf":                        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
		"application/json;q=0.5,application/com.github.proto-openapi.spec.v3.v1.0+protobuf": "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf":                        unknownForm,
	} {
		if got := openAPIForm("v3", []string{accept}); got != want {
			t.Errorf("%q is %s, want %s", accept, got, want)
		}
	}
}

// TestHealth: a client that asks below its server's URL whether there is one is told so.
func TestHealth(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/clusters/default/healthz", "/clusters/default/livez"} {
		if rec := w.get(path); rec.Code != http.StatusOK || rec.Body.String() != "ok\n" {
			t.Errorf("%s = %d %q", path, rec.Code, rec.Body)
		}
		if rec := w.do(http.MethodHead, path); rec.Code != http.StatusOK || rec.Body.Len() > 0 {
			t.Errorf("HEAD %s = %d %q", path, rec.Code, rec.Body)
		}
		w.wantStatus(w.do(http.MethodPost, path), http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "")
	}
	for _, path := range []string{"/clusters/other/healthz", "/clusters/default/healthz/etcd", "/clusters/default/readyz", "/clusters/default/metrics", "/healthz"} {
		w.wantStatus(w.get(path), http.StatusNotFound, metav1.StatusReasonNotFound, "")
	}
	w.asker = accesstest.NewUser("jane")
	w.wantStatus(w.get("/clusters/default/healthz"), http.StatusForbidden, metav1.StatusReasonForbidden, `cannot get path "/healthz"`)
}
