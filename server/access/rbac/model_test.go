package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/rbac/rbactest"
)

// model judges a request the long way round, from all objects each time, and shares
// no code with Grants.
type model struct{ *rbactest.Config }

func (m model) allowed(q *rbactest.Request) bool {
	if slices.Contains(q.Groups, "system:masters") {
		return true
	}
	for _, b := range m.ClusterRoleBindings {
		if names(q, b.Subjects, "") && grantsAny(m.rulesOf(b.RoleRef, ""), q) {
			return true
		}
	}
	for _, b := range m.RoleBindings {
		if q.Path == "" && q.Namespace == b.Namespace && names(q, b.Subjects, b.Namespace) && grantsAny(m.rulesOf(b.RoleRef, b.Namespace), q) {
			return true
		}
	}
	return false
}

func names(q *rbactest.Request, subjects []rbacv1.Subject, namespace string) bool {
	for _, s := range subjects {
		switch {
		case s.Kind == "User" && s.Name == q.User,
			s.Kind == "Group" && slices.Contains(q.Groups, s.Name),
			s.Kind == "ServiceAccount" && s.Namespace != "" && q.User == fmt.Sprintf("system:serviceaccount:%s:%s", s.Namespace, s.Name),
			s.Kind == "ServiceAccount" && s.Namespace == "" && namespace != "" && q.User == fmt.Sprintf("system:serviceaccount:%s:%s", namespace, s.Name):
			return true
		}
	}
	return false
}

func (m model) rulesOf(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	for _, r := range m.Roles {
		if ref.Kind == "Role" && r.Namespace == namespace && r.Name == ref.Name {
			return r.Rules
		}
	}
	for _, r := range m.ClusterRoles {
		if ref.Kind == "ClusterRole" && r.Name == ref.Name {
			return r.Rules
		}
	}
	return nil
}

func grantsAny(rules []rbacv1.PolicyRule, q *rbactest.Request) bool {
	for _, r := range rules {
		switch {
		case !slices.Contains(r.Verbs, q.Verb) && !slices.Contains(r.Verbs, "*"):
		case q.Path != "":
			for _, url := range r.NonResourceURLs {
				if url == q.Path || strings.HasSuffix(url, "*") && strings.HasPrefix(q.Path, strings.TrimRight(url, "*")) {
					return true
				}
			}
		case !slices.Contains(r.APIGroups, q.Group) && !slices.Contains(r.APIGroups, "*"):
		case len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, q.Name):
		case slices.Contains(r.Resources, "*"),
			q.Subresource == "" && slices.Contains(r.Resources, q.Resource),
			q.Subresource != "" && (slices.Contains(r.Resources, q.Resource+"/"+q.Subresource) || slices.Contains(r.Resources, "*/"+q.Subresource)):
			return true
		}
	}
	return false
}

// sees is what a Scope must see: what a request may be about that names the object,
// or, with verbs that read many, none.
func (m model) sees(q rbactest.Request, k cache.Key) bool {
	q.Namespace, q.Name = k.Namespace, k.Name
	if q.Group == "" && q.Resource == "namespaces" {
		q.Namespace = k.Name
	}
	if m.allowed(&q) {
		return true
	}
	if q.Namespace, q.Name = k.Namespace, ""; q.Verb == "list" || q.Verb == "watch" {
		return m.allowed(&q)
	}
	return false
}

// judge is what Rights say of a request.
func judged(r *Rights, q *rbactest.Request) bool {
	if q.Path != "" {
		return r.Path(q.Verb, q.Path)
	}
	return r.Allowed(Attributes{Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name})
}

// TestModel compares Grants that are kept up to date with the model, and with Grants
// that read everything anew, over random changes.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 12))
		w := newWorld(t)
		var rights []remembered
		for range 12 {
			for range r.IntN(12) {
				w.Change(r)
			}
			w.compare(t, r)
			rights = w.remember(t, r, rights)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		w.empty(t)
	}
}

