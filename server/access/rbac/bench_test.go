package rbac

import (
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
	. "github.com/informerd/informerd/server/access/rbac/rbactest"
)

// What a large cluster has, where each member of a project is bound in each of its
// namespaces.
const (
	benchNamespaces = 5_000
	benchBindings   = 13_500
	benchUsers      = 500
	janes           = 1_000 // of the namespaces
)

// large is that cluster. Its bindings are to ClusterRoles with the rules that admin,
// edit and view have, and each namespace has a Role of its own.
func large(tb testing.TB) *world { return sized(tb, benchBindings) }

func sized(tb testing.TB, bindings int) *world {
	tb.Helper()
	w := newWorld(tb)
	lists := map[string][]*cache.Object{}
	add := func(name, id string, body string) { lists[name] = append(lists[name], w.Decode(name, id, body)) }
	for _, name := range []string{"view", "edit", "admin"} {
		add(Names[3], name, usualRules(name))
	}
	add(Names[2], "everybody", `{"subjects":[{"kind":"Group","name":"system:authenticated"}],"roleRef":{"kind":"ClusterRole","name":"discovery"}}`)
	add(Names[3], "discovery", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/api","/api/*","/healthz"]}]}`)
	for n := range benchNamespaces {
		add(Names[1], fmt.Sprintf("project-%04d/leader", n), `{"rules":[{"verbs":["get","update"],"apiGroups":["coordination.k8s.io"],"resources":["leases"]}]}`)
	}
	for n := range bindings {
		ns, member := n%benchNamespaces, fmt.Sprintf("member-%03d", n%benchUsers)
		if n < janes {
			member = "jane"
		}
		role := [...]string{"view", "edit", "admin"}[n/benchNamespaces]
		add(Names[0], fmt.Sprintf("project-%04d/%s-%s-%05x", ns, member, role, n*7919%99991),
			fmt.Sprintf(`{"subjects":[{"apiGroup":%q,"kind":"User","name":%q}],"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":%q}}`, rbacv1.GroupName, member, rbacv1.GroupName, role))
	}
	for name, objects := range lists {
		w.Resource(name).Store().Replace("", objects, "1000000")
	}
	return w
}

// usualRules are of the size of the built-in roles.
func usualRules(name string) string {
	verbs := `["get","list","watch"]`
	if name != "view" {
		verbs = `["get","list","watch","create","delete","deletecollection","patch","update"]`
	}
	text := `{"rules":[`
	for i, list := range []string{
		`[""]|["configmaps","endpoints","persistentvolumeclaims","pods","replicationcontrollers","serviceaccounts","services"]`,
		`[""]|["bindings","events","limitranges","namespaces/status","pods/log","pods/status","resourcequotas","namespaces"]`,
		`["apps"]|["controllerrevisions","daemonsets","deployments","deployments/scale","replicasets","statefulsets"]`,
		`["autoscaling"]|["horizontalpodautoscalers"]`,
		`["batch"]|["cronjobs","jobs"]`,
		`["networking.k8s.io"]|["ingresses","networkpolicies"]`,
		`["policy"]|["poddisruptionbudgets"]`,
	} {
		if i > 0 {
			text += ","
		}
		var groups, resources string
		for j := range list {
			if list[j] == '|' {
				groups, resources = list[:j], list[j+1:]
			}
		}
		text += `{"verbs":` + verbs + `,"apiGroups":` + groups + `,"resources":` + resources + `}`
	}
	return text + `]}`
}

// watched are resources as many as a cluster has.
func watched() (all []schema.GroupResource) {
	for _, name := range []string{"pods", "configmaps", "services", "secrets", "namespaces", "nodes", "deployments.apps", "replicasets.apps", "jobs.batch", "ingresses.networking.k8s.io"} {
		all = append(all, schema.ParseGroupResource(name))
	}
	for n := range 190 {
		all = append(all, schema.GroupResource{Group: fmt.Sprintf("group-%d.example.com", n/5), Resource: fmt.Sprintf("widgets%d", n)})
	}
	return all
}

// accessSet asks for all Scopes there are.
func accessSet(r *Rights, resources []schema.GroupResource) (namespaces int) {
	for _, of := range resources {
		for _, verb := range cache.Verbs {
			namespaces = max(namespaces, len(r.Scope(verb, of, "").Namespaces()))
		}
	}
	return namespaces
}

// TestLarge: a large cluster's bindings take little memory, and the access set of a
// user with many namespaces little time.
func TestLarge(t *testing.T) {
	w := large(t)
	before := followtest.Heap()
	if err := w.grants.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	each := float64(followtest.Heap()-before) / benchBindings
	w.rights(jane)
	t.Logf("%.1f B a binding, with %d roles and %d users: %+v", each, benchNamespaces+4, benchUsers, w.grants.Stats())
	fastest := time.Hour
	for range 5 {
		w.grants.known.forget()
		began := time.Now()
		n := accessSet(w.rights(jane), watched())
		fastest = min(fastest, time.Since(began))
		if n != janes {
			t.Fatalf("%d namespaces", n)
		}
	}
	t.Logf("access set of %d resources in %v", len(watched()), fastest)
	if fastest > 200*time.Millisecond { // ten times the bar: with the race detector, on a busy machine
		t.Errorf("the access set took %v", fastest)
	}
}

// TestBindingBytes: what a binding takes more, in namespaces and of users that are
// known.
func TestBindingBytes(t *testing.T) {
	const half = benchBindings / 2
	more := float64(memory(t, benchBindings)-memory(t, half)) / (benchBindings - half)
	t.Logf("%.1f B a binding", more)
	if more > 50 {
		t.Errorf("%.1f B a binding", more)
	}
}

// memory is what Grants take for some bindings of the large cluster.
func memory(t *testing.T, bindings int) int64 {
	w := sized(t, bindings)
	before := followtest.Heap()
	if err := w.grants.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := followtest.Heap()
	if got := w.grants.Stats().Bindings; got != bindings+1 {
		t.Fatalf("%d bindings", got)
	}
	return int64(after) - int64(before)
}

func BenchmarkFirst(b *testing.B) {
	w := large(b)
	for b.Loop() {
		w.grants.Close()
		if err := w.grants.Update(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAccessSet(b *testing.B) {
	w, resources := large(b), watched()
	w.rights(jane)
	for b.Loop() {
		w.grants.known.forget()
		accessSet(w.rights(jane), resources)
	}
}

// BenchmarkKnown is what each request costs.
func BenchmarkKnown(b *testing.B) {
	w := large(b)
	pods := schema.GroupResource{Resource: "pods"}
	u := user{"jane", []string{"system:authenticated", "devs"}}
	w.rights(u)
	for b.Loop() {
		w.rights(u).Scope(cache.List, pods, "")
	}
}

// BenchmarkChange is one of jane's bindings that comes or goes, and her rights.
func BenchmarkChange(b *testing.B) {
	w, there := large(b), false
	o := Binding("project-2500", "change", ToClusterRole("view"), ForUser("jane"))
	w.rights(jane)
	for b.Loop() {
		if there = !there; there {
			w.Set(o)
		} else {
			w.Unset(o)
		}
		w.rights(jane)
	}
}

func BenchmarkSees(b *testing.B) {
	w := large(b)
	s := w.rights(jane).Scope(cache.List, schema.GroupResource{Resource: "pods"}, "")
	keys := []cache.Key{{Namespace: "project-0500", Name: "x"}, {Namespace: "project-4500", Name: "x"}}
	n := 0
	for b.Loop() {
		if s.Sees(keys[n&1]) {
			n++
		}
		n++
	}
}
