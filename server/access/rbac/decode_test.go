package rbac

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	. "github.com/informerd/informerd/server/access/rbac/rbactest"
)

// TestMalformed: what cannot be read as a role or a binding grants nothing, whatever
// part of it could, and neither does what was there before.
func TestMalformed(t *testing.T) {
	const (
		role    = `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`
		binding = `"subjects":[{"kind":"User","name":"jane"}],"roleRef":{"kind":"ClusterRole","name":"r"}`
	)
	for _, c := range []struct {
		role, binding string
		allowed       bool
		unread        uint64
	}{
		{`{` + role + `}`, `{` + binding + `}`, true, 0},
		{`{` + role + `,"more":{"rules":7}}`, `{` + binding + `,"status":[]}`, true, 0},
		{`{}`, `{` + binding + `}`, false, 0},
		{`{"rules":null}`, `{` + binding + `}`, false, 0},
		{`{"rules":{}}`, `{` + binding + `}`, false, 1},
		{`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},7]}`, `{` + binding + `}`, false, 1},
		{`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":"x"}]}`, `{` + binding + `}`, false, 1},
		{`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":[7]}]}`, `{` + binding + `}`, false, 1},
		{`{"Rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`, `{` + binding + `}`, false, 0},
		{`{"rules":[{"verbs":"get","apiGroups":[""],"resources":["pods"]}]}`, `{` + binding + `}`, false, 1},
		{`{` + role + `}`, `{}`, false, 0},
		{`{` + role + `}`, `{"subjects":{},"roleRef":{"kind":"ClusterRole","name":"r"}}`, false, 1},
		{`{` + role + `}`, `{"subjects":[{"kind":"User","name":"jane"}],"roleRef":[]}`, false, 1},
		{`{` + role + `}`, `{"subjects":[{"kind":"User","name":["jane"]}],"roleRef":{"kind":"ClusterRole","name":"r"}}`, false, 1},
		{`{` + role + `}`, `{"subjects":["jane"],"roleRef":{"kind":"ClusterRole","name":"r"}}`, false, 1},
	} {
		w := newWorld(t)
		for _, before := range []bool{true, false} {
			if before {
				w.Set(ClusterRole("r", rule("get core pods")))
				w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
				w.rights(jane)
			}
			w.Put(Names[3], "r", c.role)
			w.Put(Names[2], "b", c.binding)
			if got := w.rights(jane).Allowed(asked("get core pods")); got != c.allowed {
				t.Errorf("%s and %s: allowed: %v", c.role, c.binding, got)
			}
		}
		if got := w.grants.Stats().Unread; got != 2*c.unread {
			t.Errorf("%s and %s: %d unread, want %d", c.role, c.binding, got, 2*c.unread)
		}
	}
}

// TestDuplicates: a field that is there twice is not laid over itself.
func TestDuplicates(t *testing.T) {
	const once = `{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["x"]}`
	for _, raw := range []string{
		`{"rules":[` + once + `],"rules":[{"verbs":["get"],"apiGroups":[""]}]}`,
		`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["x"],"resourceNames":[]}]}`,
	} {
		p := parsed{key: cache.Key{Name: "r"}}
		if err := p.read(clusterRoles, []byte(raw)); err == nil || !strings.Contains(err.Error(), "duplicate") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestScopeOfObjects: an object that is in a namespace and should not be, or is in
// none, is no object of its name elsewhere.
func TestScopeOfObjects(t *testing.T) {
	raw, err := json.Marshal(Role("", "r", rule("* * *")))
	if err != nil {
		t.Fatal(err)
	}
	for of, key := range map[source]cache.Key{
		clusterRoles:        {Namespace: "a", Name: "r"},
		roleObjects:         {Name: "r"},
		clusterRoleBindings: {Namespace: "a", Name: "r"},
		roleBindings:        {Name: "r"},
	} {
		p := parsed{key: key}
		if err := p.read(of, raw); err == nil {
			t.Errorf("%s %s was read", sourceNames[of], key)
		}
	}
}

// documents are what damaged ones are made of.
func documents(tb testing.TB) (all [][]byte) {
	tb.Helper()
	for _, o := range []any{
		Role("a", "r", rule("get core pods x"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"/*"}}),
		Binding("a", "b", ToRole("r"), ForUser("jane"), ForGroup("devs"), ForServiceAccount("", "bot")),
		ClusterBinding("b", ToClusterRole("r"), ForGroup("system:masters")),
	} {
		raw, err := json.Marshal(o)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, raw)
	}
	return append(all, []byte(`{"rules":[null,{"verbs":null},{"resources":["*/","/","*/*","*"]}]}`), []byte(`{"subjects":[null],"roleRef":null}`))
}

