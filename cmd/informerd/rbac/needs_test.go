package rbac_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/cmd/informerd/rbac"
	"github.com/informerd/informerd/discovery"
)

// allows evaluates rules as RBAC does. A subresource is "pods/exec".
func allows(rules []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.Verbs, verb) && has(r.APIGroups, group) && has(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

// granted is what a manifest grants: in all namespaces, and in each.
type granted struct {
	everywhere []rbacv1.PolicyRule
	in         map[string][]rbacv1.PolicyRule
}

func (g granted) allows(verb, group, resource, namespace, name string) bool {
	return allows(g.everywhere, verb, group, resource, name) || allows(g.in[namespace], verb, group, resource, name)
}

// manifest reads what is written, strictly, and makes sure that every role is bound.
func manifest(t *testing.T, n *rbac.Needs) granted {
	t.Helper()
	var text bytes.Buffer
	names := rbac.Names{Role: "r", Namespace: "n", ServiceAccount: "s"}
	if err := n.WriteManifest(&text, names); err != nil {
		t.Fatal(err)
	}
	g := granted{in: map[string][]rbacv1.PolicyRule{}}
	bound := map[string]bool{}
	for i, doc := range strings.Split(text.String(), "---\n") {
		if i == 0 {
			continue // comments
		}
		var role rbacv1.Role
		var binding rbacv1.RoleBinding
		if err := yaml.UnmarshalStrict([]byte(doc), &role); err == nil {
			if role.Namespace == "" && role.Kind == "ClusterRole" {
				g.everywhere = role.Rules
			} else if role.Namespace != "" && role.Kind == "Role" {
				g.in[role.Namespace] = role.Rules
			} else {
				t.Errorf("%s in namespace %q", role.Kind, role.Namespace)
			}
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(doc), &binding); err != nil {
			t.Fatalf("neither role nor binding: %v\n%s", err, doc)
		}
		want := rbacv1.Subject{Kind: "ServiceAccount", Name: "s", Namespace: "n"}
		if len(binding.Subjects) != 1 || binding.Subjects[0] != want || binding.RoleRef.Name != "r" || binding.Kind != binding.RoleRef.Kind+"Binding" {
			t.Errorf("binding is %+v", binding)
		}
		bound[binding.Namespace] = true
	}
	for ns := range g.in {
		if !bound[ns] {
			t.Errorf("the role in %s is not bound", ns)
		}
	}
	if !bound[""] {
		t.Error("the ClusterRole is not bound")
	}
	return g
}

func rules(t *testing.T, text string) []config.Rule {
	t.Helper()
	c, err := config.Parse("c.yaml", []byte("resources: "+text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c.Resources
}

func served(name string, namespaced bool) discovery.Resource {
	gvr, gr := schema.ParseResourceArg(name)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Resource: gr.Resource, Version: gr.Group}
	}
	return discovery.Resource{GVR: *gvr, Versions: []string{gvr.Version}, Namespaced: namespaced}
}

var cluster = []discovery.Resource{
	served("pods.v1", true), served("secrets.v1", true), served("configmaps.v1", true),
	served("namespaces.v1", false), served("nodes.v1", false), served("events.v1", true),
	served("deployments.v1.apps", true), served("statefulsets.v1.apps", true), served("leases.v1.coordination.k8s.io", true),
	served("customresourcedefinitions.v1.apiextensions.k8s.io", false), served("apiservices.v1.apiregistration.k8s.io", false),
	served("roles.v1.rbac.authorization.k8s.io", true), served("clusterroles.v1.rbac.authorization.k8s.io", false),
	served("widgets.v1.example.com", true), served("planets.v1.example.com", false), served("issuers.v1.cert-manager.io", true),
}

// founded reports whether something is granted whatever is selected.
func founded(verb string, gr schema.GroupResource, authentication bool) bool {
	switch gr.String() {
	case "namespaces":
		return verb == "list"
	case "customresourcedefinitions.apiextensions.k8s.io":
		return true
	case "apiservices.apiregistration.k8s.io":
		return verb != "get"
	}
	return authentication && gr.Group == "rbac.authorization.k8s.io"
}

// TestExact: of any rules, with a cluster at hand, exactly what is selected is granted
// and what is needed whatever is selected; without, nothing that is needed is missing,
// and no right to run commands is among it.
func TestExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		text := randomRules(random)
		c, err := config.Parse("c.yaml", []byte("resources: "+text))
		if err != nil {
			continue // a rule that is never reached
		}
		options := rbac.Options{Authentication: n%2 == 0}
		exact := manifest(t, rbac.Of(plan.Choose(c.Resources, "default", cluster), options))
		offline := manifest(t, rbac.Offline(c.Resources, options))
		for _, choice := range plan.Choose(c.Resources, "default", cluster) {
			spec, gr := choice.Spec, choice.Spec.GVR.GroupResource()
			for _, verb := range []string{"get", "list", "watch"} {
				for _, ns := range []string{"", "shop", "other"} {
					wanted := spec.Watch && (ns == "" || spec.Namespaced)
					if spec.Namespaced && len(spec.Namespaces) == 1 && spec.Namespaces[0] == "shop" {
						wanted = spec.Watch && ns == "shop"
					}
					wanted = wanted || founded(verb, gr, options.Authentication)
					got := exact.allows(verb, gr.Group, gr.Resource, ns, "x")
					if !spec.Namespaced && ns != "" {
						continue // there is no such request
					}
					if got != wanted {
						t.Fatalf("%s:\n%s %s in %q: granted %v, needed %v", text, verb, gr, ns, got, wanted)
					}
					custom := strings.Contains(gr.Group, "example.com") || gr.Group == "cert-manager.io"
					if wanted && !offline.allows(verb, gr.Group, gr.Resource, ns, "x") && !(custom && (verb == "get" || !spec.Namespaced)) {
						t.Fatalf("%s:\noffline, %s %s in %q is not granted", text, verb, gr, ns)
					}
				}
			}
		}
		for _, sub := range []string{"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy", "serviceaccounts/token"} {
			for _, verb := range []string{"get", "create", "update", "patch", "delete"} {
				for _, g := range []granted{exact, offline} {
					if g.allows(verb, "", sub, "shop", "x") {
						t.Fatalf("%s:\n%s %s is granted", text, verb, sub)
					}
				}
			}
		}
		if !exact.allows("get", "", "namespaces", "", "kube-system") || !offline.allows("get", "", "namespaces", "", "kube-system") {
			t.Fatalf("%s:\nthe cluster's identity may not be read", text)
		}
		if got := exact.allows("create", "authentication.k8s.io", "tokenreviews", "", ""); got != options.Authentication {
			t.Fatalf("tokenreviews: granted %v", got)
		}
		config := exact.allows("get", "", "configmaps", "kube-system", "extension-apiserver-authentication")
		if options.Authentication && !config {
			t.Fatal("the authentication configuration may not be read")
		}
	}
}

