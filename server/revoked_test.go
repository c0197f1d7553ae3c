package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestRevokedWhileAResourceIsGone: a stream about several resources follows the rights
// of its reader, too, after one that it names is gone.
func TestRevokedWhileAResourceIsGone(t *testing.T) {
	for name, change := range map[string]func(*accesstest.User){
		"other":   func(u *accesstest.User) { u.Grant(podsResource, cache.NewScope([]string{"b"}, nil)) },
		"none":    func(u *accesstest.User) { u.Grant(podsResource, cache.Scope{}) },
		"unknown": func(u *accesstest.User) { u.Fail(errors.New("the token has expired")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			user := jane().Grant(nodesResource, cache.WholeScope())
			w := newGuarded(t, user)
			written, ended := w.stream(t, "/v1/query?resources=pods,nodes&watch=true")
			time.Sleep(3 * time.Second)
			w.caches.remove(w.nodes)
			time.Sleep(3 * time.Second)
			before := written()
			change(user)
			time.Sleep(1500 * time.Millisecond)
			text := strings.TrimPrefix(written(), before)
			if !strings.Contains(text, "event: RESYNC\n") || !strings.Contains(text, `"resource":"pods"`) {
				t.Errorf("%s: what was told of pods is not void:\n%s", name, text)
			}
			if (name == "other") != strings.Contains(text, "uid-b-three") {
				t.Errorf("%s: what may be seen now:\n%s", name, text)
			}
			if name != "unknown" {
				w.pods.apply(t, cache.Modified, pod("a", "one", "late", "n1", 120))
				time.Sleep(time.Second)
				if text := written(); strings.Contains(text, `"late"`) {
					t.Errorf("%s: goes on with what may not be seen:\n%s", name, text)
				}
				return
			}
			select {
			case <-ended:
			default:
				t.Errorf("the stream of nobody goes on:\n%s", text)
			}
		})
	}
}

