package rbac

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	. "github.com/informerd/informerd/server/access/rbac/rbactest"
)

// rule is "verbs groups resources names", each separated by commas; "core" is the
// group "", and "none" no name.
func rule(text string) rbacv1.PolicyRule {
	f := strings.Fields(text)
	list := func(s string) []string { return strings.Split(s, ",") }
	r := rbacv1.PolicyRule{Verbs: list(f[0]), APIGroups: list(f[1]), Resources: list(f[2])}
	for i, g := range r.APIGroups {
		r.APIGroups[i] = strings.ReplaceAll(g, "core", "")
	}
	if len(f) > 3 {
		r.ResourceNames = list(f[3])
		for i, n := range r.ResourceNames {
			r.ResourceNames[i] = strings.ReplaceAll(n, "none", "")
		}
	}
	return r
}

// asked is "verb group resource/subresource namespace name"; - is none.
func asked(text string) Attributes {
	f := strings.Fields(strings.ReplaceAll(text, "core", "-"))
	for len(f) < 5 {
		f = append(f, "-")
	}
	for i := range f {
		f[i] = strings.TrimPrefix(f[i], "-")
	}
	a := Attributes{Verb: f[0], Group: f[1], Namespace: f[3], Name: f[4]}
	a.Resource, a.Subresource, _ = strings.Cut(f[2], "/")
	return a
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule    string
		allowed []string
		denied  []string
	}{
		{"get core pods", []string{"get core pods", "get core pods a", "get core pods a x"},
			[]string{"list core pods", "get apps pods", "get core secrets", "get core pods/log", "get core pod", "GET core pods", "* core pods", "get * pods", "get core *"}},
		{"* core pods", []string{"list core pods", "use core pods", "* core pods"}, []string{"list apps pods"}},
		{"g* core pods", nil, []string{"get core pods"}},
		{"get * pods", []string{"get apps pods", "get core pods", "get * pods"}, []string{"get apps secrets"}},
		{"get *.com pods", nil, []string{"get a.com pods"}},
		{"get core *", []string{"get core pods", "get core pods/log", "get core nodes"}, []string{"get apps pods"}},
		{"get core pods/log", []string{"get core pods/log a x"}, []string{"get core pods", "get core pods/logs", "get core pods/exec", "get core deployments/log"}},
		{"get core */log", []string{"get core pods/log", "get core deployments/log"}, []string{"get core pods", "get core pods/exec", "get core log", "get core pods/xlog"}},
		{"get core pods/*", []string{"get core pods/*"}, []string{"get core pods", "get core pods/log"}},
		{"get core */*", []string{"get core pods/*"}, []string{"get core pods", "get core pods/log"}},
		{"get core */", nil, []string{"get core pods", "get core pods/log"}},
		{"get core pods x,y", []string{"get core pods a x", "get core pods a y", "get core pods - x"}, []string{"get core pods", "get core pods a", "get core pods a z", "get core pods a xy"}},
		{"list core pods none", []string{"list core pods", "list core pods a"}, []string{"list core pods a x"}},
		{"get,list core,apps pods,deployments", []string{"list apps deployments a", "get core deployments"}, []string{"watch apps deployments", "get batch pods"}},
	} {
		w := newWorld(t)
		w.Set(ClusterRole("r", rule(c.rule)))
		w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
		w.check(t, c.rule, c.allowed, c.denied)
	}
}

// check asks whether jane may.
func (w *world) check(t *testing.T, what string, allowed, denied []string) {
	t.Helper()
	r := w.rights(jane)
	for _, request := range allowed {
		if !r.Allowed(asked(request)) {
			t.Errorf("%s: %q is denied", what, request)
		}
	}
	for _, request := range denied {
		if r.Allowed(asked(request)) {
			t.Errorf("%s: %q is allowed", what, request)
		}
	}
}

