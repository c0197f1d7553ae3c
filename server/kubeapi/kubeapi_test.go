package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resource is a real Store under a state the test chooses.
type resource struct {
	spec    cache.Spec
	state   cache.State
	missing []cache.MissingNamespace

	mu    sync.Mutex // guards store and proof
	store *cache.Store
	proof time.Time
}

func (r *resource) Spec() cache.Spec { return r.spec }
func (r *resource) View() *cache.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &cache.View{Spec: r.spec, State: r.state, Missing: r.missing, Proof: r.proof}
	if v.State.Readable() {
		v.Hold(r.store)
	}
	return v
}

// proved is a proof of what is held now.
func (r *resource) proved(at time.Time) {
	r.mu.Lock()
	r.proof = at
	r.mu.Unlock()
	r.store.Proved()
}

func (r *resource) decode(t testing.TB, object string) *cache.Object {
	t.Helper()
	o, err := r.store.Decode([]byte(object), r.spec.GVR.GroupVersion().String(), r.spec.Kind)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (r *resource) apply(t testing.TB, typ cache.EventType, object string) {
	t.Helper()
	r.store.Apply("", typ, r.decode(t, object))
}

func (r *resource) replace(t testing.TB, version string, objects ...string) {
	t.Helper()
	var objs []*cache.Object
	for _, o := range objects {
		objs = append(objs, r.decode(t, o))
	}
	r.store.Replace("", objs, version)
}

// world is an API over pods (three, at version 100), nodes, queues (custom) and
// leases, which are not watched.
type world struct {
	*API
	t         testing.TB
	pods      *resource
	nodes     *resource
	queues    *resource
	leases    *resource
	resources []*resource
	clusters  []cache.ClusterStatus
	upstream  *fakeUpstream
	modes     Modes
	asker     access.Asker
	server    *httptest.Server
}

func (w *world) Resource(r cache.Resource) (Resource, bool) {
	for _, known := range w.resources {
		if known.spec.Resource == r {
			return known, true
		}
	}
	return nil, false
}

func (w *world) Resources() []Resource {
	var all []Resource
	for _, r := range w.resources {
		all = append(all, r)
	}
	return all
}

func (w *world) Clusters() []cache.ClusterStatus { return w.clusters }

func newResource(t testing.TB, group, version, name, kind string, namespaced bool) *resource {
	t.Helper()
	spec := cache.Spec{
		Resource: cache.Resource{Cluster: "default", GVR: schema.GroupVersionResource{Group: group, Version: version, Resource: name}},
		Kind:     kind, Singular: strings.ToLower(kind), Namespaced: namespaced, Watch: true,
	}
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return &resource{spec: spec, state: cache.Live, store: store}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t:        t,
		pods:     newResource(t, "", "v1", "pods", "Pod", true),
		nodes:    newResource(t, "", "v1", "nodes", "Node", false),
		queues:   newResource(t, "messaging.example.com", "v1", "queues", "Queue", true),
		leases:   newResource(t, "coordination.k8s.io", "v1", "leases", "Lease", true),
		clusters: []cache.ClusterStatus{{Name: "default", Discovered: true, Reachable: true, Version: "v1.36.3"}},
		upstream: &fakeUpstream{},
		asker:    access.Everyone(),
	}
	w.pods.spec.ShortNames, w.pods.spec.Categories = []string{"po"}, []string{"all"}
	w.queues.spec.CRDUID = "crd"
	w.leases.spec.Watch, w.leases.state, w.leases.store = false, cache.Unwatched, nil
	w.resources = []*resource{w.queues, w.leases, w.nodes, w.pods}
	w.pods.replace(t, "100", pod("a", "one", "web", "n1", 10), pod("a", "two", "db", "n2", 20), pod("b", "three", "web", "n1", 30))
	w.nodes.replace(t, "100", `{"metadata":{"name":"n1","uid":"n1","resourceVersion":"5"}}`)
	w.queues.replace(t, "100")
	stopping, stop := context.WithCancel(context.Background())
	w.API = New(Options{
		Caches:   w,
		Upstream: func(string) Upstream { return w.upstream.orNil() },
		Modes:    func() Modes { return w.modes },
		Admit:    func(context.Context, Class) (func(), error) { return func() {}, nil },
		Stopping: stopping,
	})
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		stop()
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// ask is Serve for the world's asker.
func (w *world) ask(out http.ResponseWriter, r *http.Request) error {
	return w.Serve(out, r.WithContext(access.With(r.Context(), w.asker)))
}

// serve renders errors as the server does.
func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	err := w.ask(out, r)
	var status *apierrors.StatusError
	var cut *CutError
	switch {
	case err == nil:
	case errors.As(err, &cut):
		panic(http.ErrAbortHandler)
	case errors.As(err, &status):
		out.WriteHeader(int(status.ErrStatus.Code))
		_ = json.NewEncoder(out).Encode(status.ErrStatus)
	case r.Context().Err() == nil:
		w.t.Errorf("GET %s: %v", r.URL, err)
	}
}

