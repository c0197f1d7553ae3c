package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/test/e2e/harness"
)

// deployedKinds are where the objects of deploy/manifests are written to. What would
// start pods is only shown to the API server.
var deployedKinds = map[string]struct {
	schema.GroupVersionResource
	dry bool
}{
	"Namespace":           {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, false},
	"ServiceAccount":      {schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, false},
	"ConfigMap":           {schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, false},
	"Service":             {schema.GroupVersionResource{Version: "v1", Resource: "services"}, false},
	"Secret":              {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, false},
	"ClusterRole":         {rbacv1.SchemeGroupVersion.WithResource("clusterroles"), false},
	"ClusterRoleBinding":  {rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), false},
	"Role":                {rbacv1.SchemeGroupVersion.WithResource("roles"), false},
	"RoleBinding":         {rbacv1.SchemeGroupVersion.WithResource("rolebindings"), false},
	"NetworkPolicy":       {schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, false},
	"PodDisruptionBudget": {schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, false},
	"StatefulSet":         {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, true},
}

// TestDeployed: with the rights and the configuration of deploy/manifests, and none but
// these, informerd has all that its rules select and serves each user what is theirs.
func TestDeployed(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	objects := deployManifests(t, c)
	account := accountConfig(t, c)
	checkLeastRights(t, account)

	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: writeKubeconfig(t, account), Snapshot: t.TempDir() + "/informerd.db", TLS: true, Access: deployedAccess(t, objects),
	})
	waitGranted(t, newAsker(t, c, i, "admin"), objects)
	checkDeployed(t, c, i)
}

// TestDeployedReplicas: with the rights of deploy/manifests, and those that informerd rbac
// adds for a Lease, one of two replicas with one certificate follows the other one over TLS,
// and goes on alone when that is gone. Both serve each user what is theirs.
func TestDeployedReplicas(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	objects := deployManifests(t, c)
	deploy(t, c, leaseRights(t))
	opts := harness.Options{
		Kubeconfig: writeKubeconfig(t, accountConfig(t, c)), TLS: true, Access: deployedAccess(t, objects), Lease: "informerd/informerd",
	}
	a := harness.StartInformerd(t, opts)
	opts.Twin = a
	// Only who has the right to may read /metrics, which says who leads.
	leader := func(of *harness.Informerd) error {
		code, body := newAsker(t, c, of, "admin").get(t, "/metrics")
		if code != 200 || !strings.Contains(string(body), "\ninformerd_leads 1\n") {
			return fmt.Errorf("%s does not lead: %d", of.URL, code)
		}
		return nil
	}
	harness.Eventually(t, syncTime, "the first to lead", func() error { return leader(a) })
	b := harness.StartInformerd(t, opts)
	for _, i := range []*harness.Informerd{a, b} {
		waitGranted(t, newAsker(t, c, i, "admin"), objects)
		checkDeployed(t, c, i)
	}
	if err := leader(b); err == nil {
		t.Error("both lead")
	}
	a.Kill()
	harness.Eventually(t, syncTime, "the second to lead", func() error { return leader(b) })
	waitGranted(t, newAsker(t, c, b, "admin"), objects)
	checkDeployed(t, c, b)
}

// leaseRights are what informerd rbac writes down for the Lease of replicas.
func leaseRights(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("replicas: {lease: informerd/informerd}\nresources: [{match: [pods]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "informerd"), "rbac", "--offline", "--config", file, "--name", "informerd-lease").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(decodeObjects(t, bytes.NewReader(out)), func(o *unstructured.Unstructured) bool { return o.GetNamespace() != "informerd" })
	if len(all) != 2 {
		t.Fatalf("there are no rights for the Lease in\n%s", out)
	}
	return all
}

// waitGranted waits until all that the shipped role grants is there and current.
func waitGranted(t *testing.T, admin *asker, objects []*unstructured.Unstructured) {
	t.Helper()
	harness.Eventually(t, syncTime, "all that the role grants live", func() error {
		code, body := admin.get(t, "/readyz?verbose")
		if code != 200 {
			return fmt.Errorf("%d %s", code, body)
		}
		// Custom resources of the demo are not among those of the shipped role.
		for line := range strings.Lines(string(body)) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if _, resource, _ := strings.Cut(name, "]"); rest != "" && !strings.HasPrefix(name, "[+]") && granted(objects, resource) {
				return errors.New(line)
			}
		}
		return nil
	})
}