func randomRules(random *rand.Rand) string {
	patterns := []string{
		"pods", "secrets", "configmaps", "nodes", "namespaces", "deployments.apps", "deployments.v1.apps", "*.apps", "widgets.example.com",
		"*.example.com", "*.cert-manager.io", "event*", "*.*.k8s.io", "*", "leases.coordination.k8s.io", "apiservices.apiregistration.k8s.io",
	}
	random.Shuffle(len(patterns), func(i, j int) { patterns[i], patterns[j] = patterns[j], patterns[i] })
	var all []string
	for _, p := range patterns[:1+random.IntN(6)] {
		rule := fmt.Sprintf("{match: [%q]", p)
		switch random.IntN(5) {
		case 0:
			rule += ", watch: false"
		case 1:
			rule += ", namespaces: [shop]"
		case 2:
			rule += `, namespaces: ["sh*"]`
		}
		all = append(all, rule+"}")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func TestRemarks(t *testing.T) {
	for _, test := range []struct {
		rules string
		want  []string // parts of remarks, in order
	}{
		{"[{match: [pods, deployments.apps]}]", nil},
		{`[{match: [leases.coordination.k8s.io], watch: false}, {match: ["*"]}]`, []string{"leases.coordination.k8s.io may be read and are not", "with a cluster at hand"}},
		{`[{match: ["*.cert-manager.io"]}]`, []string{"for *.cert-manager.io there is a wildcard", "with a cluster at hand"}},
		{`[{match: [widgets.example.com], namespaces: [shop]}]`, []string{"widgets.example.com is taken to be in namespaces"}},
		{`[{match: ["*.example.com"], namespaces: [shop]}]`, []string{"in no namespace is not granted", "for *.example.com there is a wildcard", "with a cluster"}},
		{`[{match: ["node*"]}]`, nil},
	} {
		got := rbac.Offline(rules(t, test.rules), rbac.Options{}).Remarks
		if len(got) != len(test.want) {
			t.Errorf("%s: remarks %q, want %q", test.rules, got, test.want)
			continue
		}
		for n, want := range test.want {
			if !strings.Contains(got[n], want) {
				t.Errorf("%s: remark %q, want %q", test.rules, got[n], want)
			}
		}
	}
}

// Many namespaces, and globs of them, are one watch of all.
func TestNamespaces(t *testing.T) {
	var many []string
	for n := range 17 {
		many = append(many, fmt.Sprintf("ns-%d", n))
	}
	for namespaces, in := range map[string]int{"[a]": 1, "[a, b]": 2, `[a, "b*"]`: 0, "[" + strings.Join(many, ", ") + "]": 0, "[" + strings.Join(many[1:], ", ") + "]": 16} {
		text := fmt.Sprintf("[{match: [pods, nodes], namespaces: %s}]", namespaces)
		g := manifest(t, rbac.Of(plan.Choose(rules(t, text), "default", cluster), rbac.Options{}))
		if len(g.in) != in {
			t.Errorf("%s: %d roles, want %d", namespaces, len(g.in), in)
		}
		if got := allows(g.everywhere, "list", "", "pods", ""); got != (in == 0) {
			t.Errorf("%s: pods of all namespaces: %v", namespaces, got)
		}
		if !allows(g.everywhere, "list", "", "nodes", "") {
			t.Errorf("%s: nodes, which are in none, may not be listed", namespaces)
		}
	}
}

// The values for the chart are the manifest's rules.
func TestValues(t *testing.T) {
	for _, text := range []string{`[{match: ["*"]}]`, `[{match: [pods], namespaces: [shop, "1"]}]`} {
		for _, options := range []rbac.Options{{}, {Authentication: true}} {
			needs := rbac.Offline(rules(t, text), options)
			var out bytes.Buffer
			if err := needs.WriteValues(&out); err != nil {
				t.Fatal(err)
			}
			var values struct {
				RBAC struct {
					Rules          []rbacv1.PolicyRule            `json:"rules"`
					NamespaceRules map[string][]rbacv1.PolicyRule `json:"namespaceRules"`
				} `json:"rbac"`
			}
			if err := yaml.UnmarshalStrict(out.Bytes(), &values); err != nil {
				t.Fatalf("%v:\n%s", err, &out)
			}
			g := manifest(t, needs)
			if got, want := fmt.Sprint(values.RBAC.Rules), fmt.Sprint(g.everywhere); got != want {
				t.Errorf("rules %s, want %s", got, want)
			}
			if got, want := fmt.Sprint(values.RBAC.NamespaceRules), fmt.Sprint(g.in); got != want {
				t.Errorf("namespaceRules %s, want %s", got, want)
			}
		}
	}
}
