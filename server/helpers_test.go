package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeResource is a real Store under a state the test chooses.
type fakeResource struct {
	spec  cache.Spec
	store *cache.Store // modified under mu

	mu     sync.Mutex // guards all below
	status cache.Status
	views  []*cache.View // if any, what is taken, one after the other and again
	taken  int           // how many Views were taken, with counts or without
	ahead  func(cache.Query) *cache.View
}

func (f *fakeResource) Ahead(_ context.Context, _ cache.Scope, q cache.Query) *cache.View {
	if f.ahead == nil {
		return nil
	}
	return f.ahead(q)
}

func (f *fakeResource) Spec() cache.Spec { return f.spec }

func (f *fakeResource) View() *cache.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewLocked()
}

func (f *fakeResource) viewLocked() *cache.View {
	f.taken++
	if len(f.views) > 0 {
		return f.views[(f.taken-1)%len(f.views)]
	}
	v := f.status.View
	v.Spec = f.spec
	if v.State.Readable() {
		v.Hold(f.store)
	}
	return &v
}

func (f *fakeResource) Status() cache.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.View = *f.viewLocked()
	copied := &s.View
	if len(f.views) == 0 {
		copied = new(cache.View).Hold(f.store)
	}
	if reader := copied.Reader(cache.WholeScope()); reader != nil {
		s.Objects, s.Bytes, s.RawBytes = reader.Size()
		s.ResourceVersion, s.Indexes = reader.Version(), reader.IndexNames()
	}
	if f.store != nil {
		stats := f.store.Stats()
		s.Events, s.Subscribers = stats.Events, stats.Subscribers
	}
	return s
}

func (f *fakeResource) set(state cache.State, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.State, f.status.Reason = state, reason
}

func (f *fakeResource) apply(t testing.TB, typ cache.EventType, object string) {
	t.Helper()
	f.store.Apply("", typ, f.decode(t, object))
}

func (f *fakeResource) decode(t testing.TB, object string) *cache.Object {
	t.Helper()
	o, err := f.store.Decode([]byte(object), f.apiVersion(), f.spec.Kind)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (f *fakeResource) apiVersion() string { return f.spec.GVR.GroupVersion().String() }

// replace is a full list at version.
func (f *fakeResource) replace(t testing.TB, version string, objects ...string) {
	t.Helper()
	var objs []*cache.Object
	for _, o := range objects {
		objs = append(objs, f.decode(t, o))
	}
	f.store.Replace("", objs, version)
}

type fakeCaches struct {
	mu        sync.Mutex // guards resources and clusters where a test changes them while a server runs
	resources []*fakeResource
	clusters  []cache.ClusterStatus
	away      atomic.Bool // no API server answers
	snapshot  cache.SnapshotStatus
}

func (f *fakeCaches) known() []*fakeResource {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resources
}

// remove takes a resource out, as when its definition is deleted.
func (f *fakeCaches) remove(gone *fakeResource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources = slices.DeleteFunc(slices.Clone(f.resources), func(r *fakeResource) bool { return r == gone })
}

func (f *fakeCaches) Lookup(cluster, name string) (Resource, error) {
	if cluster != "" && !slices.ContainsFunc(f.clusters, func(c cache.ClusterStatus) bool { return c.Name == cluster }) {
		return nil, &cache.InvalidError{Parameter: "cluster", Message: "there is no cluster " + cluster}
	}
	for _, r := range f.known() {
		if name != r.spec.Name() || len(f.clusters) > 1 && r.spec.Cluster != cluster {
			continue
		}
		if !r.spec.Watch {
			return r, fmt.Errorf("%w: %s is left out by the configuration", cache.ErrNotWatched, name)
		}
		return r, nil
	}
	for _, c := range f.clusters {
		if err := c.NotDiscovered(); err != nil && (cluster == "" || cluster == c.Name) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %q; did you mean pods?", cache.ErrUnknownResource, name)
}

func (f *fakeCaches) Resource(name cache.Resource) (Resource, bool) {
	for _, r := range f.known() {
		if r.spec.Resource == name {
			return r, true
		}
	}
	return nil, false
}

func (f *fakeCaches) Resources() []Resource {
	var all []Resource
	for _, r := range f.known() {
		all = append(all, r)
	}
	return all
}

// know adds a cluster, while a server runs, too.
func (f *fakeCaches) know(c cache.ClusterStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = append(f.clusters, c)
}

func (f *fakeCaches) Clusters() []cache.ClusterStatus {
	f.mu.Lock()
	clusters := slices.Clone(f.clusters)
	f.mu.Unlock()
	if f.away.Load() {
		for n := range clusters {
			clusters[n].Reachable = false
		}
	}
	return clusters
}
func (f *fakeCaches) SnapshotStatus() cache.SnapshotStatus { return f.snapshot }

// then is a moment for golden files.
var then = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newResource(t testing.TB, spec cache.Spec, state cache.State) *fakeResource {
	t.Helper()
	f := &fakeResource{spec: spec, status: cache.Status{View: cache.View{State: state, Since: then}}}
	f.spec.Watch = state != cache.Unwatched
	if f.spec.Watch {
		store, err := cache.NewStore(spec, cache.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		f.store = store
	}
	return f
}

func spec(group, version, resource, kind string, namespaced bool) cache.Spec {
	return cache.Spec{
		Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}},
		Kind:     kind, Singular: strings.ToLower(kind), Namespaced: namespaced, Watch: true,
	}
}

// pod is the JSON of a pod; its image is always the same.
func pod(namespace, name, app, node string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":"uid-%s-%s","resourceVersion":"%d","labels":{"app":%q}},`+
		`"spec":{"nodeName":%q,"containers":[{"name":"main","image":"registry.example/shop/web:1.2"}]},"status":{"phase":"Running"}}`,
		name, namespace, namespace, name, version, app, node)
}