func (w *world) compare(t *testing.T, r *rand.Rand) {
	t.Helper()
	m, fresh := model{&w.Config}, New(w.Followed, Options{})
	defer fresh.Close()
	for range 12 {
		who := rbactest.RandomUser(r)
		got := w.rights(&who)
		anew, err := fresh.Rights(t.Context(), &who)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest() != anew.Digest() {
			t.Errorf("%s %v: another digest than if all is read anew", who.User, who.Groups)
		}
		for n := range 40 {
			q := rbactest.RandomRequest(r, who)
			if got, want := judged(got, &q), m.allowed(&q); got != want {
				t.Errorf("%s: %v, want %v", &q, got, want)
			}
			if q.Path == "" && n%8 == 0 {
				w.compareScope(t, m, got, q)
				w.compareRules(t, m, got, q)
			}
		}
	}
}

func (w *world) compareScope(t *testing.T, m model, r *Rights, q rbactest.Request) {
	t.Helper()
	s := r.Scope(cache.Verb(q.Verb), schema.GroupResource{Group: q.Group, Resource: q.Resource}, q.Subresource)
	for _, ns := range append([]string{"", "other"}, rbactest.Namespaces...) {
		for _, name := range append([]string{"other"}, rbactest.ObjectNames...) {
			k := cache.Key{Namespace: ns, Name: name}
			if q.Group == "" && q.Resource == "namespaces" && ns != "" {
				continue // there are none
			}
			if got, want := s.Sees(k), m.sees(q, k); got != want {
				t.Errorf("%s: Sees(%s) = %v, want %v", &q, k, got, want)
			}
		}
	}
}

// compareRules checks that a request is granted by the rules of its namespace alone.
func (w *world) compareRules(t *testing.T, m model, r *Rights, q rbactest.Request) {
	t.Helper()
	q.Groups = slices.DeleteFunc(slices.Clone(q.Groups), func(g string) bool { return g == mastersGroup })
	resources, _ := r.Rules(q.Namespace)
	var rules []rbacv1.PolicyRule
	for _, rule := range resources {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	if got, want := grantsAny(rules, &q), m.allowed(&q); got != want {
		t.Errorf("%s: by the rules told %v, want %v", &q, got, want)
	}
}

// remembered are Rights told before some changes.
type remembered struct {
	who    rbactest.Request
	rights *Rights
}

// remember checks that Rights are told anew only if they are others.
func (w *world) remember(t *testing.T, r *rand.Rand, before []remembered) []remembered {
	t.Helper()
	for _, b := range before {
		if now := w.rights(&b.who); now != b.rights && now.Digest() == b.rights.Digest() {
			t.Errorf("%s %v: the same rights are told anew", b.who.User, b.who.Groups)
		}
	}
	before = before[:0]
	for range 5 {
		who := rbactest.RandomUser(r)
		before = append(before, remembered{who, w.rights(&who)})
	}
	return before
}

// empty deletes everything and looks for what is left.
func (w *world) empty(t *testing.T) {
	t.Helper()
	for len(w.Roles) > 0 {
		w.Unset(w.Roles[0])
	}
	for len(w.ClusterRoles) > 0 {
		w.Unset(w.ClusterRoles[0])
	}
	for len(w.RoleBindings) > 0 {
		w.Unset(w.RoleBindings[0])
	}
	for len(w.ClusterRoleBindings) > 0 {
		w.Unset(w.ClusterRoleBindings[0])
	}
	if err := w.grants.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := w.grants.state
	if stats := w.grants.Stats(); stats != (Stats{}) {
		t.Errorf("of nothing there is left: %+v", stats)
	}
	for what, n := range map[string][2]int{
		"roles":     {len(s.roles.all) - 1, len(s.roles.free)},
		"grantees":  {len(s.grantees.all), len(s.grantees.free)},
		"lists":     {len(s.grantees.lists), len(s.grantees.spare)},
		"spaces":    {len(s.local.spaces.names) - 1, len(s.local.spaces.free)},
		"known":     {len(s.grantees.known), 0},
		"rulesets":  {len(s.roles.sets), 0},
		"clustered": {len(s.cluster.spaces.names) - 1, 0},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, and %d free, of nothing", what, n[0], n[1])
		}
	}
}