// checkDeployed: users see of pods what they see at the API server.
func checkDeployed(t *testing.T, c *harness.Cluster, i *harness.Informerd) {
	t.Helper()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, name := range []string{"admin", "namespaced", "nobody"} {
		a := newAsker(t, c, i, name)
		for _, ns := range []string{"", tenant} {
			harness.Eventually(t, syncTime, "the same list", func() error {
				if want, got := verdict(t.Context(), a.there, pods, ns), verdict(t.Context(), a.here, pods, ns); got != want {
					return fmt.Errorf("%s, pods of %q: %.300s; the API server: %.300s", name, ns, got, want)
				}
				return nil
			})
		}
	}
}

// deployManifests writes what an operator applies, for the time of the test.
func deployManifests(t *testing.T, c *harness.Cluster) []*unstructured.Unstructured {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(root, "deploy", "manifests", "informerd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := decodeObjects(t, file)
	deploy(t, c, all)
	return all
}

func decodeObjects(t *testing.T, r io.Reader) (all []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Object != nil {
			all = append(all, o)
		}
	}
}

// deploy writes objects for the time of the test.
func deploy(t *testing.T, c *harness.Cluster, all []*unstructured.Unstructured) {
	t.Helper()
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { // a namespace comes before what is in it
		return boolToInt(b.GetKind() == "Namespace") - boolToInt(a.GetKind() == "Namespace")
	})
	for _, o := range all {
		kind, ok := deployedKinds[o.GetKind()]
		if !ok {
			t.Fatalf("the manifests have a %s, which this test does not know", o.GetKind())
		}
		client := c.Dynamic.Resource(kind.GroupVersionResource).Namespace(o.GetNamespace())
		opts := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if kind.dry {
			opts.DryRun = []string{metav1.DryRunAll}
		}
		// What a test before has deleted may be about to go.
		harness.Eventually(t, syncTime, "create "+o.GetKind()+" "+o.GetName(), func() error {
			_, err := client.Create(t.Context(), o, opts)
			if err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
			}
			return err
		})
		if !kind.dry {
			t.Cleanup(func() {
				if err := client.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Errorf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
				}
			})
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// accountConfig connects as the ServiceAccount does from its pod.
func accountConfig(t *testing.T, c *harness.Cluster) *rest.Config {
	t.Helper()
	token, err := c.Client.CoreV1().ServiceAccounts("informerd").CreateToken(t.Context(), "informerd", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token.Status.Token
	return config
}

func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	ca := config.CAData
	if config.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "a"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// checkLeastRights asks the API server what the account may do: it may read, and ask
// who somebody is and what they may.
func checkLeastRights(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"default", "informerd"} {
		review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range review.Status.ResourceRules {
			for _, verb := range rule.Verbs {
				reads := slices.Contains([]string{"get", "list", "watch"}, verb)
				reviews := verb == "create" && !slices.ContainsFunc(rule.Resources, func(r string) bool { return !strings.HasSuffix(r, "reviews") })
				if !reads && !reviews {
					t.Errorf("it may %s %v of %v", verb, rule.Resources, rule.APIGroups)
				}
			}
			// The shipped rules select whatever there is, which has to be listed and
			// watched. Who may get everything may get pods/exec, too: that runs commands.
			wide := slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.ContainsAny(r, "*/") })
			if wide && slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "list" && v != "watch" }) {
				t.Errorf("it may %v %v of %v, subresources included", rule.Verbs, rule.Resources, rule.APIGroups)
			}
		}
	}
}

// deployedAccess are the sections of the shipped configuration about who may ask.
func deployedAccess(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		text, _, _ := unstructured.NestedString(o.Object, "data", "config.yaml")
		var config map[string]any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		access, err := yaml.Marshal(map[string]any{"authentication": config["authentication"], "authorization": config["authorization"]})
		if err != nil || config["authentication"] == nil {
			t.Fatalf("%v: the shipped configuration lets everybody in: %s", err, text)
		}
		return string(access)
	}
	t.Fatal("there is no ConfigMap")
	return ""
}

// granted reports whether a resource, as kubectl names it, is among those of the role.
func granted(objects []*unstructured.Unstructured, resource string) bool {
	name, group, _ := strings.Cut(resource, ".")
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			if slices.Contains(groups, group) && slices.Contains(resources, name) {
				return true
			}
		}
	}
	return false
}
