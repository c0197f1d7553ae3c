package test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestShippedRights: the rights that the chart grants by itself are those that informerd
// says the shipped configuration needs.
func TestShippedRights(t *testing.T) {
	out, stderr, err := program(t, "rbac", "--offline", "--authentication", "--output", "values", "--config", root+"/config.yaml")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	golden(t, "deploy/helm/informerd/files/rbac.yaml", out)
}

// TestLeaseRights: the rights to the Lease of replicas that the chart grants are those that
// informerd says are needed.
func TestLeaseRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("replicas: {lease: informerd/informerd}\nresources: [{match: [pods]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, err := program(t, "rbac", "--offline", "--output", "values", "--config", file)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	var said struct {
		RBAC struct {
			NamespaceRules map[string][]rbacv1.PolicyRule
		}
	}
	if err := yaml.Unmarshal([]byte(out), &said); err != nil {
		t.Fatal(err)
	}
	want := said.RBAC.NamespaceRules["informerd"]
	got := get[*rbacv1.Role](t, installed.objects(t, given+"leaderElection: {enabled: true}"), "Role/informerd/informerd-lease").Rules
	if len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the chart grants %v, and %v is needed", got, want)
	}
}

// manifestsHead says what cannot be in a file that everybody has.
const manifestsHead = `# informerd in a cluster: the Helm chart of deploy/helm/informerd, rendered with its
# defaults. Written by make manifests.
#
# Before it is applied,
#
#   - the image has to be where the nodes find it: change "image" below to what
#     make image PUSH=... printed;
#   - the certificate has to be there: a Secret of type kubernetes.io/tls, for the name
#     informerd.informerd.svc, which cert-manager or this makes:
#
#       kubectl create namespace informerd
#       openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
#         -subj /CN=informerd -keyout tls.key -out tls.crt \
#         -addext 'subjectAltName=DNS:informerd.informerd.svc,DNS:localhost,IP:127.0.0.1'
#       kubectl --namespace informerd create secret tls informerd-tls --cert tls.crt --key tls.key
#
# Then: kubectl apply -f informerd.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: informerd
  labels:
    # Nothing in this namespace may do more than informerd does.
    pod-security.kubernetes.io/enforce: restricted
`

// TestManifests: what is there for kubectl apply is the chart.
func TestManifests(t *testing.T) {
	rendered, err := installed.render(given)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(manifestsHead)
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, doc := range documents(rendered[file]) {
			// It was not Helm that applied it.
			doc = strings.ReplaceAll(doc, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
			b.WriteString("---\n" + withoutChart(doc))
		}
	}
	golden(t, "deploy/manifests/informerd.yaml", b.String())
	for _, doc := range documents(b.String()) {
		if _, err := decode([]byte(doc)); err != nil {
			t.Errorf("%v\n%s", err, doc)
		}
	}
}

// withoutChart is doc without the label that names the chart.
func withoutChart(doc string) string {
	var b strings.Builder
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(strings.TrimSpace(line), "helm.sh/chart:") && strings.TrimSpace(line) != "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestNotes: what is shown after an installation names what is there.
func TestNotes(t *testing.T) {
	for values, want := range map[string][]string{
		"":                                {"rollout status statefulset/informerd", "get secret informerd-tls", "https://informerd.informerd.svc.", "informerd rbac --authentication"},
		"tls: {mode: secret}":             {"of the certificate in the Secret informerd-tls"},
		"service: {port: 8443}":           {"8443:8443", "https://informerd.informerd.svc:8443"},
		"persistence: {enabled: false}":   {"Without persistence"},
		"serviceMonitor: {enabled: true}": {"rbac.metricsReaders"},
		"ingress: {enabled: true, hosts: [x.example.com]}": {"https://x.example.com/"},
	} {
		rendered, err := installed.render(values)
		if err != nil {
			t.Fatal(err)
		}
		notes := rendered["informerd/templates/NOTES.txt"]
		for _, w := range want {
			if !strings.Contains(notes, w) {
				t.Errorf("%q: the notes lack %q:\n%s", values, w, notes)
			}
		}
	}
}
