package review

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	jane = &user.DefaultInfo{Name: "jane", UID: "1", Groups: []string{"dev", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
	bob  = &user.DefaultInfo{Name: "bob", UID: "2", Groups: []string{"dev", "system:authenticated"}}
	pods = schema.GroupResource{Resource: "pods"}
)

// proposals are what roles grant to everybody alike.
type proposals struct {
	scope cache.Scope
	err   error
	mark  atomic.Int64
}

func (p *proposals) Granted(context.Context, user.Info, cache.Verb, schema.GroupResource) (cache.Scope, error) {
	return p.scope, p.err
}

func (p *proposals) Mark(context.Context, user.Info) string { return fmt.Sprint(p.mark.Load()) }

func (p *proposals) Rules(context.Context, user.Info, string) (authorizationv1.SubjectRulesReviewStatus, error) {
	return authorizationv1.SubjectRulesReviewStatus{}, p.err
}

// allow lets verbs on a resource be done in places, as namespace or namespace/name; "*"
// is everywhere.
func allow(places ...string) func(authorizationv1.SubjectAccessReviewSpec) bool {
	return func(s authorizationv1.SubjectAccessReviewSpec) bool {
		r := s.ResourceAttributes
		if r == nil {
			return false
		}
		for _, p := range places {
			if p == "*" || r.Namespace != "" && p == r.Namespace || r.Name != "" && p == r.Namespace+"/"+r.Name {
				return true
			}
		}
		return false
	}
}

func TestScope(t *testing.T) {
	names := map[string][]string{"c": {"x", "y"}}
	named := func(only bool, places ...access.Place) access.Named { return access.Named{Places: places, Only: only} }
	for name, test := range map[string]struct {
		proposed cache.Scope
		allows   []string
		resource schema.GroupResource
		verb     cache.Verb
		named    access.Named
		want     cache.Scope
		asked    int
	}{
		"everything":               {proposed: cache.NewScope([]string{"a"}, nil), allows: []string{"*"}, want: cache.WholeScope(), asked: 1},
		"what roles say":           {proposed: cache.NewScope([]string{"a", "b"}, nil), allows: []string{"a", "b"}, want: cache.NewScope([]string{"a", "b"}, nil), asked: 3},
		"a denial wins":            {proposed: cache.NewScope([]string{"a", "b"}, nil), allows: []string{"b"}, want: cache.NewScope([]string{"b"}, nil), asked: 3},
		"all denied":               {proposed: cache.NewScope([]string{"a", "b"}, names), want: cache.Scope{}, asked: 5},
		"all denied, all proposed": {proposed: cache.WholeScope(), allows: []string{"a"}, want: cache.Scope{}, asked: 1},
		"names":                    {proposed: cache.NewScope(nil, names), allows: []string{"c/y"}, want: cache.NewScope(nil, map[string][]string{"c": {"y"}}), asked: 3},
		"names seen whole":         {proposed: cache.NewScope([]string{"c"}, names), allows: []string{"c"}, want: cache.NewScope([]string{"c"}, nil), asked: 2},
		"named, not proposed":      {allows: []string{"n"}, named: named(false, access.Place{Namespace: "n"}), want: cache.NewScope([]string{"n"}, nil), asked: 2},
		"named only":               {proposed: cache.NewScope([]string{"a"}, nil), allows: []string{"a", "n"}, named: named(true, access.Place{Namespace: "n"}), want: cache.NewScope([]string{"n"}, nil), asked: 2},
		"an object named":          {allows: []string{"n/x"}, named: named(true, access.Place{Namespace: "n", Name: "x"}), want: cache.NewScope(nil, map[string][]string{"n": {"x"}}), asked: 3},
		"an object at cluster scope": {
			resource: schema.GroupResource{Resource: "nodes"}, allows: []string{"/x"}, named: named(true, access.Place{Name: "x"}),
			want: cache.NewScope(nil, map[string][]string{"": {"x"}}), asked: 2,
		},
		"a Namespace is in itself": {
			resource: schema.GroupResource{Resource: "namespaces"}, verb: cache.Get, allows: []string{"x"}, named: named(true, access.Place{Name: "x"}),
			want: cache.NewScope(nil, map[string][]string{"": {"x"}}), asked: 2,
		},
		"a Namespace is listed with all": {
			resource: schema.GroupResource{Resource: "namespaces"}, allows: []string{"x"}, named: named(true, access.Place{Name: "x"}), want: cache.Scope{}, asked: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := &accesstest.API{}
			api.Allow(allow(test.allows...))
			a := New(Options{Cluster: "c", Reviewer: api, Proposer: &proposals{scope: test.proposed}})
			resource, verb := test.resource, test.verb
			if resource.Empty() {
				resource = pods
			}
			if verb == "" {
				verb = cache.List
			}
			got, _, err := a.Scope(t.Context(), jane, verb, resource, test.named)
			if err != nil || got.Digest() != test.want.Digest() {
				t.Errorf("Scope() = %v %v, %v; want %v %v", got.Namespaces(), got.Names(), err, test.want.Namespaces(), test.want.Names())
			}
			if asked := api.Asked(); len(asked) != test.asked {
				t.Errorf("asked %d times, want %d", len(asked), test.asked)
			}
		})
	}
}