// TestGroupsAreMatched: a rule is of API groups (in Rancher, GHSA-f9xf-jq4j-vqw4, rights to
// a resource of one group were rights to those of its name in all).
func TestGroupsAreMatched(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get,list,watch apps.catalog.example.com apps"), rule("get,list,watch core secrets")))
	w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
	w.check(t, "groups", []string{"list apps.catalog.example.com apps", "get core secrets a x"},
		[]string{"list core apps", "list apps apps", "list catalog.example.com apps", "get apps secrets a x", "list example.com secrets"})
	r := w.rights(jane)
	for _, verb := range cache.Verbs {
		for _, c := range []struct {
			resource schema.GroupResource
			whole    bool
		}{
			{schema.GroupResource{Group: "apps.catalog.example.com", Resource: "apps"}, true},
			{schema.GroupResource{Group: "apps", Resource: "apps"}, false},
			{schema.GroupResource{Resource: "apps"}, false},
			{schema.GroupResource{Resource: "secrets"}, true},
			{schema.GroupResource{Group: "example.com", Resource: "secrets"}, false},
		} {
			if s := r.Scope(verb, c.resource, ""); s.Whole() != c.whole || s.Empty() == c.whole {
				t.Errorf("%s %s: whole %v, empty %v, want %v", verb, c.resource, s.Whole(), s.Empty(), c.whole)
			}
		}
	}
}

func TestBindings(t *testing.T) {
	pods := rule("get core pods")
	for _, c := range []struct {
		what            string
		set             func(w *world)
		allowed, denied []string
	}{
		{"a ClusterRoleBinding", func(w *world) {
			w.Set(ClusterRole("r", pods))
			w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
		}, []string{"get core pods", "get core pods a x"}, nil},
		{"a RoleBinding to a Role", func(w *world) {
			w.Set(Role("a", "r", pods))
			w.Set(Binding("a", "b", ToRole("r"), ForUser("jane")))
		}, []string{"get core pods a", "get core pods a x"}, []string{"get core pods", "get core pods b x"}},
		{"a RoleBinding to a ClusterRole", func(w *world) {
			w.Set(ClusterRole("r", pods))
			w.Set(Binding("a", "b", ToClusterRole("r"), ForUser("jane")))
		}, []string{"get core pods a x"}, []string{"get core pods", "get core pods b x"}},
		{"a Role of another namespace", func(w *world) {
			w.Set(Role("b", "r", pods))
			w.Set(Binding("a", "b", ToRole("r"), ForUser("jane")))
		}, nil, []string{"get core pods a x", "get core pods b x"}},
		{"a Role is no ClusterRole", func(w *world) {
			w.Set(Role("a", "r", pods))
			w.Set(Binding("a", "b", ToClusterRole("r"), ForUser("jane")))
			w.Set(ClusterBinding("b", ToRole("r"), ForUser("jane")))
		}, nil, []string{"get core pods", "get core pods a x"}},
		{"a ClusterRole is no Role", func(w *world) {
			w.Set(ClusterRole("r", pods))
			w.Set(Binding("a", "b", ToRole("r"), ForUser("jane")))
			w.Set(ClusterBinding("b", ToRole("r"), ForUser("jane")))
		}, nil, []string{"get core pods", "get core pods a x"}},
		{"another kind of role", func(w *world) {
			w.Set(ClusterRole("r", pods))
			w.Set(ClusterBinding("b", rbacv1.RoleRef{Kind: "clusterrole", Name: "r"}, ForUser("jane")))
		}, nil, []string{"get core pods"}},
		{"an aggregated role has the rules that it has", func(w *world) {
			r := ClusterRole("r", pods)
			r.AggregationRule = &rbacv1.AggregationRule{}
			w.Set(ClusterRole("part", rule("get core secrets")))
			w.Set(r)
			w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
		}, []string{"get core pods"}, []string{"get core secrets"}},
	} {
		w := newWorld(t)
		c.set(w)
		w.check(t, c.what, c.allowed, c.denied)
	}
}

