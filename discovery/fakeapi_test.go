package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeAPI is an API server: discovery, and watches on CRDs and APIServices.
type fakeAPI struct {
	*httptest.Server
	crds, services *fakeObjects

	mu       sync.Mutex // guards all below
	api      answer
	version  string
	legacy   bool
	down     bool                   // cuts every connection
	unsure   bool                   // it is an informerd that has not heard yet what there is
	status   map[string]int         // by path: answer with this
	body     map[string]string      // by path: answer with this
	requests []string               // "GET /apis 304"
	headers  map[string]http.Header // of the last request, by path
}

func newFakeAPI(t *testing.T, lines ...string) *fakeAPI {
	f := &fakeAPI{
		api: says(lines...), version: "v1.36.3",
		status: map[string]int{}, body: map[string]string{}, headers: map[string]http.Header{},
		crds: newFakeObjects(), services: newFakeObjects(),
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.crds.cut()
		f.services.cut()
		f.Server.Close()
	})
	return f
}

// edit changes the server's state.
func (f *fakeAPI) edit(change func(*fakeAPI)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeAPI) says(lines ...string) { f.edit(func(f *fakeAPI) { f.api = says(lines...) }) }

// setDown makes the server cut all connections, or serve again.
func (f *fakeAPI) setDown(down bool) {
	f.edit(func(f *fakeAPI) { f.down = down })
	if down {
		f.crds.cut()
		f.services.cut()
		f.CloseClientConnections()
	}
}

// count is how often request was answered so far.
func (f *fakeAPI) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, request) {
			n++
		}
	}
	return n
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		panic(http.ErrAbortHandler)
	}
	f.headers[r.URL.Path] = r.Header
	code := http.StatusOK
	defer func() { f.requests = append(f.requests, fmt.Sprintf("GET %s %d", r.URL.Path, code)) }()
	if c := f.status[r.URL.Path]; c != 0 {
		code = c
		http.Error(w, "no", c)
		return
	}
	if b, ok := f.body[r.URL.Path]; ok {
		w.Header().Set("Content-Type", strings.Split(acceptDiscovery, ",")[0])
		_, _ = w.Write([]byte(b))
		return
	}
	switch r.URL.Path {
	case "/version":
		writeJSON(w, map[string]string{"gitVersion": f.version})
	case crdsPath:
		code = f.unlocked(func() int { return f.crds.serve(w, r) })
	case servicesPath:
		code = f.unlocked(func() int { return f.services.serve(w, r) })
	default:
		code = f.discover(w, r)
	}
}

func (f *fakeAPI) unlocked(serve func() int) int {
	f.mu.Unlock()
	defer f.mu.Lock()
	return serve()
}

func (f *fakeAPI) discover(w http.ResponseWriter, r *http.Request) int {
	if f.unsure {
		w.Header().Set(IncompleteHeader, "incomplete")
	}
	if f.legacy {
		return f.discoverLegacy(w, r)
	}
	var list apidiscovery.APIGroupDiscoveryList
	list.Kind, list.APIVersion = "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"
	groups := append([]group{{name: "apiregistration.k8s.io", versions: []version{{name: "v1"}}}}, f.api.groups...)
	for _, g := range groups {
		if (g.name == "") != (r.URL.Path == "/api") {
			continue
		}
		list.Items = append(list.Items, aggregatedGroup(g))
	}
	body, _ := json.Marshal(list)
	sum := sha256.Sum256(body)
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_, _ = w.Write(body)
	return http.StatusOK
}

func aggregatedGroup(g group) apidiscovery.APIGroupDiscovery {
	out := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
	for _, v := range g.versions {
		av := apidiscovery.APIVersionDiscovery{Version: v.name, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		if v.err != nil {
			av.Freshness = apidiscovery.DiscoveryFreshnessStale
		}
		for _, s := range v.resources {
			av.Resources = append(av.Resources, apidiscovery.APIResourceDiscovery{
				Resource: s.name, Scope: apidiscovery.ScopeNamespace, Verbs: s.verbs,
				ResponseKind: &metav1.GroupVersionKind{Group: g.name, Version: v.name, Kind: s.kind},
				Subresources: []apidiscovery.APISubresourceDiscovery{{Subresource: "status", Verbs: s.verbs}},
			})
		}
		out.Versions = append(out.Versions, av)
	}
	return out
}

func (f *fakeAPI) discoverLegacy(w http.ResponseWriter, r *http.Request) int {
	core := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
	for _, g := range f.api.groups {
		var item metav1.APIGroup
		item.Name = g.name
		for i, v := range g.versions {
			gv := metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + v.name, Version: v.name}
			path := "/apis/" + g.name + "/" + v.name
			if g.name == "" {
				core.Versions = append(core.Versions, v.name)
				path = "/api/" + v.name
			}
			if i == 0 {
				item.PreferredVersion = gv
			}
			item.Versions = append([]metav1.GroupVersionForDiscovery{gv}, item.Versions...) // preferred last
			if r.URL.Path == path {
				return writeLegacyVersion(w, v)
			}
		}
		if g.name != "" {
			groups.Groups = append(groups.Groups, item)
		}
	}
	switch r.URL.Path {
	case "/api":
		writeJSON(w, core)
	case "/apis":
		writeJSON(w, groups)
	default:
		http.NotFound(w, r)
		return http.StatusNotFound
	}
	return http.StatusOK
}

