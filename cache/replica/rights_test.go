package replica

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/informerd/informerd/cache"
)

// TestManyNamespaces: of 600 namespaces 100 may be read, and they are found wherever
// they are, with one question a namespace where the server can tell all rules.
func TestManyNamespaces(t *testing.T) {
	for _, rules := range []string{"complete", "incomplete", ""} {
		t.Run("rules "+rules, func(t *testing.T) {
			api := newFakeAPI(t)
			api.rules = rules
			for n := range 600 {
				ns := fmt.Sprintf("team-%03d", n)
				api.known = append(api.known, ns)
				api.put(cache.Key{Namespace: ns, Name: "p"}, "v1")
			}
			readable := func(ns string) bool {
				n, err := strconv.Atoi(strings.TrimPrefix(ns, "team-"))
				return err == nil && n%6 == 5
			}
			api.deny = func(verb, namespace string) bool { return verb != "get" && !readable(namespace) }
			r := startRig(t, api, Options{accessRate: 5000})
			r.becomes(t, cache.Live)
			want := api.truth()
			maps.DeleteFunc(want, func(key, _ string) bool { return !readable(key[:len("team-000")]) })
			if len(want) != 100 {
				t.Fatalf("%d objects may be read", len(want))
			}
			eventually(t, "all that may be read", func() bool { return maps.Equal(held(r.pods().store()), want) })
			asked, reviewed := api.count("rules"), api.count("review")
			most := map[string]int{"complete": 50, "incomplete": 1200, "": 1700}[rules]
			if rules != "" && (asked < 600 || asked > 1200) || reviewed > most {
				t.Errorf("asked for the rules of %d namespaces and %d times about the resource, want 600 and at most %d", asked, reviewed, most)
			}
		})
	}
}

// TestRightsAreShared: however many resources want to know, each namespace is asked
// about once in a while, and not faster than allowed.
func TestRightsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		client := fake.NewClientset()
		client.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked.Add(1)
			return true, &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
				ResourceRules: []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"r7"}}},
			}}, nil
		})
		r := newRights(accessRate)
		r.connect(client.AuthorizationV1())
		round := func() (allowed int32) {
			var all sync.WaitGroup
			var found atomic.Int32
			for n := range 60 {
				gvr := schema.GroupVersionResource{Version: "v1", Resource: fmt.Sprint("r", n)}
				all.Go(func() {
					for ns := range 1000 {
						if ok, err := r.may(context.Background(), gvr, fmt.Sprint("ns", ns)); err != nil {
							t.Error(err)
						} else if ok {
							found.Add(1)
						}
					}
				})
			}
			all.Wait()
			return found.Load()
		}
		began := time.Now()
		if n := round(); n != 1000 || asked.Load() != 1000 {
			t.Errorf("%d times allowed after %d questions, want 1000 and 1000", n, asked.Load())
		}
		if took := time.Since(began); took < 8*time.Second || took > 11*time.Second {
			t.Errorf("1000 questions took %v, want 10 s", took)
		}
		if round(); asked.Load() != 1000 {
			t.Errorf("%d questions in the second round", asked.Load()-1000)
		}
		time.Sleep(time.Minute)
		if round(); asked.Load() != 2000 {
			t.Errorf("%d questions a minute later, want 1000", asked.Load()-1000)
		}
	})
}

func TestPermits(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tt := range map[string]struct {
		rule authorizationv1.ResourceRule
		want bool
	}{
		"named":          {authorizationv1.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}, true},
		"everything":     {authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, true},
		"other verb":     {authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}, false},
		"other group":    {authorizationv1.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{"apps"}, Resources: []string{"pods"}}, false},
		"subresource":    {authorizationv1.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods/log", "*/log"}}, false},
		"some names":     {authorizationv1.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}}, false},
		"none":           {},
		"one of several": {authorizationv1.ResourceRule{Verbs: []string{"get", "list"}, APIGroups: []string{"apps", ""}, Resources: []string{"secrets", "pods"}}, true},
	} {
		if got := permits([]authorizationv1.ResourceRule{{}, tt.rule}, "list", pods); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
