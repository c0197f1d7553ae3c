package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
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
func newGuarded(t testing.TB, user access.Asker) *world {
	return newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
	})
}

// questions are about every route that answers with objects, or with what is made of
// them. Each is of pods of all namespaces.
var questions = []string{
	"/v1/resources", "/v1/resources/pods", "/v1/resources/nodes",
	"/v1/resources/pods/objects", "/v1/resources/pods/objects?limit=1", "/v1/resources/pods/objects?count=false&limit=1",
	"/v1/resources/pods/objects?sort=-metadata.creationTimestamp&limit=1", "/v1/resources/pods/objects?sort=spec.nodeName&limit=1&explain=true",
	"/v1/resources/pods/objects?sort=-status.phase", "/v1/resources/pods/objects?namespace=*",
	"/v1/resources/pods/objects?filter=object.spec.tier==1", "/v1/resources/pods/objects?filter=object.spec.tier==1&explain=true",
	"/v1/resources/pods/objects?filter=object.spec.nodeName>='n2'&explain=true",
	"/v1/resources/pods/objects?labelSelector=app!=x&explain=true", "/v1/resources/pods/objects?index=node:n1",
	"/v1/resources/pods/objects?facets=spec.nodeName,metadata.namespace", "/v1/resources/pods/objects?groupBy=metadata.namespace&agg=count(),max(spec.nodeName)",
	"/v1/resources/pods/objects?view=table", "/v1/resources/pods/objects?output=csv", "/v1/resources/pods/objects?view=metadata",
	"/v1/resources/pods/objects/a/one", "/v1/resources/pods/objects/hidden/one", "/v1/resources/pods/objects/hidden/never",
	"/v1/resources/pods/indexes", "/v1/resources/pods/indexes/node", "/v1/resources/pods/indexes/namespace", "/v1/resources/pods/indexes/label?limit=2",
	"/v1/resources/pods/indexes/node/n9", "/v1/resources/pods/indexes/node/n1?explain=true",
	"/v1/query", "/v1/query?resources=pods,nodes", "/v1/query?resources=*&limit=1", "/v1/query?resources=pods&explain=true",
	"/v1/query?groupBy=metadata.namespace", "/v1/query?facets=metadata.namespace&view=table",
	"/v1/complete?for=resources", "/v1/search?q=one", "/v1/search?q=web&highlights=true", "/v1/graph/pods/a/one?depth=5", "/v1/graph/pods/hidden/one", "/v1/graph/dangling", "/v1/complete?for=paths&resource=pods", "/v1/complete?for=values&resource=pods&path=spec.nodeName",
	"/v1/complete?for=values&resource=pods&path=metadata.namespace", "/v1/complete?for=values&resource=pods&path=metadata.name",
	"/api/v1/pods", "/api/v1/pods?visible=true", "/api/v1/pods?visible=true&limit=1", "/api/v1/namespaces/a/pods?limit=1", "/api/v1/namespaces/hidden/pods",
	"/api/v1/namespaces/hidden/pods?visible=true", "/api/v1/pods?visible=true&labelSelector=app", "/api/v1/namespaces/a/pods/one", "/api/v1/namespaces/hidden/pods/one",
	"/api/v1/pods?visible=true&resourceVersion=105&resourceVersionMatch=Exact", "/apis", "/api/v1",
}

// streams are asked for, and then pods change.
var streams = []string{
	"/v1/resources/pods/objects?watch=true&timeoutSeconds=5", "/v1/resources/pods/objects?watch=true&timeoutSeconds=5&resourceVersion=103",
	"/v1/resources/pods/objects?watch=true&timeoutSeconds=5&facets=metadata.namespace", "/v1/resources/pods/objects?watch=true&timeoutSeconds=5&groupBy=metadata.namespace",
	"/v1/resources/pods/indexes/node/n9?watch=true&timeoutSeconds=5", "/v1/query?watch=true&timeoutSeconds=5", "/v1/query?watch=true&timeoutSeconds=5&groupBy=spec.nodeName",
	"/api/v1/pods?visible=true&watch=true&timeoutSeconds=5&allowWatchBookmarks=true", "/api/v1/pods?watch=true&timeoutSeconds=5",
	"/api/v1/pods?visible=true&watch=true&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	"/api/v1/watch/namespaces/a/pods?timeoutSeconds=5&resourceVersion=104", "/api/v1/watch/pods?visible=true&timeoutSeconds=5",
}