func TestSubjects(t *testing.T) {
	bot := user{name: "system:serviceaccount:a:bot"}
	for _, c := range []struct {
		what           string
		subject        rbacv1.Subject
		user           user
		local, cluster bool
	}{
		{"the user", ForUser("jane"), jane, true, true},
		{"another user", ForUser("joe"), jane, false, false},
		{"another case", ForUser("Jane"), jane, false, false},
		{"a group", ForGroup("devs"), user{"jane", []string{"ops", "devs"}}, true, true},
		{"another group", ForGroup("devs"), user{"jane", []string{"ops"}}, false, false},
		{"a group called as the user", ForGroup("jane"), jane, false, false},
		{"a user called as the group", ForUser("devs"), user{"jane", []string{"devs"}}, false, false},
		{"a ServiceAccount", ForServiceAccount("a", "bot"), bot, true, true},
		{"a ServiceAccount by its user name", ForUser("system:serviceaccount:a:bot"), bot, true, true},
		{"a ServiceAccount of another namespace", ForServiceAccount("b", "bot"), bot, false, false},
		{"a ServiceAccount without namespace", ForServiceAccount("", "bot"), bot, true, false},
		{"a user called as the ServiceAccount", ForServiceAccount("a", "bot"), user{name: "bot"}, false, false},
		{"no kind", rbacv1.Subject{Name: "jane"}, jane, false, false},
		{"another kind", rbacv1.Subject{Kind: "user", Name: "jane"}, jane, false, false},
		{"no name", ForUser(""), user{}, false, false},
	} {
		w := newWorld(t)
		w.Set(ClusterRole("r", rule("get core pods")))
		w.Set(Binding("a", "b", ToClusterRole("r"), ForUser("somebody"), c.subject))
		if got := w.rights(c.user).Allowed(asked("get core pods a x")); got != c.local {
			t.Errorf("%s in a RoleBinding: %v, want %v", c.what, got, c.local)
		}
		w = newWorld(t)
		w.Set(ClusterRole("r", rule("get core pods")))
		w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("somebody"), c.subject))
		if got := w.rights(c.user).Allowed(asked("get core pods a x")); got != c.cluster {
			t.Errorf("%s in a ClusterRoleBinding: %v, want %v", c.what, got, c.cluster)
		}
	}
}

// TestMasters: no role is needed for the group system:masters, and a user called so
// is not it.
func TestMasters(t *testing.T) {
	w := newWorld(t)
	r := w.rights(user{"root", []string{"system:masters"}})
	if !r.Allowed(asked("delete core nodes - x")) || !r.Path("get", "/metrics") || !r.Scope(cache.List, schema.GroupResource{Resource: "secrets"}, "").Whole() {
		t.Error("system:masters may not do everything")
	}
	nobody := w.rights(user{name: "system:masters"})
	if nobody.Allowed(asked("get core pods")) || !nobody.Scope(cache.List, schema.GroupResource{Resource: "pods"}, "").Empty() {
		t.Error("a user called system:masters may do something")
	}
	if r.Digest() == nobody.Digest() {
		t.Error("everything and nothing have one digest")
	}
}

