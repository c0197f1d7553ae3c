package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
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
