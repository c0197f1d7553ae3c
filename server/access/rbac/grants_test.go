package rbac

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
	. "github.com/informerd/informerd/server/access/rbac/rbactest"
)

// TestChanges: what is granted is what the objects of the moment grant.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	check := func(what string, want bool) {
		t.Helper()
		r := w.rights(jane)
		if got := r.Allowed(asked("get core pods a x")); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if got := r.Scope(cache.Get, schema.GroupResource{Resource: "pods"}, "").Sees(key("a/x")); got != want {
			t.Errorf("%s: seen: %v, want %v", what, got, want)
		}
	}
	pods := rule("get core pods")
	check("nothing there", false)
	w.Set(Binding("a", "b", ToRole("r"), ForUser("jane")))
	check("a binding to a role that is not there", false)
	w.Set(Role("a", "r", pods))
	check("the role comes", true)
	w.Set(Role("a", "r", rule("get core secrets")))
	check("another rule", false)
	w.Set(Role("a", "r", rule("get core secrets"), pods))
	check("the rule again", true)
	w.Unset(Role("a", "r"))
	check("the role goes", false)
	w.Set(Role("a", "r", pods))
	check("it comes again", true)
	w.Set(Binding("a", "b", ToRole("r"), ForUser("joe")))
	check("another subject", false)
	w.Set(Binding("a", "b", ToRole("r"), ForUser("joe"), ForUser("jane")))
	check("both", true)
	w.Set(Binding("a", "b", ToClusterRole("r"), ForUser("joe"), ForUser("jane")))
	check("another role", false)
	w.Set(Binding("a", "b2", ToRole("r"), ForUser("jane")))
	w.Set(Binding("a", "b3", ToRole("r"), ForUser("jane")))
	w.Unset(Binding("a", "b2", ToRole("r")))
	check("two that grant the same, one goes", true)
	w.Unset(Binding("a", "b3", ToRole("r")))
	check("and the other", false)
}

// TestExchanged: in one update a user loses one group's rights and another of their
// groups appears that has none.
func TestExchanged(t *testing.T) {
	w := newWorld(t)
	both := user{"jane", []string{"devs", "ops"}}
	w.Set(ClusterRole("r", rule("get core pods")))
	w.Set(ClusterBinding("devs", ToClusterRole("r"), ForGroup("devs")))
	w.Set(ClusterBinding("jane", ToClusterRole("r2"), ForUser("jane")))
	w.Set(ClusterRole("r2", rule("get core secrets")))
	if !w.rights(both).Allowed(asked("get core pods")) {
		t.Fatal("not allowed at first")
	}
	w.Unset(ClusterBinding("devs", ToClusterRole("r")))
	w.Set(ClusterBinding("ops", ToClusterRole("none"), ForGroup("ops")))
	if w.rights(both).Allowed(asked("get core pods")) {
		t.Error("allowed after the binding has gone")
	}
}

// TestUntouched: who is not concerned by a change keeps the same rights, and what
// concerns nobody makes no generation.
func TestUntouched(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	w.Set(ClusterRole("other", rule("get core secrets")))
	w.Set(Binding("a", "jane", ToClusterRole("r"), ForUser("jane")))
	w.Set(Binding("a", "joe", ToClusterRole("other"), ForUser("joe")))
	before, generation, changed := w.rights(jane), w.grants.Generation(), w.grants.Changed()
	for what, change := range map[string]func(){
		"a label": func() { o := ClusterRole("r", rule("get core pods")); o.Labels = map[string]string{"a": "b"}; w.Set(o) },
		"a label of a binding": func() {
			o := Binding("a", "jane", ToClusterRole("r"), ForUser("jane"))
			o.Labels = map[string]string{"a": "b"}
			w.Set(o)
		},
		"a role without bindings":       func() { w.Set(Role("a", "r", rule("* * *"))) },
		"a binding without a role":      func() { w.Set(Binding("a", "none", ToClusterRole("none"), ForUser("jane"))) },
		"a binding without subjects":    func() { w.Set(Binding("a", "nobody", ToClusterRole("r"))) },
		"deletion of what is not there": func() { w.Unset(Binding("b", "x", ToClusterRole("r"))) },
	} {
		change()
		if err := w.grants.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := w.grants.Generation(); now != generation {
			t.Errorf("%s: generation %d after %d", what, now, generation)
		}
	}
	select {
	case <-changed:
		t.Error("a change was told that is none")
	default:
	}
	w.Set(ClusterRole("other", rule("list core secrets")))
	if w.rights(jane) != before {
		t.Error("a change of somebody else's role made other rights")
	}
	if w.grants.Generation() == generation {
		t.Error("a change of a role made no generation")
	}
	select {
	case <-changed:
	default:
		t.Error("a change of a role was not told")
	}
	w.Set(ClusterRole("r", rule("list core pods")))
	if now := w.rights(jane); now == before || now.Generation() == before.Generation() {
		t.Error("a change of the role made no other rights")
	}
}