// Who somebody is decides alone: two users with the same roles are not the same to
// another authorizer.
func TestUsersDoNotShareAnswers(t *testing.T) {
	api := &accesstest.API{}
	api.Allow(func(s authorizationv1.SubjectAccessReviewSpec) bool { return s.User == "jane" })
	a := New(Options{Reviewer: api, Proposer: &proposals{}})
	for u, want := range map[*user.DefaultInfo]bool{jane: true, bob: false} {
		scope, _, err := a.Scope(t.Context(), u, cache.List, pods, access.Named{})
		if err != nil || scope.Whole() != want {
			t.Errorf("%s sees all: %v, %v", u.Name, scope.Whole(), err)
		}
	}
	for name, other := range map[string]*user.DefaultInfo{
		"uid":       {Name: "jane", UID: "2", Groups: jane.Groups, Extra: jane.Extra},
		"group":     {Name: "jane", UID: "1", Groups: []string{"dev"}, Extra: jane.Extra},
		"extra":     {Name: "jane", UID: "1", Groups: jane.Groups, Extra: map[string][]string{"scopes": {"a"}}},
		"extra key": {Name: "jane", UID: "1", Groups: jane.Groups, Extra: map[string][]string{"scope": {"sa", "b"}}},
		"borders":   {Name: "jane", UID: "1", Groups: []string{"devsystem:authenticated"}, Extra: jane.Extra},
	} {
		if access.Digest(other) == access.Digest(jane) {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

// Answers count for ten seconds, yes and no alike; who asks at once shares one; and
// when the API server cannot be asked after that, nothing is allowed.
func TestFailClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Allow(allow("a"))
		api.Delay(50 * time.Millisecond)
		a := New(Options{Reviewer: api, Proposer: &proposals{scope: cache.NewScope([]string{"a", "b"}, nil)}})
		scope := func() (cache.Scope, error) {
			s, _, err := a.Scope(t.Context(), jane, cache.List, pods, access.Named{})
			return s, err
		}
		want := cache.NewScope([]string{"a"}, nil).Digest()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if s, err := scope(); err != nil || s.Digest() != want {
					t.Errorf("Scope() = %v, %v", s.Namespaces(), err)
				}
			})
		}
		all.Wait()
		if n := len(api.Asked()); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		api.Fail(errors.New("connection refused"))
		time.Sleep(9 * time.Second)
		if s, err := scope(); err != nil || s.Digest() != want {
			t.Errorf("within ten seconds: %v, %v", s.Namespaces(), err)
		}
		time.Sleep(2 * time.Second)
		s, err := scope()
		if err == nil || !s.Empty() {
			t.Errorf("after ten seconds: %v, %v", s.Namespaces(), err)
		}
		n := len(api.Asked())
		if _, err := scope(); err == nil || len(api.Asked()) != 0 {
			t.Error("a failure is asked for again at once")
		}
		if n == 0 {
			t.Error("nothing was asked after ten seconds")
		}
		time.Sleep(2 * time.Second)
		api.Fail(nil)
		if s, err := scope(); err != nil || s.Digest() != want {
			t.Errorf("when it answers again: %v, %v", s.Namespaces(), err)
		}
	})
}