// get asks without a network. Headers come in pairs.
func (w *world) get(target string, headers ...string) *httptest.ResponseRecorder {
	return w.do(http.MethodGet, target, headers...)
}

func (w *world) do(method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.serve(rec, r)
	return rec
}

// into wants code 200 and decodes the answer.
func (w *world) into(v any, target string, headers ...string) http.Header {
	w.t.Helper()
	rec := w.get(target, headers...)
	if rec.Code != http.StatusOK {
		w.t.Fatalf("GET %s = %d %s", target, rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil {
		w.t.Fatalf("GET %s: %v in %s", target, err, rec.Body)
	}
	return rec.Header()
}

// wantStatus wants an error.
func (w *world) wantStatus(rec *httptest.ResponseRecorder, code int, reason metav1.StatusReason, message string) {
	w.t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil || rec.Code != code || s.Reason != reason || !strings.Contains(s.Message, message) {
		w.t.Errorf("answer is %d %s, want %d %s ...%s", rec.Code, rec.Body, code, reason, message)
	}
}

// podList is what tests read of a list.
type podList struct {
	Kind, APIVersion string
	Metadata         metav1.ListMeta
	Items            []struct {
		Kind, APIVersion string
		Metadata         metav1.ObjectMeta
		Spec             map[string]any
	}
}

func (l podList) names() string {
	var names []string
	for _, i := range l.Items {
		names = append(names, i.Metadata.Name)
	}
	return strings.Join(names, " ")
}

func pod(namespace, name, app, node string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":"uid-%s-%s","resourceVersion":"%d",`+
		`"creationTimestamp":%q,"labels":{"app":%q}},"spec":{"nodeName":%q,"containers":[{"name":"main","image":"web:1"}]},"status":{"phase":"Running"}}`,
		name, namespace, namespace, name, version, born.Format(time.RFC3339), app, node)
}

// born is when all pods were created: the same ones are the same bytes at any time.
var born = time.Date(1991, 2, 3, 4, 5, 6, 0, time.UTC)

// ageOfPods is theirs, as tables show it.
func ageOfPods() string { return duration.HumanDuration(time.Since(born)) }

// fakeUpstream answers what a test gives it, and notes what it was asked.
type fakeUpstream struct {
	mu     sync.Mutex // guards all below
	answer func(r *http.Request) *http.Response
	asked  []string
	own    int // requests made with informerd's credentials
	passed []*http.Request
}

func (u *fakeUpstream) orNil() Upstream {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answer == nil {
		return nil
	}
	return u
}

func (u *fakeUpstream) set(answer func(r *http.Request) *http.Response) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

func (u *fakeUpstream) Get(ctx context.Context, uri string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://upstream"+uri, nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	u.mu.Lock()
	u.own++
	u.mu.Unlock()
	return u.respond(r)
}

func (u *fakeUpstream) respond(r *http.Request) (*http.Response, error) {
	u.mu.Lock()
	answer := u.answer
	u.asked = append(u.asked, r.Method+" "+r.URL.RequestURI())
	u.mu.Unlock()
	if resp := answer(r); resp != nil {
		return resp, nil
	}
	return nil, errors.New("connection refused")
}

// RoundTrip is that of Passthrough.
func (u *fakeUpstream) RoundTrip(r *http.Request) (*http.Response, error) {
	u.mu.Lock()
	u.passed = append(u.passed, r)
	u.mu.Unlock()
	return u.respond(r)
}

func (u *fakeUpstream) Passthrough() (*url.URL, http.RoundTripper) {
	return &url.URL{Scheme: "https", Host: "upstream"}, u
}

func (u *fakeUpstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.asked...)
}

// jsonResponse is an answer with headers in pairs.
func jsonResponse(code int, body string, headers ...string) *http.Response {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", typeJSON)
	for i := 0; i+1 < len(headers); i += 2 {
		rec.Header().Set(headers[i], headers[i+1])
	}
	rec.WriteHeader(code)
	_, _ = rec.WriteString(body)
	return rec.Result()
}