// TestNames: no user can be called so that they are taken for another one.
func TestNames(t *testing.T) {
	seen := map[digest]user{}
	for _, u := range []user{
		{"a", nil}, {"a", []string{""}}, {"a", []string{"b"}}, {"ab", nil}, {"a\x00b", nil}, {"a\x01b", nil}, {"", []string{"a", "b"}},
		{"a", []string{"b", "c"}}, {"a", []string{"bc"}}, {"a", []string{"b\x01c"}}, {"a", []string{"c", "b"}},
	} {
		if other, ok := seen[userKey(u)]; ok {
			t.Errorf("%q and %q have one key", u, other)
		}
		seen[userKey(u)] = u
	}
}

// TestUnreadable: nothing is told while one of the four cannot be read.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
	for _, name := range Names {
		r := w.Resource(name)
		for _, state := range []cache.State{cache.Unwatched, cache.Syncing, cache.Forbidden, cache.Failed} {
			w.rights(jane)
			changed := w.grants.Changed()
			r.State = state
			rights, err := w.grants.Rights(t.Context(), jane)
			unreadable := (*UnreadableError)(nil)
			if rights != nil || !errors.As(err, &unreadable) || unreadable.Resource.String() != name || unreadable.State != state {
				t.Errorf("%s %s: %v, %v", name, state, rights, err)
			}
			if s := w.grants.Status(); s.Err == nil || s.State != "" {
				t.Errorf("%s %s: status %+v", name, state, s)
			}
			select {
			case <-changed:
			default:
				t.Errorf("%s %s: it was not told", name, state)
			}
			r.State = cache.Live
			if !w.rights(jane).Allowed(asked("get core pods")) {
				t.Errorf("%s %s: not allowed afterwards", name, state)
			}
		}
	}
}