// answers are those of all questions and streams, where something happens in a namespace
// that is not seen: pods come and stay, or the same pod comes and goes, as often.
func answers(t *testing.T, user access.Asker, there bool) map[string]string {
	w := newGuarded(t, user)
	w.Options.RequestTimeout = time.Minute
	all := map[string]string{}
	version, n := 100, 0
	next := func(typ cache.EventType, name string) {
		if version++; !there {
			typ, name = []cache.EventType{cache.Added, cache.Deleted}[n%2], "gone"
		}
		n++
		w.pods.apply(t, typ, pod("hidden", name, "hush", "n9", version))
		synctest.Wait()
	}
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		next(cache.Added, name)
	}
	for _, q := range questions {
		rec := w.get(t, q)
		all[q] = w.plain(rec)
		for n := 0; rec.Code == http.StatusOK && strings.Contains(rec.Body.String(), `"continue":"`) && n < 5; n++ {
			token := continued.FindStringSubmatch(rec.Body.String())[1]
			at := q + "?continue=" + token
			if strings.Contains(q, "?") {
				at = q + "&continue=" + token
			}
			if strings.Contains(q, "explain") || strings.Contains(q, "/indexes/label") && n > 3 {
				break
			}
			rec = w.get(t, at)
			all[fmt.Sprint(q, " page ", n)] = w.plain(rec)
		}
	}
	recorders := map[string]*httptest.ResponseRecorder{}
	done := make(chan struct{})
	for _, q := range streams {
		rec := httptest.NewRecorder()
		recorders[q] = rec
		go func() {
			defer func() { done <- struct{}{} }()
			r := httptest.NewRequest(http.MethodGet, q, nil)
			r.Host = "localhost:8080"
			w.Handler().ServeHTTP(rec, r)
		}()
	}
	synctest.Wait()
	for n := range 6 {
		next(cache.Modified, []string{"one", "two"}[n%2])
		version++
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", fmt.Sprint("n", n), version))
		time.Sleep(time.Second / 3)
	}
	for range streams {
		<-done
	}
	for q, rec := range recorders {
		all[q] = w.plain(rec)
	}
	return all
}

var continued = regexp.MustCompile(`"continue":"([^"]+)"`)

// plain is an answer less what is drawn at random for each Store and Server.
func (w *world) plain(rec *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintln(&b, rec.Code)
	for _, name := range slices.Sorted(maps.Keys(rec.Header())) {
		fmt.Fprintln(&b, name, rec.Header()[name])
	}
	body := continued.ReplaceAllStringFunc(rec.Body.String(), func(text string) string {
		token := continued.FindStringSubmatch(text)[1]
		if raw, err := base64.RawURLEncoding.DecodeString(token); err == nil {
			return string(raw)
		}
		return text
	})
	b.WriteString(body)
	text := regexp.MustCompile(`"e":"[A-Z2-7]{26}"`).ReplaceAllString(b.String(), `"e":"epoch"`)
	for _, res := range w.caches.resources {
		if res.store != nil {
			text = strings.ReplaceAll(text, res.store.Epoch(), "epoch")
		}
	}
	return kindsTags.ReplaceAllString(text, "$1")
}

// kindsTags are made of Epochs.
var kindsTags = regexp.MustCompile(`(Etag \[W/")[0-9a-f]+-`)