// A right that is taken away is gone after ten seconds, however often it is asked for.
func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Allow(allow("a"))
		a := New(Options{Reviewer: api, Proposer: &proposals{scope: cache.NewScope([]string{"a"}, nil)}})
		seen := func() bool {
			s, _, err := a.Scope(t.Context(), jane, cache.List, pods, access.Named{})
			if err != nil {
				t.Fatal(err)
			}
			return s.Namespace("a")
		}
		if !seen() {
			t.Fatal("not seen")
		}
		api.Allow(nil)
		for range 100 {
			time.Sleep(100*time.Millisecond + time.Microsecond)
			seen()
		}
		if seen() {
			t.Error("still seen after ten seconds")
		}
	})
}

// One place that cannot be asked about makes all unknown: less than there is would look
// like all.
func TestOneFailureIsAll(t *testing.T) {
	api := &failing{}
	api.Allow(allow("a", "b"))
	a := New(Options{Reviewer: api, Proposer: &proposals{scope: cache.NewScope([]string{"a", "b"}, nil)}})
	if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, access.Named{}); err == nil {
		t.Errorf("Scope() = %v", s.Namespaces())
	}
	a = New(Options{Reviewer: api, Proposer: &proposals{err: errors.New("no roles")}})
	if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, access.Named{}); err == nil {
		t.Errorf("without roles: %v", s.Namespaces())
	}
}

// failing does not answer about namespace b.
type failing struct{ accesstest.API }

func (f *failing) ReviewAccess(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	if r.Spec.ResourceAttributes.Namespace == "b" {
		return nil, errors.New("timeout")
	}
	return f.API.ReviewAccess(ctx, r)
}

// A change of roles is asked about at once.
func TestMark(t *testing.T) {
	api := &accesstest.API{}
	api.Allow(allow("a", "b"))
	roles := &proposals{scope: cache.NewScope([]string{"a"}, nil)}
	a := New(Options{Reviewer: api, Proposer: roles})
	for _, want := range [][]string{{"a"}, {"a", "b"}} {
		roles.scope = cache.NewScope(want, nil)
		roles.mark.Add(1)
		s, _, err := a.Scope(t.Context(), jane, cache.List, pods, access.Named{})
		if diff := cmp.Diff(want, s.Namespaces()); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
}

// The API server is told all that its authorizers may want to know.
func TestWhatIsAsked(t *testing.T) {
	api := &accesstest.API{}
	a := New(Options{Reviewer: api, Proposer: &proposals{}})
	_, err := a.Allowed(t.Context(), jane, access.Attributes{
		Cluster: "elsewhere", Verb: "watch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "x",
		LabelSelector: "app=shop,tier!=web,env in (a,b),new,!old", FieldSelector: "metadata.name=x,spec.nodeName!=y",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Path(t.Context(), bob, "get", "/metrics"); err != nil {
		t.Fatal(err)
	}
	requirement := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: "jane", UID: "1", Groups: jane.Groups, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "watch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "x",
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				requirement("app", "In", "shop"), requirement("env", "In", "a", "b"), requirement("new", "Exists"),
				requirement("old", "DoesNotExist"), requirement("tier", "NotIn", "web"),
			}},
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "metadata.name", Operator: "In", Values: []string{"x"}}, {Key: "spec.nodeName", Operator: "NotIn", Values: []string{"y"}},
			}},
		},
	}, {
		User: "bob", UID: "2", Groups: bob.Groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	}}
	if diff := cmp.Diff(want, api.Asked(), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Values" }, emptyIsNil)); diff != "" {
		t.Error(diff)
	}
}

var emptyIsNil = cmp.Transformer("emptyIsNil", func(s []string) string { return fmt.Sprint(s) })

// Answers do not pile up for ever.
func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newReviews(&accesstest.API{}, DefaultTTL, func(error) {})
		v.held.most = 200
		ask := func(i int) {
			if _, err := v.ask(t.Context(), jane, question{user: "jane", path: fmt.Sprint("/", i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			ask(i)
		}
		time.Sleep(DefaultTTL)
		ask(-1)
		if len(v.held.byKey) != 1 || len(v.held.order) != 1 {
			t.Errorf("holds %d, of which all but one are over", len(v.held.byKey))
		}
		for i := range 1000 {
			ask(i)
		}
		if n := len(v.held.byKey); n != 200 || v.held.weight != 200 {
			t.Errorf("holds %d", n)
		}
		before := len(v.reviewer.(*accesstest.API).Asked())
		ask(999)
		if asked := len(v.reviewer.(*accesstest.API).Asked()); before == 0 || asked != 0 {
			t.Error("the newest made room")
		}
	})
}