// TestTooOld: what is not live tells rights for as long as the API server has proved it
// lately, since what was revoked later is still in it. That it does no more is told,
// although nothing changes but the time.
func TestTooOld(t *testing.T) {
	for name, c := range map[string]struct {
		state cache.State
		proof time.Duration // before now; 0: unknown
		lease time.Duration
		opts  Options
		told  bool
	}{
		"live":                      {state: cache.Live, told: true},
		"a watch that hangs":        {state: cache.Live, proof: 6 * time.Minute, lease: time.Minute},
		"a watch that hung lately":  {state: cache.Live, proof: 4 * time.Minute, lease: time.Minute, told: true},
		"warm":                      {state: cache.Warm, proof: 4 * time.Minute, told: true},
		"an old snapshot":           {state: cache.Warm, proof: 6 * time.Minute},
		"a snapshot of unknown age": {state: cache.Warm},
		"stale":                     {state: cache.Stale, proof: 4 * time.Minute, told: true},
		"stale for long":            {state: cache.Stale, proof: 6 * time.Minute},
		"a proof still to come":     {state: cache.Stale, proof: -time.Minute},
		"another bound":             {state: cache.Stale, proof: 6 * time.Minute, opts: Options{MaxAge: 7 * time.Minute}, told: true},
		"without a bound":           {state: cache.Warm, opts: Options{MaxAge: -1}, told: true},
	} {
		for _, of := range Names {
			w := newWorld(t)
			g := grantsOf(t, w, of, c.opts, func(v *cache.View) {
				v.State, v.Lease = c.state, c.lease
				if c.proof != 0 {
					v.Proof = time.Now().Add(-c.proof)
				}
			})
			_, err := g.Rights(t.Context(), jane)
			unreadable, is := errors.AsType[*UnreadableError](err)
			if (err == nil) != c.told || !c.told && (!is || unreadable.Resource.String() != of) {
				t.Errorf("%s of %s: %v", name, of, err)
			}
			if s := g.Status(); (s.Err == nil) != c.told {
				t.Errorf("%s of %s: status %+v", name, of, s)
			}
			if !c.told && c.proof > 0 && !strings.Contains(err.Error(), "6m0s ago") {
				t.Errorf("%s of %s: %v does not say how old", name, of, err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		proof := time.Now()
		g := grantsWith(t, w, Names[0], func(v *cache.View) { v.State, v.Proof = cache.Stale, proof })
		if _, err := g.Rights(t.Context(), jane); err != nil {
			t.Fatal(err)
		}
		changed := g.Changed()
		time.Sleep(DefaultMaxAge + time.Second)
		if err := g.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("nobody is told that it is too old")
		}
	})
}

// TestNotThere: a resource that the copy lacks cannot be read either.
func TestNotThere(t *testing.T) {
	w := newWorld(t)
	for _, name := range Names {
		g := New(func() []follow.Resource {
			return slices.DeleteFunc(w.Followed(), func(r follow.Resource) bool { return r.Spec().Name() == name })
		}, Options{})
		defer g.Close()
		if _, err := g.Rights(t.Context(), jane); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// viewed is a resource whose View a test changes.
type viewed struct {
	follow.Resource
	change func(*cache.View)
}

func (v *viewed) View() *cache.View {
	view := *v.Resource.View()
	v.change(&view)
	return &view
}

func grantsWith(t *testing.T, w *world, name string, change func(*cache.View)) *Grants {
	t.Helper()
	return grantsOf(t, w, name, Options{}, change)
}

func grantsOf(t *testing.T, w *world, name string, opts Options, change func(*cache.View)) *Grants {
	t.Helper()
	g := New(func() []follow.Resource {
		all := w.Followed()
		for i, r := range all {
			if r.Spec().Name() == name {
				all[i] = &viewed{r, change}
			}
		}
		return all
	}, opts)
	t.Cleanup(g.Close)
	return g
}

// TestTakenOut: what a rule of the configuration takes out of roles and bindings may
// be what limits them.
func TestTakenOut(t *testing.T) {
	w := newWorld(t)
	roles, local := Names[3], Names[0]
	for _, c := range []struct {
		name, path string
		told       bool
	}{
		{roles, "rules[*].resourceNames", false},
		{roles, "rules", false},
		{roles, "rules[0]", false},
		{roles, "metadata.annotations", true},
		{roles, "subjects", true},
		{local, "subjects[*].namespace", false},
		{local, "roleRef.kind", false},
		{local, "['roleRef']", false},
		{local, "rules", true},
		{local, "metadata.managedFields", true},
	} {
		for verb, change := range map[string]func(*cache.View){
			"drops":   func(v *cache.View) { v.Spec.Drop = []string{"metadata.managedFields", c.path} },
			"redacts": func(v *cache.View) { v.Spec.Redact = []string{c.path} },
		} {
			_, err := grantsWith(t, w, c.name, change).Rights(t.Context(), jane)
			if (err == nil) != c.told || err != nil && !strings.Contains(err.Error(), c.path) {
				t.Errorf("the rule of %s %s %s: %v", c.name, verb, c.path, err)
			}
		}
	}
}

// TestParts: a copy that lacks namespaces it should have is no good; one that is of
// some namespaces by its configuration says so.
func TestParts(t *testing.T) {
	w := newWorld(t)
	missing := grantsWith(t, w, Names[1], func(v *cache.View) {
		v.Missing = []cache.MissingNamespace{{Namespace: "a", State: cache.Forbidden, Reason: "no"}}
	})
	if _, err := missing.Rights(t.Context(), jane); err == nil || !strings.Contains(err.Error(), "namespace a is forbidden: no") {
		t.Errorf("a missing namespace: %v", err)
	}
	for what, change := range map[string]func(*cache.View){
		"namespaces":     func(v *cache.View) { v.Spec.Namespaces = []string{"a*"} },
		"label selector": func(v *cache.View) { v.Spec.LabelSelector = "a=b" },
		"field selector": func(v *cache.View) { v.Spec.FieldSelector = "metadata.name=b" },
	} {
		g := grantsWith(t, w, Names[1], change)
		if _, err := g.Rights(t.Context(), jane); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if s := g.Status(); !slices.Equal(s.Partial, []string{"roles"}) {
			t.Errorf("%s: partial: %v", what, s.Partial)
		}
	}
	if s := w.grants.Status(); len(s.Partial) > 0 {
		t.Errorf("partial: %v", s.Partial)
	}
}

func TestStatusAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		proven := func(after time.Duration) func(*cache.View) {
			return func(v *cache.View) { v.Proof, v.Lease = began.Add(after), time.Minute }
		}
		g := New(func() []follow.Resource {
			all := w.Followed()
			for i, r := range all {
				all[i] = &viewed{r, proven(time.Duration(i) * time.Second)}
			}
			return all
		}, Options{})
		time.Sleep(10 * time.Second)
		if s := g.Status(); s.State != cache.Live || !s.Known || s.Age != 10*time.Second {
			t.Errorf("after 10 s: %+v", s)
		}
		time.Sleep(51 * time.Second)
		if s := g.Status(); s.State != cache.Stale || s.Age != 61*time.Second {
			t.Errorf("after the lease of one: %+v", s)
		}
		if s := w.grants.Status(); s.Known || s.State != cache.Live {
			t.Errorf("without proofs: %+v", s)
		}
	})
}