// TestUnseenIsNotThere: objects of a namespace that somebody may not see change nothing
// that they are told, byte for byte.
func TestUnseenIsNotThere(t *testing.T) {
	var with, without map[string]string
	synctest.Test(t, func(t *testing.T) { with = answers(t, jane().GrantPaths(), true) })
	synctest.Test(t, func(t *testing.T) { without = answers(t, jane().GrantPaths(), false) })
	for q, got := range with {
		if d := cmp.Diff(without[q], got); d != "" {
			t.Errorf("%s (-without +with):\n%s", q, d)
		}
		if text := strings.ReplaceAll(got, "namespaces/hidden", ""); strings.Contains(text, "hush") || strings.Contains(text, "n9") {
			t.Errorf("%s tells what is hidden:\n%s", q, got)
		}
	}
	if len(with) != len(without) {
		t.Errorf("%d answers, and %d", len(with), len(without))
	}
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

// TestSummariesShowNothingHidden: what is made of objects is made of those that may be
// seen (Argo CD's CVE-2025-55190, where a summary had what its objects did not show).
func TestSummariesShowNothingHidden(t *testing.T) {
	w := newGuarded(t, jane())
	for target, want := range map[string]string{
		"/v1/resources/pods":                                            `"objects":2,`,
		"/v1/resources/nodes":                                           `"objects":0,"bytes":0,"rawBytes":0,"indexes"`,
		"/v1/resources/pods/objects?facets=spec.nodeName":               `"values":[{"value":"n1","objects":1},{"value":"n2","objects":1}]`,
		"/v1/resources/pods/objects?groupBy=spec.nodeName":              `{"group":{"spec.nodeName":"n1"},"values":{"count()":1}}`,
		"/v1/resources/pods/objects?explain=true":                       `"objects":2,"indexes":[],"candidates":2,"scanned":0,"matched":2`,
		"/v1/resources/pods/objects?explain=true&index=node:n1":         `"objects":2,"indexes":["node"],"candidates":1,"scanned":0,"matched":1`,
		"/v1/resources/pods/objects?explain=true&filter=object.x==1":    `"scanned":2,"matched":0,"filterErrors":{"count":2,"object":"a/one"`,
		"/v1/resources/pods/objects?limit=1":                            `"remainingItemCount":1`,
		"/v1/resources/pods/indexes/namespace":                          `"items":[{"value":"a","objects":2}]`,
		"/v1/resources/pods/indexes/node":                               `"items":[{"value":"n1","objects":1},{"value":"n2","objects":1}]`,
		"/v1/resources/pods/indexes":                                    `{"name":"namespace","values":1}`,
		"/v1/complete?for=resources&prefix=pods":                        `"objects":2`,
		"/v1/complete?for=values&resource=pods&path=metadata.namespace": `"items":[{"value":"a","objects":2}]`,
		"/v1/complete?for=values&resource=pods&path=metadata.name":      `"sampled":{"objects":2,"of":2}`,
		"/v1/query?explain=true":                                        `"matched":2`,
		"/v1/query?groupBy=metadata.namespace":                          `"items":[{"group":{"metadata.namespace":"a"},"values":{"count()":2}}]`,
		"/api/v1/pods?visible=true&limit=1":                             `"remainingItemCount":1`,
	} {
		rec := w.get(t, target)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s = %d %s, want %s", target, rec.Code, rec.Body, want)
		}
	}
}

// TestTagsAreOfRights: an answer that somebody had by other rights is not the one they
// get now.
func TestTagsAreOfRights(t *testing.T) {
	user := jane()
	w := newGuarded(t, user)
	for _, target := range []string{"/v1/resources/pods/objects", "/v1/query?resources=pods", "/v1/resources/pods/indexes/node", "/v1/resources/pods/indexes", "/v1/resources/pods"} {
		user.Grant(podsResource, inA)
		tag := w.get(t, target).Header().Get("ETag")
		if rec := w.get(t, target, "If-None-Match", tag); tag == "" || rec.Code != http.StatusNotModified {
			t.Errorf("%s: %d for tag %s", target, rec.Code, tag)
		}
		user.Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		if rec := w.get(t, target, "If-None-Match", tag); rec.Code != http.StatusOK {
			t.Errorf("%s by other rights: %d", target, rec.Code)
		}
	}
}

