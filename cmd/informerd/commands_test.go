package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestCheckWithCluster(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v2,v1", "example.com Widget widgets v1")
	kubeconfig := kubeconfigFor(t, t.TempDir()+"/kubeconfig", api.URL)
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources:
- match: [pods, deployments]
- match: ["*.v1.apps"]
  watch: false
- match: [zebras.zoo]
`)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"check", file, "--kubeconfig", kubeconfig}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := file + `: ok, 3 rules

cluster default serves 3 resources:

resources[0] (line 2) [pods, deployments], watched: 1 resource
  pods

resources[1] (line 3) [*.v1.apps], left out: 1 resource
  deployments.apps (v1)

resources[2] (line 5) [zebras.zoo], watched: 0 resources

no rule, left out: 1 resource
  widgets.example.com
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	want = `warning: resources[0] (line 2): deployments is not served; did you mean deployments.apps?
warning: resources[2] (line 5): selects nothing: zebras.zoo
`
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// TestCheckHandlers: each handler is shown with what it follows of a cluster, and names that
// select nothing are warnings that say why.
func TestCheckHandlers(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "- Secret secrets v1", "apps Deployment deployments v2,v1", "example.com Widget widgets v1")
	kubeconfig := kubeconfigFor(t, t.TempDir()+"/kubeconfig", countedPods(t, api.URL))
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources:
- match: [secrets]
  watch: false
- match: [pods, "*.apps"]
clusters:
- {name: default, kubeconfig: `+kubeconfig+`}
- {name: away, kubeconfig: /nowhere/kubeconfig}
handlers:
- {name: shop, resources: [pods, deployments.apps], namespaces: ["shop-*"], filter: object.spec.a == 1, as: informerd, from: beginning}
- name: hook
  resources: [deployments, secrets, widgets.example.com, zebras.zoo]
  as: informerd
  webhook: {url: "https://example.com/x", secretFiles: [/nowhere/secret]}
- {name: away, clusters: [away], resources: [pods], as: informerd}
`)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"check", file}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := file + `: ok, 2 rules, 3 handlers

handlers[0] (line 9) shop [pods, deployments.apps], to be claimed, from beginning, as informerd

handlers[1] (line 10) hook [deployments, secrets, widgets.example.com, zebras.zoo], to a webhook, from now, as informerd

handlers[2] (line 14) away [pods], to be claimed, from now, as informerd

cluster default serves 4 resources:

resources[0] (line 2) [secrets], left out: 1 resource
  secrets

resources[1] (line 4) [pods, *.apps], watched: 2 resources
  pods  deployments.apps

no rule, left out: 1 resource
  widgets.example.com

handlers[0] (line 9) shop follows of cluster default: 2 resources, less what namespaces and filter leave out
  pods (8 objects)  deployments.apps (may not be listed)

handlers[1] (line 10) hook follows of cluster default: 0 resources
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	want = `warning: handlers[1] (line 10) hook: it could not be started here: secretFiles[0]: file /nowhere/secret cannot be read: no such file or directory
warning: handlers[1] (line 10) hook: cluster default: deployments is not served; did you mean deployments.apps?
warning: handlers[1] (line 10) hook: cluster default: secrets is left out by resources[0]: nothing of it is delivered
warning: handlers[1] (line 10) hook: cluster default: widgets.example.com is served, but no rule of resources matches it: nothing of it is delivered
warning: handlers[1] (line 10) hook: cluster default: zebras.zoo is not served: nothing of it is delivered until it is
cluster away not asked what it serves: read kubeconfig: stat /nowhere/kubeconfig: no such file or directory
`
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// countedPods is a server like the one at url, with 8 pods.
func countedPods(t *testing.T, at string) string {
	t.Helper()
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	rest := httputil.NewSingleHostReverseProxy(target)
	rest.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" {
			rest.ServeHTTP(w, r)
			return
		}
		if r.URL.Query().Get("limit") != "1" {
			t.Errorf("asked for %s", r.URL)
		}
		answer(w, "application/json", &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
			ListMeta: metav1.ListMeta{Continue: "more", RemainingItemCount: ptr.To(int64(7))},
			Items:    make([]metav1.PartialObjectMetadata, 1),
		})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestResourcesOfCluster(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v2,v1", "coordination.k8s.io Lease leases v1")
	kubeconfig := kubeconfigFor(t, t.TempDir()+"/kubeconfig", api.URL)
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources:
- match: [pods]
  indexes: {node: spec.nodeName, phase: status.phase}
- match: [deployments.v1.apps]
  watch: false
`)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"resources", "--config", file, "--kubeconfig", kubeconfig}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	want := `NAME                         VERSION   KIND         NAMESPACED   WATCHED   RULE     INDEXES
pods                         v1        Pod          true         true      line 2   node,phase
deployments.apps             v1        Deployment   true         false     line 4   
leases.coordination.k8s.io   v1        Lease        true         false     none     
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestResourcesOfServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/resources" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"items":[
			{"cluster":"default","group":"","version":"v1","resource":"pods","kind":"Pod","namespaced":true,"state":"live","objects":7,"indexes":["namespace","node"]},
			{"cluster":"default","group":"apps","version":"v1","resource":"deployments","kind":"Deployment","namespaced":true,"state":"forbidden","reason":"no","objects":0,"indexes":[]}]}`)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"resources", "--server", server.URL}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	want := `NAME               VERSION   KIND         NAMESPACED   STATE       OBJECTS   INDEXES          REASON
pods               v1        Pod          true         live        7         namespace,node   
deployments.apps   v1        Deployment   true         forbidden   0                          no
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	stderr.Reset()
	if code := run(t.Context(), []string{"resources", "--server", server.URL + "/x"}, &stdout, &stderr); code != 1 {
		t.Errorf("exit code %d for an answer that is 404", code)
	}
	if want := "informerd: ask " + server.URL + "/x: answer is 404 Not Found\n"; stderr.String() != want {
		t.Errorf("stderr %q, want %q", stderr.String(), want)
	}
}