// TestSuccessor: another copy of a resource takes its place.
func TestSuccessor(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	for _, ns := range []string{"a", "b"} {
		w.Set(Binding(ns, "x", ToClusterRole("r"), ForUser("jane")))
	}
	before := w.rights(jane)
	generation := w.grants.Generation()
	w.Resource(Names[0]).Renew(t)
	for _, b := range slices.Clone(w.RoleBindings) {
		w.Set(b)
	}
	if w.rights(jane) != before || w.grants.Generation() != generation {
		t.Error("the same objects in another store grant something else")
	}
	w.Resource(Names[0]).Renew(t)
	if w.rights(jane).Allowed(asked("get core pods a")) {
		t.Error("what is not in the other store is still granted")
	}
}

// TestOldRightsAreGone: of a user whose rights change all the time only the last ones are
// kept, beside those that somebody has.
func TestOldRightsAreGone(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	var all []weak.Pointer[Rights]
	for i := range 50 {
		w.Set(Binding(fmt.Sprint("ns-", i), "x", ToClusterRole("r"), ForUser("jane")))
		all = append(all, weak.Make(w.rights(jane)))
	}
	held := w.rights(jane)
	runtime.GC()
	all = slices.DeleteFunc(all, func(p weak.Pointer[Rights]) bool { return p.Value() == nil })
	if len(all) != 1 || all[0].Value() != held {
		t.Errorf("%d rights are kept", len(all))
	}
}

// TestRun: a change is told although nobody asks, within a second.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Set(ClusterRole("r", rule("get core pods")))
		w.Set(ClusterBinding("b", ToClusterRole("r"), ForUser("jane")))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.grants.Run(ctx) }()
		before, changed := w.rights(jane), w.grants.Changed()
		time.Sleep(time.Minute)
		select {
		case <-changed:
			t.Error("a change was told that is none")
		default:
		}
		began := time.Now()
		w.Unset(ClusterBinding("b", ToClusterRole("r")))
		<-changed
		if took := time.Since(began); took > time.Second {
			t.Errorf("told after %v", took)
		}
		if now := w.rights(jane); now.Digest() == before.Digest() || now.Allowed(asked("get core pods")) {
			t.Error("still granted")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, r := range w.Resources {
			r.Store().Close()
		}
		w.grants.Close()
	})
}

// TestForgotten: rights are kept for the users of late only, and told anew to others.
func TestForgotten(t *testing.T) {
	c := NewCluster(t)
	g := New(c.Followed, Options{Users: 10})
	defer g.Close()
	w := &world{c, g}
	w.Set(ClusterRole("r", rule("get core pods")))
	for n := range 100 {
		w.Set(Binding(fmt.Sprint("ns-", n), "b", ToClusterRole("r"), ForUser(fmt.Sprint("user-", n))))
	}
	for range 2 {
		for n := range 100 {
			r := w.rights(user{name: fmt.Sprint("user-", n)})
			if !r.Allowed(Attributes{Verb: "get", Resource: "pods", Namespace: fmt.Sprint("ns-", n)}) || r.Allowed(asked("get core pods other")) {
				t.Errorf("user %d has other rights", n)
			}
			w.rights(user{name: "user-0"}) // is asked for all the time
		}
	}
	k := &g.known
	if n := len(k.users.young) + len(k.users.old); n > 20 {
		t.Errorf("the rights of %d users are kept", n)
	}
	if n := len(k.shared.young) + len(k.shared.old); n > 20 {
		t.Errorf("%d rights are kept", n)
	}
}