func writeLegacyVersion(w http.ResponseWriter, v version) int {
	if v.err != nil {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return http.StatusServiceUnavailable
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}}
	for _, s := range v.resources {
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: s.name, Kind: s.kind, Verbs: s.verbs, Namespaced: true},
			metav1.APIResource{Name: s.name + "/status", Kind: s.kind, Verbs: s.verbs})
	}
	writeJSON(w, list)
	return http.StatusOK
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// fakeObjects serves list and watch of one resource.
type fakeObjects struct {
	mu       sync.Mutex // guards all below
	changed  *sync.Cond
	objects  map[string]map[string]any
	events   []fakeEvent // all there ever were; the resourceVersion is the index + 1
	oldest   int         // events below are expired
	noStream bool        // rejects streaming lists
	status   int         // refuses with this
	epoch    int         // a watch ends when it changes
	watches  []string    // queries
	lists    int
}

type fakeEvent struct {
	kind   string
	object map[string]any
}

func newFakeObjects() *fakeObjects {
	o := &fakeObjects{objects: map[string]map[string]any{}}
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *fakeObjects) edit(change func(*fakeObjects)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
	o.changed.Broadcast()
}

func (o *fakeObjects) lastWatch() (n int, query string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n = len(o.watches); n > 0 {
		query = o.watches[n-1]
	}
	return n, query
}

// cut ends all watches in the middle.
func (o *fakeObjects) cut() { o.edit(func(o *fakeObjects) { o.epoch++ }) }

func (o *fakeObjects) set(name, uid string, generation int64, condition string, spec map[string]any) {
	o.edit(func(o *fakeObjects) {
		kind := "MODIFIED"
		if o.objects[name] == nil {
			kind = "ADDED"
		}
		object := map[string]any{
			"metadata": map[string]any{
				"name": name, "uid": uid, "generation": generation, "resourceVersion": strconv.Itoa(len(o.events) + 1),
				"annotations": map[string]any{"a": "b"},
			},
			"spec":   spec,
			"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}},
		}
		o.objects[name] = object
		o.events = append(o.events, fakeEvent{kind, object})
	})
}

func (o *fakeObjects) delete(name string) {
	o.edit(func(o *fakeObjects) {
		o.events = append(o.events, fakeEvent{"DELETED", o.objects[name]})
		delete(o.objects, name)
	})
}

// setCRD sets an established CRD that serves versions.
func (o *fakeObjects) setCRD(groupName, plural, uid string, generation int64, versions ...string) {
	var all []any
	for _, v := range versions {
		all = append(all, map[string]any{
			"name": v, "served": true, "schema": map[string]any{"openAPIV3Schema": strings.Repeat("x", 1000)},
			"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
		})
	}
	o.set(plural+"."+groupName, uid, generation, "Established", map[string]any{
		"group": groupName, "names": map[string]any{"plural": plural, "listKind": "ListOf" + plural}, "versions": all,
	})
}

func (o *fakeObjects) setService(groupName, version string, remote bool) {
	spec := map[string]any{"group": groupName, "version": version}
	if remote {
		spec["service"] = map[string]any{"namespace": "ns", "name": "svc"}
	}
	o.set(version+"."+groupName, "u", 0, "Available", spec)
}

func (o *fakeObjects) serve(w http.ResponseWriter, r *http.Request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := r.URL.Query()
	switch {
	case o.status != 0:
		http.Error(w, "no", o.status)
		return o.status
	case q.Get("watch") == "":
		o.lists++
		list := map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(len(o.events))}}
		items := []any{}
		for _, object := range o.objects {
			items = append(items, object)
		}
		list["items"] = items
		writeJSON(w, list)
		return http.StatusOK
	case o.noStream && q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Code: 422, Reason: metav1.StatusReasonInvalid,
			Message: "sendInitialEvents: Forbidden"})
		return http.StatusUnprocessableEntity
	}
	o.watches = append(o.watches, r.URL.RawQuery)
	o.watch(w, r)
	return http.StatusOK
}

func (o *fakeObjects) watch(w http.ResponseWriter, r *http.Request) {
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		w.(http.Flusher).Flush()
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	next := len(o.events)
	if rv, err := strconv.Atoi(r.URL.Query().Get("resourceVersion")); err == nil {
		if next = rv; next < o.oldest {
			send("ERROR", metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
			return
		}
	} else {
		for _, object := range o.objects {
			send("ADDED", object)
		}
		send("BOOKMARK", map[string]any{"metadata": map[string]any{
			"resourceVersion": strconv.Itoa(next), "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
		}})
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // wakes the loop below when the client leaves
		select {
		case <-r.Context().Done():
			o.edit(func(*fakeObjects) {})
		case <-stop:
		}
	}()
	for epoch := o.epoch; r.Context().Err() == nil; o.changed.Wait() {
		for ; next < len(o.events); next++ {
			send(o.events[next].kind, o.events[next].object)
		}
		if o.epoch != epoch {
			panic(http.ErrAbortHandler)
		}
	}
}