// stream asks for a stream and returns what it has written, once it waits, and its end.
func (w *world) stream(t *testing.T, target string, headers ...string) (written func() string, ended <-chan struct{}) {
	t.Helper()
	rec, done := httptest.NewRecorder(), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		r.Host = "localhost:8080"
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w.Handler().ServeHTTP(rec, r)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() string {
		synctest.Wait()
		return rec.Body.String()
	}, done
}

// TestStreamsEndWithRights: within a second after rights change, streams end, or begin
// anew with what may be seen now.
func TestStreamsEndWithRights(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/resources/pods/objects?watch=true":                     "event: ERROR\nid: 0\n",
		"/v1/resources/pods/objects?watch=true&resourceVersion=100": "event: ERROR\nid: 0\n",
		"/v1/query?resources=pods&watch=true":                       "event: RESYNC\n",
		"/v1/query?watch=true":                                      "event: RESYNC\n",
		"/api/v1/pods?visible=true&watch=true":                      `"code":410`,
		"/api/v1/namespaces/a/pods?watch=true":                      `"code":410`,
		"/api/v1/namespaces/a/pods?watch=true&resourceVersion=100":  `"code":410`,
	} {
		for name, change := range map[string]func(*accesstest.User){
			"other":   func(u *accesstest.User) { u.Grant(podsResource, cache.NewScope([]string{"b"}, nil)) },
			"none":    func(u *accesstest.User) { u.Grant(podsResource, cache.Scope{}) },
			"unknown": func(u *accesstest.User) { u.Fail(errors.New("the token was withdrawn")) },
		} {
			synctest.Test(t, func(t *testing.T) {
				user := jane()
				w := newGuarded(t, user)
				written, ended := w.stream(t, target)
				time.Sleep(3 * time.Second)
				if text := written(); strings.Contains(text, want) || strings.Contains(text, "uid-b-three") {
					t.Fatalf("%s: before rights are changed:\n%s", target, text)
				}
				change(user)
				time.Sleep(time.Second)
				text := written()
				if !strings.Contains(text, want) {
					t.Errorf("%s, %s: after a second:\n%s", target, name, text)
				}
				if name != "unknown" && strings.HasPrefix(target, "/v1/query") {
					if (name == "other") != strings.Contains(text, "uid-b-three") {
						t.Errorf("%s, %s: what may be seen now:\n%s", target, name, text)
					}
					return
				}
				select {
				case <-ended:
				default:
					t.Errorf("%s, %s: the stream goes on:\n%s", target, name, text)
				}
			})
		}
	}
}

// TestStreamsGoOnWithOtherRights: changes of rights that are not about what a stream
// shows do not end it.
func TestStreamsGoOnWithOtherRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := jane()
		w := newGuarded(t, user)
		for _, target := range []string{"/v1/resources/pods/objects?watch=true", "/v1/query?resources=pods&watch=true", "/api/v1/pods?visible=true&watch=true", "/api/v1/namespaces/a/pods?watch=true"} {
			written, ended := w.stream(t, target)
			synctest.Wait()
			for range 5 {
				user.Grant(nodesResource, cache.NewScope([]string{"a"}, nil))
				time.Sleep(time.Second)
			}
			select {
			case <-ended:
				t.Errorf("%s has ended:\n%s", target, written())
			default:
			}
		}
		// A strict watch of one namespace is of that alone.
		written, ended := w.stream(t, "/api/v1/namespaces/a/pods?watch=true")
		user.Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		time.Sleep(2 * time.Second)
		select {
		case <-ended:
			t.Errorf("a watch of namespace a has ended:\n%s", written())
		default:
		}
	})
}