// TestScopesBounded: questions that clients make up are not kept without end.
func TestScopesBounded(t *testing.T) {
	w := newWorld(t)
	w.Set(Role("a", "r", rule("get core pods/log")))
	w.Set(Binding("a", "b", ToRole("r"), ForUser("jane")))
	r := w.rights(jane)
	for n := range 2 * maxScopes {
		r.Scope(cache.Get, schema.GroupResource{Resource: "pods"}, fmt.Sprint(n))
	}
	if kept := len(r.scopes.young) + len(r.scopes.old); kept > maxScopes {
		t.Errorf("%d are kept", kept)
	}
	fresh := question{cache.Get, schema.GroupResource{Resource: "pods"}, "log"}
	r.Scope(fresh.verb, fresh.resource, fresh.subresource)
	if _, ok := r.scopes.get(fresh); !ok {
		t.Error("nothing is kept any more once somebody has filled it")
	}
	long := question{cache.Get, schema.GroupResource{Resource: strings.Repeat("x", 250_000)}, ""}
	r.Scope(long.verb, long.resource, long.subresource)
	if _, ok := r.scopes.get(long); ok {
		t.Error("a quarter of a megabyte is kept")
	}
	if !r.Scope(cache.Get, schema.GroupResource{Resource: "pods"}, "log").Namespace("a") {
		t.Error("another answer beyond the bound")
	}
}

// TestMany: bindings that come and go in large numbers, in no order, are all found.
func TestMany(t *testing.T) {
	w := newWorld(t)
	w.Set(ClusterRole("r", rule("get core pods")))
	names := func(n int) (string, string, rbacv1.Subject) {
		n = n * 7919 % 3001
		return fmt.Sprint("ns-", n%100), fmt.Sprint("b-", n), ForUser(fmt.Sprint("user-", n%10))
	}
	for n := range 3001 {
		ns, name, who := names(n)
		w.Put(Names[0], ns+"/"+name, fmt.Sprintf(`{"subjects":[{"kind":"User","name":%q}],"roleRef":{"kind":"ClusterRole","name":"r"}}`, who.Name))
		if n == 1000 {
			w.rights(jane)
		}
	}
	if got := w.grants.Stats(); got.Bindings != 1001 {
		t.Errorf("%+v, want the first 1,001", got)
	}
	w.rights(jane)
	rows := w.grants.local.rows
	if !slices.IsSortedFunc(rows, func(a, b binding) int { return w.grants.local.key(&a).Compare(w.grants.local.key(&b)) }) {
		t.Error("bindings are not in order")
	}
	if got := w.grants.Stats(); got.Bindings != 3001 || got.Grantees != 10 || len(w.grants.local.spaces.names) != 101 {
		t.Errorf("%+v, %d spaces", got, len(w.grants.local.spaces.names))
	}
	for n := range 3000 {
		ns, name, _ := names(n)
		w.Delete(Names[0], ns+"/"+name)
	}
	w.rights(jane)
	if got := w.grants.Stats(); got.Bindings != 1 || got.Grantees != 1 || cap(w.grants.local.rows) > 100 {
		t.Errorf("after deletion: %+v, room for %d", got, cap(w.grants.local.rows))
	}
}

// TestRightsAtOnce: while roles stay what they are, who asks for rights waits for nobody
// else who does.
func TestRightsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Set(ClusterRole("r", rule("get core pods")))
		w.Set(ClusterBinding("jane", ToClusterRole("r"), ForUser("jane")))
		w.rights(jane)
		var looks atomic.Int64
		both := make(chan struct{}) // are looking
		resources := w.grants.resources
		w.grants.resources = func() []follow.Resource {
			if looks.Add(1) == 2 {
				close(both)
			}
			<-both
			return resources()
		}
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() {
				if r, err := w.grants.Rights(t.Context(), jane); err != nil || !r.Allowed(asked("get core pods a x")) {
					t.Errorf("not allowed: %v", err)
				}
			})
		}
		asking.Wait()
	})
}

// TestRightsCostNothing: to be told again what one may takes next to nothing, whatever the
// rules take out of objects: it is asked many times for each request.
func TestRightsCostNothing(t *testing.T) {
	c := NewCluster(t)
	var resources []follow.Resource
	for _, r := range c.Followed() {
		spec := r.Spec()
		spec.Drop = []string{"metadata.managedFields", "metadata.annotations['a.io/b']"}
		resources = append(resources, followtest.NewResource(t, spec))
	}
	g := New(func() []follow.Resource { return resources }, Options{})
	t.Cleanup(g.Close)
	ask := func() {
		if _, err := g.Rights(t.Context(), jane); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	if n := testing.AllocsPerRun(100, ask); n > 12 {
		t.Errorf("%v allocations", n)
	}
}
