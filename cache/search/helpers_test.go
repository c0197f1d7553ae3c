package search

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resource is a real Store in a state the test chooses.
type resource struct {
	spec  cache.Spec
	state cache.State
	store *cache.Store
}

func (r *resource) Spec() cache.Spec     { return r.spec }
func (r *resource) Store() *cache.Store  { return r.store }
func (r *resource) Status() cache.Status { return cache.Status{Spec: r.spec, State: r.state} }

// world is a cluster of live resources, and its Search.
type world struct {
	tb        testing.TB
	resources []*resource
	version   int
	search    *Search
}

func newWorld(tb testing.TB, opts Options) *world {
	tb.Helper()
	w := &world{tb: tb}
	for _, line := range []string{"pods Pod po", "configmaps ConfigMap cm", "secrets Secret", "services Service svc", "namespaces Namespace ns",
		"deployments.apps Deployment deploy", "clusterroles.rbac.authorization.k8s.io ClusterRole"} {
		f := strings.Fields(line)
		spec := cache.Spec{Resource: cache.Resource{GVR: schema.ParseGroupResource(f[0]).WithVersion("v1")}, Kind: f[1], Singular: strings.ToLower(f[1]),
			ShortNames: f[2:], Namespaced: f[1] != "Namespace" && f[1] != "ClusterRole", Watch: true}
		store, err := cache.NewStore(spec, cache.StoreOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		store.Replace("", nil, "1")
		w.resources = append(w.resources, &resource{spec, cache.Live, store})
	}
	w.search = w.newSearch(opts)
	return w
}

func (w *world) newSearch(opts Options) *Search {
	w.tb.Helper()
	s, err := New(func() []follow.Resource {
		var all []follow.Resource
		for _, r := range w.resources {
			all = append(all, r)
		}
		return all
	}, opts)
	if err != nil {
		w.tb.Fatal(err)
	}
	return s
}

func (w *world) resource(name string) *resource {
	w.tb.Helper()
	for _, r := range w.resources {
		if r.spec.Name() == name {
			return r
		}
	}
	w.tb.Fatalf("no resource %s", name)
	return nil
}

// put applies an object: body is JSON, its identity is added.
func (w *world) put(name, id, body string) {
	w.tb.Helper()
	w.resource(name).store.Apply("", cache.Modified, w.decode(name, id, body))
}

func (w *world) delete(name, id string) {
	w.tb.Helper()
	w.resource(name).store.Apply("", cache.Deleted, w.decode(name, id, "{}"))
}

func (w *world) decode(name, id, body string) *cache.Object {
	w.tb.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		w.tb.Fatalf("%s: %v", body, err)
	}
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	w.version++
	meta["uid"], meta["resourceVersion"] = name+":"+id, fmt.Sprint(100+w.version)
	if namespace, n, ok := strings.Cut(id, "/"); ok {
		meta["namespace"], meta["name"] = namespace, n
	} else {
		meta["name"] = id
	}
	o["metadata"] = meta
	raw, err := json.Marshal(o)
	if err != nil {
		w.tb.Fatal(err)
	}
	decoded, err := w.resource(name).store.Decode(raw, "v1", "X")
	if err != nil {
		w.tb.Fatal(err)
	}
	return decoded
}

// find asks and returns the hits as "resource id", the best first.
func (w *world) find(question string) ([]string, *Answer) {
	w.tb.Helper()
	terms, err := Parse(question)
	if err != nil {
		w.tb.Fatalf("Parse(%q): %v", question, err)
	}
	a, err := w.search.Find(w.tb.Context(), Query{Terms: terms, Limit: 1000, Highlights: true})
	if err != nil {
		w.tb.Fatalf("Find(%q): %v", question, err)
	}
	var hits []string
	for _, h := range a.Hits {
		hits = append(hits, h.Resource+" "+h.Key.String())
	}
	return hits, a
}
