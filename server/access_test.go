package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/server/fair"
)

var (
	podsResource    = schema.GroupResource{Resource: "pods"}
	nodesResource   = schema.GroupResource{Resource: "nodes"}
	secretsResource = schema.GroupResource{Resource: "secrets"}
)

// inA may see what is in namespace a.
var inA = cache.NewScope([]string{"a"}, nil)

// jane may see the pods of namespace a, and one Secret.
func jane() *accesstest.User {
	return accesstest.NewUser("jane").Grant(podsResource, inA).
		Grant(secretsResource, cache.NewScope(nil, map[string][]string{"a": {"hers"}}))
}

// newGuarded is a world whose requests are those of a user.
// No turn is ever late there: who waits with one holds up others, which is noticed.
func newGuarded(t testing.TB, user access.Asker) *world {
	w := newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
	})
	w.turns = fair.NewTurns(cache.Workers(), time.Hour)
	return w
}

// slowly says what somebody may after a second, as an API server that is asked for each.
type slowly struct{ access.Asker }

func (s slowly) Scope(ctx context.Context, cluster string, verb cache.Verb, r schema.GroupResource) (cache.Scope, error) {
	time.Sleep(time.Second)
	return s.Asker.Scope(ctx, cluster, verb, r)
}

// TestRightsOfAllAreAskedSideBySide: a list of all resources takes no longer for there
// being more of them.
func TestRightsOfAllAreAskedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newGuarded(t, slowly{jane()})
		began := time.Now()
		if rec := w.get(t, "/v1/resources"); rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if took := time.Since(began); took > 2*time.Second { // before the answer they are asked again
			t.Errorf("took %v", took)
		}
	})
}