func FuzzParse(f *testing.F) {
	for _, raw := range documents(f) {
		for of := range byte(sourceCount) {
			f.Add(of, of%2 == 1, raw)
		}
	}
	f.Fuzz(func(t *testing.T, of byte, namespaced bool, raw []byte) {
		checkParse(t, source(of%byte(sourceCount)), namespaced, raw)
	})
}

// TestDamaged: documents with bytes that are others, twice, swapped or missing.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		all := documents(t)
		raw := all[r.IntN(len(all))]
		for range 1 + r.IntN(4) {
			i, j := r.IntN(len(raw)), r.IntN(len(raw))
			switch r.IntN(5) {
			case 0:
				raw[i] = byte(r.IntN(256))
			case 1:
				raw[i], raw[j] = raw[j], raw[i]
			case 2:
				raw = slices.Delete(raw, i, min(i+1+r.IntN(12), len(raw)))
			case 3:
				raw = slices.Insert(raw, j, raw[i:min(i+40, len(raw))]...)
			default:
				raw = slices.Insert(raw, i, []byte(`[]{}",:*`)[r.IntN(8)])
			}
			if len(raw) == 0 {
				break
			}
		}
		checkParse(t, source(r.IntN(int(sourceCount))), r.IntN(2) == 0, raw)
	}
}

// checkParse reads a document as an object of a source.
func checkParse(t *testing.T, of source, namespaced bool, raw []byte) {
	t.Helper()
	p := &parsed{key: cache.Key{Name: "o"}}
	if namespaced {
		p.key.Namespace = "a"
	}
	if err := p.read(of, raw); err != nil {
		p = &parsed{key: p.key, unread: true}
	} else if !json.Valid(raw) {
		t.Errorf("read out of what is no JSON: %q", raw)
	}
	askAll(t, of, p)
}

// askAll enters an object beside its counterparts, and asks everybody it concerns.
func askAll(t *testing.T, of source, p *parsed) {
	t.Helper()
	s := newState()
	u := update{state: s}
	everything := newRuleset([]rbacv1.PolicyRule{rule("* * *")})
	u.enter(clusterRoles, []*parsed{{key: cache.Key{Name: "o"}, rules: everything}}, nil)
	u.enter(roleObjects, []*parsed{{key: cache.Key{Namespace: "a", Name: "o"}, rules: everything}}, nil)
	u.enter(clusterRoleBindings, []*parsed{{key: cache.Key{Name: "o"}, role: cache.Key{Name: "o"}, subjects: []who{{name: "jane"}}}}, nil)
	u.enter(of, []*parsed{p}, nil)
	for w := range s.grantees.ids {
		ids, masters := s.identify(user{name: w.name, groups: []string{w.name}})
		r := s.rights(ids, masters)
		r.Scope(cache.List, schema.GroupResource{Resource: "pods"}, "")
		r.Scope(cache.Get, namespacesResource, "x")
		r.Allowed(asked("get core pods/log a x"))
		r.Path("get", "/x")
		r.Rules("a")
	}
	if p.unread && (of == clusterRoles || of == clusterRoleBindings) && p.key.Namespace == "" {
		ids, _ := s.identify(jane)
		if s.rights(ids, false).Allowed(asked("get core pods")) {
			t.Error("what could not be read grants something")
		}
	}
	u.enter(of, nil, []cache.Key{p.key})
	if keys := s.keys(of); of > clusterRoleBindings && len(keys) > 0 {
		t.Errorf("after deletion there is still %v", keys)
	}
}