// TestTokensOfRevokedResources: the further pages of an answer about many resources are
// for who may see all that the first one was made of.
func TestTokensOfRevokedResources(t *testing.T) {
	for name, resource := range map[string]cache.Scope{"whole": cache.WholeScope(), "part": inA} {
		user := jane().Grant(nodesResource, resource).Grant(podsResource, cache.WholeScope())
		w := newGuarded(t, user)
		const target = "/v1/query?resources=*&limit=1"
		token := continued.FindStringSubmatch(w.get(t, target).Body.String())[1]
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusOK {
			t.Fatalf("%s: by the same rights: %d %s", name, rec.Code, rec.Body)
		}
		user.Grant(nodesResource, cache.Scope{})
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusGone {
			t.Errorf("%s: after nodes were revoked: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// later asks in a goroutine, for what is answered once something else has happened.
func (w *world) later(target string) (rec *httptest.ResponseRecorder, done <-chan struct{}) {
	answered := make(chan struct{})
	rec = httptest.NewRecorder()
	go func() {
		defer close(answered)
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = "localhost:8080"
		w.Handler().ServeHTTP(rec, r)
	}()
	return rec, answered
}

// busy has somebody else take all processors, until they are given back. begin lets those
// who wait for one begin, but not read anything: for that they wait again.
func (w *world) busy(t *testing.T) (begin, give func()) {
	t.Helper()
	others := w.turns.Ask("others")
	t.Cleanup(others.Done)
	taken := make(chan func(), 2*cache.Workers())
	take := func() {
		g, err := others.Take(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		taken <- g
	}
	for range cache.Workers() {
		take()
	}
	begin = func() {
		go take()
		synctest.Wait()
		(<-taken)()
		synctest.Wait()
	}
	return begin, func() {
		for range cache.Workers() {
			(<-taken)()
		}
	}
}

// TestRevokedWhileWaiting: who waits for a version is answered by the rights that they
// have when it comes.
func TestRevokedWhileWaiting(t *testing.T) {
	for target, codes := range map[string][2]int{
		"/v1/resources/pods/objects?resourceVersion=105&timeout=20s":            {http.StatusGone, http.StatusForbidden},
		"/v1/resources/pods/objects/a/one?resourceVersion=105&timeout=20s":      {http.StatusForbidden, http.StatusForbidden},
		"/v1/resources/pods/objects?resourceVersion=105&timeout=20s&watch=true": {http.StatusGone, http.StatusForbidden},
	} {
		for n, scope := range []cache.Scope{cache.NewScope([]string{"b"}, nil), {}} {
			synctest.Test(t, func(t *testing.T) {
				user := jane()
				w := newGuarded(t, user)
				w.Options.RequestTimeout = time.Minute
				rec, done := w.later(target)
				time.Sleep(5 * time.Second)
				user.Grant(podsResource, scope)
				w.pods.apply(t, cache.Modified, pod("a", "one", "late", "n1", 105))
				<-done
				if rec.Code != codes[n] || strings.Contains(rec.Body.String(), "late") {
					t.Errorf("%s by rights %d: %d %s", target, n, rec.Code, rec.Body)
				}
			})
		}
	}
}

// TestRevokedWhileWaitingInVain: who waits for a version that does not come, and loses
// their rights meanwhile, is not told how far the copy is.
func TestRevokedWhileWaitingInVain(t *testing.T) {
	for _, target := range []string{
		"/v1/resources/pods/objects?resourceVersion=105&timeout=9s", "/v1/resources/pods/objects/a/one?resourceVersion=105&timeout=9s",
		"/v1/resources/pods/objects?resourceVersion=105&timeout=9s&watch=true", "/api/v1/namespaces/a/pods?resourceVersion=105",
		"/api/v1/namespaces/a/pods/one?resourceVersion=105",
	} {
		synctest.Test(t, func(t *testing.T) {
			user := jane()
			w := newGuarded(t, user)
			w.Options.RequestTimeout = time.Minute
			rec, done := w.later(target)
			time.Sleep(2 * time.Second)
			user.Grant(podsResource, cache.Scope{})
			<-done
			if rec.Code != http.StatusForbidden {
				t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
			}
		})
	}
}

// TestRevokedWhileScanning: who waits for processors, behind others, is answered by the
// rights that they have when they got them.
func TestRevokedWhileScanning(t *testing.T) {
	const scans = "filter=object.spec.nodeName.startsWith('n')"
	for target, codes := range map[string][2]int{
		"/v1/resources/pods/objects?" + scans:                          {http.StatusGone, http.StatusForbidden},
		"/v1/resources/pods/objects?output=csv&" + scans:               {http.StatusGone, http.StatusForbidden},
		"/v1/resources/pods/objects?groupBy=spec.nodeName&" + scans:    {http.StatusGone, http.StatusForbidden},
		"/v1/resources/pods/objects?explain=true&" + scans:             {http.StatusGone, http.StatusForbidden},
		"/v1/query?" + scans:                                           {http.StatusGone, http.StatusGone},
		"/v1/query?resources=pods&" + scans:                            {http.StatusGone, http.StatusForbidden},
		"/v1/search?q=web&" + scans:                                    {http.StatusGone, http.StatusGone},
		"/api/v1/namespaces/a/pods?fieldSelector=status.phase=Running": {http.StatusForbidden, http.StatusForbidden},
		"/api/v1/pods?visible=true&fieldSelector=status.phase=Running": {http.StatusForbidden, http.StatusForbidden},
	} {
		for n, scope := range []cache.Scope{cache.NewScope([]string{"b"}, nil), {}} {
			synctest.Test(t, func(t *testing.T) {
				user := jane()
				w := newGuarded(t, user)
				w.Options.RequestTimeout = time.Minute
				begin, give := w.busy(t)
				rec, done := w.later(target)
				time.Sleep(time.Second)
				begin()
				time.Sleep(2 * time.Second) // what rights it began with is good for a second
				select {
				case <-done:
					t.Fatalf("%s does not wait: %d %s", target, rec.Code, rec.Body)
				default:
				}
				user.Grant(podsResource, scope)
				give()
				<-done
				if text := rec.Body.String(); rec.Code != codes[n] || strings.Contains(text, "uid-a") || strings.Contains(text, `"one"`) {
					t.Errorf("%s by rights %d: %d %s", target, n, rec.Code, text)
				}
			})
		}
	}
}

// TestGroupsComputedByOtherRights: nor are groups told that were computed by rights of
// before.
func TestGroupsComputedByOtherRights(t *testing.T) {
	const scanned = "/v1/query?resources=pods&watch=true&filter=object.spec.nodeName.startsWith('n')&"
	for _, target := range []string{scanned + "groupBy=metadata.namespace", scanned + "facets=metadata.namespace"} {
		synctest.Test(t, func(t *testing.T) {
			user := jane()
			w := newGuarded(t, user)
			written, _ := w.stream(t, target)
			time.Sleep(3 * time.Second)
			before := written()
			begin, give := w.busy(t)
			w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 110)) // groups are computed anew
			w.pods.apply(t, cache.Added, pod("a", "late", "web", "n1", 111))
			time.Sleep(time.Second)
			begin()
			time.Sleep(3 * time.Second)
			user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
			give()
			time.Sleep(3 * time.Second)
			text := strings.TrimPrefix(written(), before)
			if _, groups, ok := strings.Cut(text, `"type":"GROUPS"`); ok && strings.Contains(groups, `"a"`) {
				t.Errorf("%s:\n%s", target, text)
			}
			if _, facets, ok := strings.Cut(text, `"type":"FACETS"`); ok && strings.Contains(facets, `"value":"a"`) {
				t.Errorf("%s:\n%s", target, text)
			}
		})
	}
}

// TestRevokedWhileResuming: a stream that waits for where its client is begins with what
// may be seen after that.
func TestRevokedWhileResuming(t *testing.T) {
	for target, ids := range map[string][2]string{
		"/v1/resources/pods/objects?watch=true":     {"105", "\nid: 0\n"},
		"/v1/query?resources=nodes,pods&watch=true": {"nodes=105,pods=100", "event: RESYNC\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			user := jane().Grant(nodesResource, cache.WholeScope())
			w := newGuarded(t, user)
			scope := inA
			last := ids[0] + markSeparator + scope.Digest()
			written, _ := w.stream(t, target, "Last-Event-ID", last)
			time.Sleep(time.Second)
			if text := written(); strings.Contains(text, "RESYNC") || strings.Contains(text, "id: ") {
				t.Fatalf("%s does not wait:\n%s", target, text)
			}
			user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
			w.pods.apply(t, cache.Modified, pod("a", "one", "late", "n1", 105))
			w.nodes.apply(t, cache.Modified, node("n1", 105))
			w.pods.apply(t, cache.Modified, pod("a", "two", "late", "n1", 106))
			time.Sleep(2 * time.Second)
			if text := written(); strings.Contains(text, `"late"`) || !strings.Contains(text, ids[1]) {
				t.Errorf("%s:\n%s", target, text)
			}
		})
	}
}

// TestPartlySeenResource: who sees a part of a resource is not told how informerd fares
// with the rest of it.
func TestPartlySeenResource(t *testing.T) {
	for name, scope := range map[string]cache.Scope{"part": inA, "nothing": {}} {
		w := newGuarded(t, accesstest.NewUser("jane").Grant(podsResource, scope))
		w.pods.spec.Namespaces = []string{"a", "hush", "hush-*"}
		w.pods.set(cache.Stale, `User "informerd-hush" cannot ask https://10.9.8.7`)
		for _, target := range []string{"/v1/resources", "/v1/resources/pods"} {
			rec := w.get(t, target)
			if text := fmt.Sprint(rec.Header(), rec.Body); rec.Code != http.StatusOK || strings.Contains(text, "hush") || strings.Contains(text, "10.9") {
				t.Errorf("%s, %s: %d %s", name, target, rec.Code, text)
			}
		}
		var item resourceItem
		w.getJSON(t, "/v1/resources/pods", &item)
		if item.Bytes != 0 || (item.RawBytes > 0) != (name == "part") || len(item.Namespaces) != map[string]int{"part": 1}[name] {
			t.Errorf("%s: %+v", name, item)
		}
	}
}

// TestNamespaceNotWatched: that there are no objects of a namespace is not said where
// nobody looks.
func TestNamespaceNotWatched(t *testing.T) {
	w := newWorld(t)
	rule := w.pods.spec
	rule.Namespaces = []string{"a"}
	w.caches.resources[2] = newResource(t, rule, cache.Live)
	w.caches.resources[2].replace(t, "100", pod("a", "one", "web", "n1", 10))
	for _, target := range []string{
		podObjects + "?namespace=b", podObjects + "?namespace=b&watch=true", podObjects + "?namespace=b&groupBy=kind", podObjects + "?namespace=b&groupBy=kind&watch=true",
		"/v1/query?resources=pods&namespace=b", "/v1/query?resources=pods&namespace=b&watch=true", "/v1/query?resources=pods&namespace=b&facets=kind",
		"/v1/query?resources=pods&namespace=b&groupBy=kind", "/v1/query?resources=pods&namespace=b&groupBy=kind&watch=true", "/v1/query?resources=pods&namespace=b&explain=true",
	} {
		s := wantStatus(t, w.get(t, target), http.StatusNotFound, "NotFound", "namespace b")
		if s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != "NotWatched" {
			t.Errorf("%s: %+v", target, s.Details)
		}
	}
	rec := w.get(t, podObjects+"?namespace=a&namespace=b")
	if warning := rec.Header().Get("Warning"); rec.Code != http.StatusOK || !strings.Contains(warning, "b (not watched)") {
		t.Errorf("of a and b: %d, warning %q", rec.Code, warning)
	}
	for _, target := range []string{podObjects + "?namespace=b*", "/v1/query?resources=pods&namespace=b*"} {
		if rec := w.get(t, target); rec.Code != http.StatusOK {
			t.Errorf("%s: %d", target, rec.Code)
		}
	}
	rec = w.get(t, "/v1/query?resources=pods&namespace=a&namespace=b")
	if without := rec.Header().Get("Informerd-Unanswered"); rec.Code != http.StatusOK || without != "pods of namespaces b" {
		t.Errorf("of a and b of many: %d without %q", rec.Code, without)
	}
	// Of several resources the others answer.
	var both kindsAnswered
	w.getJSON(t, "/v1/query?resources=pods,nodes&namespace=b", &both)
	if states := both.states(); states != "nodes:live pods:live!" || !strings.Contains(both.Metadata.Resources[1].Reason, "does not hold that namespace") {
		t.Errorf("of pods and nodes: %s, %+v", states, both.Metadata.Resources)
	}
	rec = w.get(t, "/v1/query?resources=pods,nodes&namespace=b&watch=true&timeoutSeconds=1")
	if text := rec.Body.String(); !strings.Contains(text, `{"type":"STATE","resource":"pods","state":"live","reason":"pods of namespace b are not here`) {
		t.Errorf("a stream of pods and nodes:\n%s", text)
	}
}

// stranger is somebody in all clusters but one.
type stranger struct {
	*accesstest.User
	in string
}

func (s *stranger) Stranger(_ context.Context, cluster string) bool { return cluster == s.in }

// TestStrangerIsToldOfNoCluster: who is nobody in a cluster is not told that there is one.
func TestStrangerIsToldOfNoCluster(t *testing.T) {
	w := newGuarded(t, &stranger{jane(), "hush"})
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true, Reachable: true}, {Name: "hush", Discovered: true, Reachable: true}}
	w.pods.spec.Cluster, w.nodes.spec.Cluster, w.secrets.spec.Cluster, w.events.spec.Cluster = "east", "hush", "hush", "hush"
	for target, code := range map[string]int{
		"/v1/resources": 200, "/v1/resources?cluster=north": 400, "/v1/resources/pods": 200, "/v1/resources/pods/objects": 200,
		"/v1/query": 200, "/v1/query?resources=pods": 200, "/v1/query?resources=nodes": 404, "/v1/query?cluster=north": 400,
		"/v1/complete?for=paths&resource=pods": 200, "/api/v1/pods": 404,
	} {
		rec := w.get(t, target)
		if text := rec.Body.String(); rec.Code != code || strings.Contains(text, "hush") || strings.Contains(text, `"nodes"`) && code == 200 {
			t.Errorf("%s: %d %s", target, rec.Code, text)
		}
	}
}