// TestForbidden: what may not be read at all is refused in the API server's words,
// whether it is there or not.
func TestForbidden(t *testing.T) {
	w := newGuarded(t, jane())
	for target, message := range map[string]string{
		"/v1/resources/nodes/objects":                            `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/resources/nodes/objects?watch=true":                 `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/resources/nodes/objects/-/n1":                       `nodes "n1" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope`,
		"/v1/resources/nodes/objects/-/none":                     `nodes "none" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope`,
		"/v1/resources/pods/objects/b/three":                     `pods "three" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "b"`,
		"/v1/resources/pods/objects/b/none":                      `pods "none" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "b"`,
		"/v1/resources/pods/objects?namespace=b":                 `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "b"`,
		"/v1/resources/pods/objects?namespace=a&namespace=no":    `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "no"`,
		"/v1/resources/nodes/indexes":                            `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/resources/nodes/indexes/label":                      `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/query?resources=nodes":                              `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/query?resources=nod*":                               `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/query?resources=nodes&watch=true":                   `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/v1/query?resources=pods&namespace=b":                   `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "b"`,
		"/v1/complete?for=paths&resource=nodes":                  `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/metrics":                                               `User "jane" cannot get path "/metrics"`,
		"/apis":                                                  `User "jane" cannot get path "/apis"`,
		"/version":                                               `User "jane" cannot get path "/version"`,
		"/api/v1/pods":                                           `pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope`,
		"/api/v1/pods?watch=1":                                   `pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster scope`,
		"/api/v1/nodes?visible=true":                             `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`,
		"/api/v1/namespaces/b/pods?visible=true":                 `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "b"`,
		"/api/v1/namespaces/b/pods/none":                         `pods "none" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "b"`,
		"/api/v1/namespaces/a/pods/one/log":                      `pods "one" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "a"`,
		"/apis/no.example.com/v1/things":                         `things.no.example.com is forbidden: User "jane" cannot list resource "things" in API group "no.example.com" at the cluster scope`,
		"/api/v1/pods?fieldSelector=metadata.name=three":         `pods "three" is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope`,
		"/api/v1/namespaces/a/secrets":                           `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "a"`,
		"/api/v1/namespaces/a/secrets/other?resourceVersion=bad": `secrets "other" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "a"`,
	} {
		wantStatus(t, w.get(t, target), http.StatusForbidden, metav1.StatusReasonForbidden, message)
	}
	// What is asked for by name is told of; the rest is not.
	var both struct {
		Metadata struct{ Resources []kindState }
	}
	w.getJSON(t, "/v1/query?resources=pods,nodes", &both)
	if s := both.Metadata.Resources; len(s) != 2 || s[0].Answered || !strings.Contains(s[0].Reason, "cannot list") || !s[1].Answered || s[1].Objects != 2 {
		t.Errorf("of pods and nodes: %+v", s)
	}
	w.getJSON(t, "/v1/query?resources=pods,n*", &both)
	if s := both.Metadata.Resources; len(s) != 1 {
		t.Errorf("of pods and n*: %+v", s)
	}
}

// TestNobodyKnown: who cannot be told is refused as the API server does, and nothing is
// read where rights cannot be told.
func TestNobodyKnown(t *testing.T) {
	stranger := newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return nil, errors.New("token of another cluster") }
	})
	nobody := newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return nil, nil }
	})
	user := jane()
	unknown := newGuarded(t, user)
	user.Fail(errors.New("the webhook is away"))
	for _, target := range []string{"/v1/resources", "/v1/resources/pods/objects", "/v1/resources/pods/objects?watch=true", "/v1/query", "/v1/resources/pods/objects/a/one", "/api/v1/pods", "/api/v1/namespaces/a/pods/one", "/api/v1/pods?visible=true&watch=true", "/apis", "/metrics"} {
		s := wantStatus(t, stranger.get(t, target), http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		if s.Message != "Unauthorized" {
			t.Errorf("a stranger is told %q", s.Message)
		}
		if target != "/v1/resources" {
			wantStatus(t, nobody.get(t, target), http.StatusForbidden, metav1.StatusReasonForbidden, "cannot")
		}
		if s := wantStatus(t, unknown.get(t, target), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, `"jane"`); strings.Contains(s.Message, "webhook") {
			t.Errorf("the client is told why: %s", s.Message)
		}
	}
}

// TestClusterScopedThroughNamespacedPath: rights in a namespace do not reach objects that
// are in none (Kubernetes' CVE-2019-11247).
func TestClusterScopedThroughNamespacedPath(t *testing.T) {
	w := newGuarded(t, accesstest.NewUser("jane").Grant(nodesResource, inA))
	for _, target := range []string{
		"/api/v1/namespaces/a/nodes", "/api/v1/namespaces/a/nodes/n1", "/api/v1/namespaces/a/nodes?visible=true", "/api/v1/namespaces/a/nodes?watch=true&timeoutSeconds=1",
		"/api/v1/watch/namespaces/a/nodes/n1?timeoutSeconds=1", "/api/v1/nodes/n1", "/api/v1/nodes", "/api/v1/nodes?visible=true", "/v1/resources/nodes/objects",
		"/v1/resources/nodes/objects?namespace=a", "/v1/resources/nodes/objects/a/n1", "/v1/resources/nodes/objects/-/n1", "/v1/query?resources=nodes", "/v1/resources/nodes/indexes/label",
	} {
		if rec := w.get(t, target); strings.Contains(rec.Body.String(), `"uid":"n1"`) {
			t.Errorf("%s: %s", target, rec.Body)
		}
	}
}

// TestSelectorsDoNotWidenScope: whatever is selected, it is of what may be seen
// (capsule-proxy's issue 5, where the reader's selector was joined with the filter's).
func TestSelectorsDoNotWidenScope(t *testing.T) {
	w := newGuarded(t, jane())
	for _, selection := range []string{
		"labelSelector=app", "labelSelector=app+in+(web,db)", "labelSelector=app!=x", "fieldSelector=metadata.namespace=b", "fieldSelector=metadata.name=three",
		"fieldSelector=metadata.namespace!=a", "fieldSelector=metadata.name=three,metadata.namespace=b", "fieldSelector=spec.nodeName=n1",
	} {
		for _, path := range []string{"/api/v1/pods?visible=true&", "/api/v1/pods?visible=true&watch=true&timeoutSeconds=1&resourceVersion=0&", "/v1/resources/pods/objects?", "/v1/query?resources=pods&", "/v1/resources/pods/objects?watch=true&timeoutSeconds=1&"} {
			if rec := w.get(t, path+selection); rec.Code != http.StatusOK && rec.Code != http.StatusForbidden || strings.Contains(rec.Body.String(), "uid-b-three") {
				t.Errorf("%s%s: %d %s", path, selection, rec.Code, rec.Body)
			}
		}
	}
	for _, selection := range []string{"filter=true", "filter=object.metadata.namespace=='b'", "namespace=*", "namespace=b*", "namespace=[b]", "index=namespace:b", "index=label:app%3Dweb"} {
		for _, path := range []string{"/v1/resources/pods/objects?", "/v1/query?resources=pods&", "/v1/resources/pods/objects?groupBy=metadata.name&", "/v1/resources/pods/objects?facets=metadata.name&"} {
			if rec := w.get(t, path+selection); rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), "three") {
				t.Errorf("%s%s: %d %s", path, selection, rec.Code, rec.Body)
			}
		}
	}
}

// TestRightsComeFirst: what may not be seen is refused before tags, tokens and the state
// of what is held are looked at.
func TestRightsComeFirst(t *testing.T) {
	w := newGuarded(t, jane())
	w.nodes.set(cache.Failed, "hush")
	const token = "nonsense"
	for _, target := range []string{
		"/v1/query?resources=nodes", "/v1/query?resources=nodes,secrets&namespace=b", "/v1/query?resources=pods&namespace=b", "/v1/query?resources=pods&namespace=b&limit=1&continue=" + token,
		"/v1/query?resources=nodes&groupBy=kind", "/v1/query?resources=nodes&facets=kind", "/v1/query?resources=nodes&continue=" + token, "/v1/query?resources=nodes&watch=true",
		podObjects + "?namespace=b", podObjects + "?namespace=b&continue=" + token, podObjects + "/b/three", "/v1/resources/nodes/objects", "/v1/resources/nodes/objects/-/n1",
		"/v1/resources/pods/indexes/none/x?namespace=b", "/v1/resources/secrets/objects?namespace=b", "/v1/resources/nodes/indexes", "/v1/resources/nodes/indexes/label",
		"/v1/resources/pods/columns", "/v1/complete?for=paths&resource=nodes", "/v1/graph/nodes/-/n1",
		"/api/v1/nodes", "/api/v1/namespaces/b/pods?continue=" + token, "/api/v1/namespaces/b/pods/three", "/openapi/v2", "/apis",
	} {
		rec := w.get(t, target, "If-None-Match", "*", "Last-Event-ID", "nonsense")
		wantStatus(t, rec, http.StatusForbidden, "Forbidden", "")
	}
}

// TestSight: what may be seen of a cluster is that of all that is watched.
func TestSight(t *testing.T) {
	w := newGuarded(t, jane())
	ctx := access.With(t.Context(), jane())
	sight, err := w.sight(ctx, "", cache.List)
	if err != nil || !sight.Sees(podsResource, cache.Key{Namespace: "a", Name: "one"}) || sight.Sees(podsResource, cache.Key{Namespace: "b", Name: "three"}) || sight.Sees(nodesResource, cache.Key{Name: "n1"}) {
		t.Errorf("jane sees %+v (%v)", sight, err)
	}
	if sight, err = w.sight(t.Context(), "", cache.List); err != nil || sight.Sees(podsResource, cache.Key{Namespace: "a", Name: "one"}) {
		t.Errorf("nobody sees %+v (%v)", sight, err)
	}
	if sight, err = w.sight(access.With(t.Context(), access.Everyone()), "", cache.List); err != nil || !sight.Sees(schema.GroupResource{Resource: "anything"}, cache.Key{}) {
		t.Errorf("everyone sees %+v (%v)", sight, err)
	}
}