func TestPaths(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r",
		rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/healthz/*", "/logs**", "/a*b"}},
		rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"/all*"}},
		rule("get * *")))
	w.Set(ClusterRole("local", rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}))
	w.Set(ClusterRole("everything", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}))
	w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
	w.Set(ClusterBinding("e", ToClusterRole("everything"), ForUser("joe")))
	w.Set(Binding("a", "b", ToClusterRole("local"), ForUser("jane")))
	for _, c := range []struct {
		verb, path string
		want       bool
	}{
		{"get", "/metrics", true},
		{"head", "/metrics", false},
		{"get", "/metrics/", false},
		{"get", "/metrics/x", false},
		{"get", "/healthz/", true},
		{"get", "/healthz/etcd", true},
		{"get", "/healthz", false},
		{"get", "/logs/x", true},
		{"get", "/a*b", true},
		{"get", "/axb", false},
		{"post", "/all/x", true},
		{"get", "/", false},
		{"get", "", false},
	} {
		if got := w.rights(jane).Path(c.verb, c.path); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.verb, c.path, got, c.want)
		}
		if got := w.rights(user{name: "joe"}).Path(c.verb, c.path); got != (c.verb == "get") {
			t.Errorf("%s %s by all that are got: %v", c.verb, c.path, got)
		}
	}
}

func TestScope(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("pods", rule("get,list core pods"), rule("list core secrets none"), rule("get core secrets none")))
	w.Set(ClusterRole("named", rule("list,watch core configmaps x,y")))
	w.Set(ClusterRole("everything", rule("* * *")))
	w.Set(Role("a", "named", rule("list,watch core configmaps z")))
	w.Set(Binding("a", "pods", ToClusterRole("pods"), ForUser("jane")))
	w.Set(Binding("b", "pods", ToClusterRole("pods"), ForUser("jane")))
	w.Set(Binding("a", "named", ToRole("named"), ForUser("jane")))
	w.Set(ClusterBinding("named", ToClusterRole("named"), ForUser("jane")))
	w.Set(ClusterBinding("e", ToClusterRole("everything"), ForUser("root")))
	r := w.rights(jane)
	for _, c := range []struct {
		verb              cache.Verb
		resource          string
		namespaces        string
		sees, doesNotSees string
	}{
		{cache.List, "pods", "a b", "a/x b/y", "c/x x"},
		{cache.Watch, "pods", "", "", "a/x"},
		{cache.List, "pods/log", "", "", "a/x"},
		{cache.List, "secrets", "a b", "a/x", "c/x"}, // a list that names none may be had
		{cache.Get, "secrets", "", "", "a/x"},
		{cache.List, "configmaps", "", "a/x b/y c/y a/z", "b/z a/w"},
		{cache.List, "nodes", "", "", "x"},
	} {
		resource, sub, _ := strings.Cut(c.resource, "/")
		s := r.Scope(c.verb, schema.GroupResource{Resource: resource}, sub)
		if got := strings.Join(s.Namespaces(), " "); got != c.namespaces || s.Whole() {
			t.Errorf("%s %s: namespaces %q, want %q", c.verb, c.resource, got, c.namespaces)
		}
		if s.Empty() != (c.namespaces == "" && c.sees == "") {
			t.Errorf("%s %s: Empty() = %v", c.verb, c.resource, s.Empty())
		}
		for want, keys := range map[bool]string{true: c.sees, false: c.doesNotSees} {
			for _, id := range strings.Fields(keys) {
				if s.Sees(key(id)) != want {
					t.Errorf("%s %s: Sees(%s) = %v", c.verb, c.resource, id, !want)
				}
			}
		}
	}
	if s := w.rights(user{name: "root"}).Scope(cache.Watch, schema.GroupResource{Group: "apps", Resource: "deployments"}, "scale"); !s.Whole() {
		t.Error("all is not whole")
	}
}

// TestAlike: resources that are granted in other namespaces have other Scopes.
func TestAlike(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d", "e"}
	for i, ns := range names {
		w.Set(Role(ns, "r", rule("get core "+strings.Join(names[:i+1], ","))))
		w.Set(Binding(ns, "b", ToRole("r"), ForUser("jane")))
	}
	r := w.rights(jane)
	for i, resource := range names {
		for range 2 {
			s := r.Scope(cache.Get, schema.GroupResource{Resource: resource}, "")
			if got := s.Namespaces(); !slices.Equal(got, names[i:]) {
				t.Errorf("%s is seen in %v, want %v", resource, got, names[i:])
			}
		}
	}
}

func key(id string) cache.Key {
	ns, name, ok := strings.Cut(id, "/")
	if !ok {
		return cache.Key{Name: id}
	}
	return cache.Key{Namespace: ns, Name: name}
}

// TestClusterScope: what is granted in a namespace shows nothing at cluster scope (as
// CVE-2019-11247 did), but for the Namespace itself.
func TestClusterScope(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("all", rule("get,list * *")))
	w.Set(ClusterRole("named", rule("list core namespaces b,d,none")))
	w.Set(Binding("a", "all", ToClusterRole("all"), ForUser("jane")))
	w.Set(Binding("b", "named", ToClusterRole("named"), ForUser("jane")))
	w.Set(Binding("c", "named", ToClusterRole("named"), ForUser("jane")))
	r := w.rights(jane)
	if s := r.Scope(cache.Get, schema.GroupResource{Resource: "nodes"}, ""); s.Sees(cache.Key{Name: "a"}) || s.Touches("") {
		t.Error("a node is seen by a right to a namespace")
	}
	seen := func(verb cache.Verb) (names []string) {
		s := r.Scope(verb, schema.GroupResource{Resource: "namespaces"}, "")
		for _, ns := range []string{"a", "b", "c", "d"} {
			if s.Sees(cache.Key{Name: ns}) {
				names = append(names, ns)
			}
		}
		return names
	}
	for verb, want := range map[cache.Verb][]string{cache.Get: {"a"}, cache.List: {"a", "b"}, cache.Watch: nil} {
		if got := seen(verb); !slices.Equal(got, want) {
			t.Errorf("%s shows namespaces %v, want %v", verb, got, want)
		}
	}
}

func TestRulesReview(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("pods", rule("get core pods x"), rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}))
	w.Set(Role("a", "secrets", rule("list core secrets")))
	w.Set(ClusterBinding("b", ToClusterRole("pods"), ForUser("jane")))
	w.Set(ClusterBinding("again", ToClusterRole("pods"), ForUser("jane")))
	w.Set(Binding("a", "again", ToClusterRole("pods"), ForUser("jane")))
	w.Set(Binding("a", "b", ToRole("secrets"), ForUser("jane")))
	text := func(namespace string) (out []string) {
		resources, others := w.rights(jane).Rules(namespace)
		for _, r := range resources {
			out = append(out, strings.Join([]string{r.Verbs[0], r.APIGroups[0], r.Resources[0], strings.Join(r.ResourceNames, ",")}, " "))
		}
		for _, r := range others {
			out = append(out, strings.Join([]string{r.Verbs[0], r.NonResourceURLs[0]}, " "))
		}
		slices.Sort(out)
		return out
	}
	for namespace, want := range map[string][]string{
		"a": {"get  pods x", "get /metrics", "list  secrets "},
		"b": {"get  pods x", "get /metrics"},
		"":  {"get  pods x", "get /metrics"},
	} {
		if got := text(namespace); !slices.Equal(got, want) {
			t.Errorf("in %q: %q, want %q", namespace, got, want)
		}
	}
}

func TestDigest(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	w.Set(ClusterRole("same", rule("get core pods")))
	w.Set(ClusterRole("empty"))
	for _, name := range []string{"one", "two", "three", "four", "five", "none"} {
		role := "r"
		if name == "two" {
			role = "same"
		}
		for _, ns := range []string{"b", "a"} {
			if name != "none" && !(name == "three" && ns == "a") {
				w.Set(Binding(ns, name, ToClusterRole(role), ForUser(name)))
			}
		}
	}
	w.Set(Binding("a", "again", ToClusterRole("r"), ForUser("one")))
	w.Set(Binding("a", "nothing", ToClusterRole("missing"), ForUser("one")))
	w.Set(Binding("a", "empty", ToClusterRole("empty"), ForUser("one")))
	w.Set(ClusterBinding("four", ToClusterRole("r"), ForUser("four")))
	one := w.rights(user{name: "one"})
	for name, same := range map[string]bool{"two": true, "five": true, "three": false, "four": false, "none": false} {
		r := w.rights(user{name: name})
		if (r.Digest() == one.Digest()) != same || (r == one) != same {
			t.Errorf("one and %s have digests %s and %s, and share rights: %v", name, one.Digest(), r.Digest(), r == one)
		}
	}
}