func node(name string, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":%[1]q,"resourceVersion":"%d"}}`, name, version)
}

func secret(name string, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","uid":%[1]q,"resourceVersion":"%d"}}`, name, version)
}

func configMap(name string, version, size int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"a","uid":"uid-%s","resourceVersion":"%d"},"data":{"k":%q}}`,
		name, name, version, strings.Repeat("0123456789abcdef", size/16))
}

// world is a server over pods (live, three of them at version 100), nodes
// (cluster scope, live), secrets (forbidden) and events (unwatched).
type world struct {
	*Server
	caches                       *fakeCaches
	pods, nodes, secrets, events *fakeResource
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	pods := spec("", "v1", "pods", "Pod", true)
	pods.ShortNames = []string{"po"}
	pods.Indexes = map[string]string{"node": "spec.nodeName", "image": "spec.containers[*].image"}
	w := &world{
		pods:    newResource(t, pods, cache.Live),
		nodes:   newResource(t, spec("", "v1", "nodes", "Node", false), cache.Live),
		secrets: newResource(t, spec("", "v1", "secrets", "Secret", true), cache.Forbidden),
		events:  newResource(t, spec("", "v1", "events", "Event", true), cache.Unwatched),
	}
	w.secrets.status.Reason = "secrets is forbidden"
	w.pods.status.Proof, w.nodes.status.Proof = time.Now(), time.Now()
	w.pods.replace(t, "100", pod("a", "one", "web", "n1", 10), pod("a", "two", "db", "n2", 20), pod("b", "three", "web", "n1", 30))
	w.nodes.replace(t, "100", `{"metadata":{"name":"n1","uid":"n1","resourceVersion":"5"}}`)
	w.caches = &fakeCaches{
		resources: []*fakeResource{w.events, w.nodes, w.pods, w.secrets},
		clusters:  []cache.ClusterStatus{{Name: "", Discovered: true, Server: "https://127.0.0.1:6443", Reachable: true}},
		snapshot:  cache.SnapshotStatus{Enabled: true},
	}
	opts := Options{Addr: "127.0.0.1:0", Caches: w.caches, Web: page()}
	for _, c := range change {
		c(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	w.Server = s
	return w
}

func page() fs.FS {
	return fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "app.js": {Data: []byte("poll()")}}
}

// get asks without a network. Headers come in pairs.
func (w *world) get(t testing.TB, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return w.do(t, http.MethodGet, target, headers...)
}

func (w *world) do(t testing.TB, method, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8080"
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, r)
	return rec
}

// getJSON asks, wants code 200 and decodes the answer.
func (w *world) getJSON(t testing.TB, target string, into any, headers ...string) http.Header {
	t.Helper()
	rec := w.get(t, target, headers...)
	if rec.Code != http.StatusOK {
		t.Fatalf("GET %s = %d %s", target, rec.Code, rec.Body)
	}
	decode(t, rec.Body, into)
	return rec.Header()
}

func decode(t testing.TB, r io.Reader, into any) {
	t.Helper()
	d := json.NewDecoder(r)
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// podList is what tests read of a list.
type podList struct {
	Kind, APIVersion string
	Metadata         metav1.ListMeta
	Items            []struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Spec     map[string]any
	}
}

func (l podList) names() string {
	var names []string
	for _, i := range l.Items {
		names = append(names, i.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// wantStatus checks that an answer is a well-formed Status.
func wantStatus(t testing.TB, rec *httptest.ResponseRecorder, code int, reason metav1.StatusReason, message string) metav1.Status {
	t.Helper()
	var s metav1.Status
	if rec.Code != code {
		t.Fatalf("code = %d, want %d: %s", rec.Code, code, rec.Body)
	}
	if got := rec.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q", got)
	}
	decode(t, rec.Body, &s)
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" || int(s.Code) != code || s.Reason != reason {
		t.Errorf("status = %+v, want reason %s", s, reason)
	}
	if !strings.Contains(s.Message, message) {
		t.Errorf("message = %q, want it to contain %q", s.Message, message)
	}
	return s
}
