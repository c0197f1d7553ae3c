package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A cluster that says what it serves gets roles by name, one that does not gets
// wildcards, and is told so.
func TestRBACOfCluster(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "- Secret secrets v1", "apps Deployment deployments v1", "example.com Widget widgets v1")
	kubeconfig := kubeconfigFor(t, t.TempDir()+"/kubeconfig", api.URL)
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources:
- match: [secrets]
  watch: false
- match: [pods, "*.apps"]
- match: [widgets.example.com]
  namespaces: [shop]
`)
	var stdout, stderr bytes.Buffer
	args := []string{"rbac", "--config", file, "--kubeconfig", kubeconfig, "--name", "replica", "--namespace", "tools", "--service-account", "reader"}
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	got := withoutComments(stdout.String())
	want := `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: replica
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch]
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [get, list, watch]
  - apiGroups: [""]
    resources: [namespaces]
    resourceNames: [kube-system]
    verbs: [get]
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [list]
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    verbs: [get, list, watch]
  - apiGroups: [apiregistration.k8s.io]
    resources: [apiservices]
    verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: replica
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: replica
subjects:
  - kind: ServiceAccount
    name: reader
    namespace: tools
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: replica
  namespace: shop
rules:
  - apiGroups: [example.com]
    resources: [widgets]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: replica
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: replica
subjects:
  - kind: ServiceAccount
    name: reader
    namespace: tools
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if !strings.Contains(stderr.String(), "note: These are the resources that the cluster serves now") {
		t.Errorf("stderr does not say what is missing later: %s", &stderr)
	}
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestRBACWithoutCluster(t *testing.T) {
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources: [{match: ["*"]}]`)
	missing := t.TempDir() + "/none"
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"rbac", "--config", file, "--kubeconfig", missing}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stderr.String(), "note: cluster default was not asked what it serves: read kubeconfig") {
		t.Errorf("stderr does not say why there are wildcards: %s", &stderr)
	}
	if !strings.Contains(stdout.String(), `resources: ["*"]`) {
		t.Errorf("no wildcard in\n%s", &stdout)
	}
	var offline bytes.Buffer
	run(t.Context(), []string{"rbac", "--config", file, "--offline"}, &offline, &stderr)
	if diff := cmp.Diff(offline.String(), stdout.String()); diff != "" {
		t.Errorf("--offline differs (-offline +unreachable):\n%s", diff)
	}
}

// The Lease of replicas is granted in the cluster that it is in, and in no other.
func TestRBACOfReplicas(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir+"/c.yaml", `clusters: [{name: here}, {name: there, kubeconfig: there.yaml}]
replicas: {url: "https://10.0.0.1:8443", lease: tools/who-leads}
resources: [{match: [pods]}]
`)
	one := writeFile(t, dir+"/one.yaml", `replicas: {url: "https://10.0.0.1:8443", lease: tools/who-leads}
resources: [{match: [pods]}]
`)
	elsewhere := writeFile(t, dir+"/elsewhere.yaml", `replicas: {url: "https://10.0.0.1:8443", lease: tools/who-leads, kubeconfig: lease.yaml}
resources: [{match: [pods]}]
`)
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"--config", file, "--cluster", "here"}, true},
		{[]string{"--config", file, "--cluster", "there"}, false},
		{[]string{"--config", one}, true},
		{[]string{"--config", one, "--kubeconfig", dir + "/mine"}, true},
		{[]string{"--config", elsewhere}, false},
		{[]string{"--config", elsewhere, "--context", "mine"}, false},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"rbac", "--offline"}, test.args...), &stdout, &stderr); code != 0 {
			t.Fatalf("%v: exit code %d: %s", test.args, code, &stderr)
		}
		lease := `  namespace: tools
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [who-leads]
    verbs: [get, update]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
`
		if said := strings.Contains(stderr.String(), "The Lease tools/who-leads of the replicas is taken to be in another cluster"); said == test.want {
			t.Errorf("%v: it is said that the Lease is elsewhere: %v", test.args, said)
		}
		if got := strings.Contains(withoutComments(stdout.String()), lease); got != test.want {
			t.Errorf("%v: grants the Lease: %v, want %v\n%s", test.args, got, test.want, &stdout)
		}
	}
}

func TestRBACMistakes(t *testing.T) {
	two := writeFile(t, t.TempDir()+"/c.yaml", "clusters: [{name: a}, {name: b}]")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--namespace", "No"}, `--namespace: bad name "No"`},
		{[]string{"--service-account", "a b"}, `--service-account: bad name "a b"`},
		{[]string{"--name", ""}, `--name: bad name ""`},
		{[]string{"-o", "json"}, `--output: bad value "json": known are manifest, values`},
		{[]string{"--config", two}, "several clusters: name one with --cluster: a, b"},
		{[]string{"--config", two, "--cluster", "c"}, `no cluster "c", but a, b`},
		{[]string{"x"}, `unexpected argument "x"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"rbac", "--offline"}, test.args...), &stdout, &stderr); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", test.args, code, exitUsage)
		}
		if !strings.Contains(stderr.String(), test.want) || stdout.Len() > 0 {
			t.Errorf("%q: stderr %q, want %q", test.args, stderr.String(), test.want)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"rbac", "--offline", "--config", two, "--cluster", "b"}, &stdout, &stderr); code != 0 {
		t.Errorf("--cluster b: exit code %d: %s", code, &stderr)
	}
}