// TestGroupsFollowRights: groups are told anew within a second, however long they take.
func TestGroupsFollowRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := jane()
		w := newGuarded(t, user)
		written, _ := w.stream(t, "/v1/query?resources=pods&watch=true&groupBy=metadata.namespace")
		time.Sleep(3 * time.Second)
		user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
		time.Sleep(time.Second)
		text := written()
		_, last, ok := strings.Cut(text, `"metadata.namespace":"a"`)
		if !ok || !strings.Contains(last, `"metadata.namespace":"b"`) || strings.Contains(last, `"metadata.namespace":"a"`) {
			t.Errorf("groups:\n%s", text)
		}
	})
}

// TestResumedByOtherRights: a client that comes back with other rights begins anew: what
// it has may be more than it may see.
func TestResumedByOtherRights(t *testing.T) {
	ids := regexp.MustCompile(`(?m)^id: (\S+)$`)
	for _, target := range []string{"/v1/resources/pods/objects?watch=true", "/v1/query?resources=pods&watch=true"} {
		synctest.Test(t, func(t *testing.T) {
			user := jane()
			w := newGuarded(t, user)
			written, _ := w.stream(t, target)
			found := ids.FindAllStringSubmatch(written(), -1)
			if len(found) == 0 {
				t.Fatalf("%s: no id:\n%s", target, written())
			}
			last := found[len(found)-1][1]
			again, _ := w.stream(t, target, "Last-Event-ID", last)
			if text := again(); strings.Contains(text, "RESYNC") || strings.Contains(text, "uid-a-one") {
				t.Errorf("%s resumed by the same rights:\n%s", target, text)
			}
			for _, scope := range []cache.Scope{cache.NewScope([]string{"b"}, nil), cache.WholeScope()} {
				user.Grant(podsResource, scope)
				again, _ = w.stream(t, target, "Last-Event-ID", last)
				if text := again(); !strings.Contains(text, "RESYNC") || !strings.Contains(text, "uid-b-three") {
					t.Errorf("%s resumed by other rights:\n%s", target, text)
				}
			}
		})
	}
}

// TestManyTokens: a reader's continue tokens outlive all lists that another begins, and
// are good for nobody else.
func TestManyTokens(t *testing.T) {
	var user access.Asker
	w := newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
	})
	for _, target := range []string{"/v1/resources/pods/objects?limit=1", "/v1/query?resources=pods&limit=1", "/api/v1/namespaces/a/pods?limit=1"} {
		user = jane()
		token := continued.FindStringSubmatch(w.get(t, target).Body.String())[1]
		user = accesstest.NewUser("mallory").Grant(podsResource, inA)
		for range 260 {
			w.get(t, target)
		}
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusGone {
			t.Errorf("%s: jane's token is good for mallory: %d %s", target, rec.Code, rec.Body)
		}
		user = jane()
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "uid-a-two") {
			t.Errorf("%s: jane's token: %d %s", target, rec.Code, rec.Body)
		}
		user = jane().Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusGone {
			t.Errorf("%s: a token of other rights: %d %s", target, rec.Code, rec.Body)
		}
	}
}

// TestMissingNamespacesAreNotNamed: that there is no data of a namespace is told to those
// who may see something of it.
func TestMissingNamespacesAreNotNamed(t *testing.T) {
	w := newGuarded(t, jane())
	w.pods.status.Missing = []cache.MissingNamespace{{Namespace: "hush", State: cache.Forbidden, Reason: "hush"}}
	w.pods.status.Reason = "pods of hush are forbidden"
	for _, target := range []string{"/v1/resources", "/v1/resources/pods", "/v1/resources/pods/objects", "/v1/query", "/api/v1/pods?visible=true"} {
		rec := w.get(t, target)
		if text := fmt.Sprint(rec.Header(), rec.Body); rec.Code != http.StatusOK || strings.Contains(text, "hush") {
			t.Errorf("%s: %d %s", target, rec.Code, text)
		}
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
