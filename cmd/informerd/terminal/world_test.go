package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server"
)

// TestMain keeps the tests from the informerd and the kubeconfig of whoever runs them.
func TestMain(m *testing.M) {
	for _, name := range []string{serverEnv, "NO_COLOR"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("KUBECONFIG", "/nonexistent")
	goleak.VerifyTestMain(m)
}

// held is a resource in memory: a real store, live.
type held struct {
	spec  cache.Spec
	store *cache.Store
	mu    sync.Mutex // guards state
	state cache.State
}

func (h *held) Spec() cache.Spec { return h.spec }

func (h *held) View() *cache.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &cache.View{Spec: h.spec, State: h.state, Since: then, Proof: time.Now()}
	if h.state.Readable() {
		v.Hold(h.store)
	}
	return v
}

func (h *held) set(state cache.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = state
}

func (h *held) Status() cache.Status {
	s := cache.Status{View: *h.View()}
	if reader := s.Reader(cache.WholeScope()); reader != nil {
		s.Objects, s.Bytes, s.RawBytes = reader.Size()
		s.ResourceVersion, s.Indexes = reader.Version(), reader.IndexNames()
	}
	return s
}

// apply enters a change of an object in JSON.
func (h *held) apply(tb testing.TB, typ cache.EventType, object string) {
	tb.Helper()
	o, err := h.store.Decode([]byte(object), h.spec.GVR.GroupVersion().String(), h.spec.Kind)
	if err != nil {
		tb.Fatal(err)
	}
	h.store.Apply("", typ, o)
}

// world is what a server serves, by the names of resources.
type world struct {
	resources []*held
	clusters  []string // none: one without a name
	url       string
}

func (w *world) Lookup(cluster, name string) (server.Resource, error) {
	if cluster == "" && len(w.clusters) > 1 {
		return nil, &cache.InvalidError{Parameter: "cluster", Message: "there are several, name one"}
	}
	for _, h := range w.resources {
		s := h.spec
		if slices.Contains(append([]string{s.Name(), s.GVR.Resource, s.Singular, s.Kind}, s.ShortNames...), name) && (cluster == "" || cluster == s.Cluster) {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%w: %q; did you mean pods?", cache.ErrUnknownResource, name)
}

func (w *world) Resource(name cache.Resource) (server.Resource, bool) {
	for _, h := range w.resources {
		if h.spec.Resource == name {
			return h, true
		}
	}
	return nil, false
}

func (w *world) Resources() (all []server.Resource) {
	for _, h := range w.resources {
		all = append(all, h)
	}
	return all
}

func (w *world) Clusters() []cache.ClusterStatus {
	var all []cache.ClusterStatus
	for _, name := range append(slices.Clone(w.clusters), "")[:max(1, len(w.clusters))] {
		all = append(all, cache.ClusterStatus{Name: name, Discovered: true, Reachable: true, Server: "https://127.0.0.1:6443"})
	}
	return all
}

func (w *world) SnapshotStatus() cache.SnapshotStatus { return cache.SnapshotStatus{} }

// of is the resource of a name.
func (w *world) of(name string) *held {
	r, _ := w.Lookup("", name)
	return r.(*held)
}

// add makes a live resource of the objects in JSON.
func (w *world) add(tb testing.TB, group, resource, kind string, namespaced bool, short string, objects ...string) {
	tb.Helper()
	spec := cache.Spec{
		Resource: cache.Resource{Cluster: w.adding(), GVR: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}},
		Kind:     kind, Singular: strings.ToLower(kind), ShortNames: []string{short}, Namespaced: namespaced, Watch: true,
	}
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	h := &held{spec: spec, store: store, state: cache.Live}
	var all []*cache.Object
	for _, text := range objects {
		o, err := store.Decode([]byte(text), spec.GVR.GroupVersion().String(), kind)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, o)
	}
	store.Replace("", all, "100000")
	w.resources = append(w.resources, h)
}

// adding is the cluster that resources are added to.
func (w *world) adding() string {
	if len(w.clusters) == 0 {
		return ""
	}
	return w.clusters[len(w.clusters)-1]
}

// serve runs a server of w until the test ends.
func (w *world) serve(tb testing.TB) {
	tb.Helper()
	s, err := server.New(server.Options{Addr: "127.0.0.1:0", Caches: w})
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Errorf("Run() = %v", err)
		}
	})
	w.url = "http://" + s.Addr()
}

func pod(namespace, name, node, phase string, version int, owner string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":"pod-%s-%s","resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"}%s},`+
		`"spec":{"nodeName":%q,"containers":[{"name":"main","image":"registry.example/web:1","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}],`+
		`"volumes":[{"name":"settings","configMap":{"name":"settings"}}]},"status":{"phase":%q}}`,
		name, namespace, namespace, name, version, owner, node, phase)
}

func ownedBy(kind, name, uid string) string {
	return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":%q,"controller":true}]`, kind, name, uid)
}

// newWorld is a small shop: a Deployment with a ReplicaSet of two pods which mount a
// ConfigMap, one that is not there, a pod alone in another namespace, and a node.
func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := newShop(tb, nil, nil)
	w.serve(tb)
	return w
}

// newShop has more pods and ReplicaSets, and does not serve yet.
func newShop(tb testing.TB, pods, replicaSets []string) *world {
	tb.Helper()
	w := &world{}
	owner := ownedBy("ReplicaSet", "web-1", "rs")
	w.add(tb, "", "configmaps", "ConfigMap", true, "cm",
		`{"metadata":{"name":"one","namespace":"shop","uid":"c1","resourceVersion":"1"},"data":{"a":"1","b":"2"}}`,
		`{"metadata":{"name":"two","namespace":"shop","uid":"c2","resourceVersion":"2"},"data":{"a":"1","b":"3"}}`)
	w.add(tb, "", "nodes", "Node", false, "no",
		`{"metadata":{"name":"n1","uid":"n1","resourceVersion":"3"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}`)
	w.add(tb, "", "pods", "Pod", true, "po", append(pods,
		pod("shop", "web-1-a", "n1", "Running", 4, owner), pod("shop", "web-1-b", "n1", "Pending", 5, owner), pod("team", "alone", "n1", "Running", 6, ""))...)
	w.add(tb, "apps", "deployments", "Deployment", true, "deploy",
		`{"metadata":{"name":"web","namespace":"shop","uid":"d","resourceVersion":"7","generation":2},"spec":{"replicas":2},"status":{"observedGeneration":1,"readyReplicas":1,"conditions":[{"type":"Available","status":"True"}]}}`)
	w.add(tb, "apps", "replicasets", "ReplicaSet", true, "rs", append(replicaSets,
		`{"metadata":{"name":"web-1","namespace":"shop","uid":"rs","resourceVersion":"8"`+ownedBy("Deployment", "web", "d")+`},"spec":{"replicas":2},"status":{"readyReplicas":1}}`)...)
	return w
}

// newTwins are two clusters, with a ConfigMap of the same name and a node of another.
func newTwins(tb testing.TB) *world {
	tb.Helper()
	w := &world{}
	for i, name := range []string{"east", "west"} {
		w.clusters = append(w.clusters, name)
		w.add(tb, "", "configmaps", "ConfigMap", true, "cm", fmt.Sprintf(`{"metadata":{"name":"one","namespace":"shop","uid":"c%d","resourceVersion":"1"},"data":{"a":"%[1]d"}}`, i))
		w.add(tb, "", "nodes", "Node", false, "no", fmt.Sprintf(`{"metadata":{"name":"n-%s","uid":"n%s","resourceVersion":"3"}}`, name, name))
	}
	slices.SortFunc(w.resources, func(a, b *held) int { return a.spec.Resource.Compare(b.spec.Resource) })
	w.serve(tb)
	return w
}

// result is what a command did.
type result struct {
	out, err string
	code     int
}

// run runs a command against w.
func (w *world) run(tb testing.TB, args ...string) result {
	tb.Helper()
	return runCommand(tb.Context(), append(args, "--server", w.url)...)
}

func runCommand(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "informerd", SilenceErrors: true, SilenceUsage: true}
	Commands(root)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	err := root.ExecuteContext(ctx)
	r := result{out: out.String(), err: errs.String()}
	if err != nil {
		code, message, known := Outcome(err)
		if !known {
			code, message = -1, err.Error()
		}
		r.code, r.err = code, r.err+message
	}
	return r
}

// writeKubeconfig is a kubeconfig whose context is of a namespace.
func writeKubeconfig(tb testing.TB, server, namespace string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: ctx, clusters: [{name: c, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}],
users: [{name: u, user: {token: secret}}], contexts: [{name: ctx, context: {cluster: c, user: u, namespace: ` + namespace + `}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// then is when all resources became what they are.
var then = time.Now()
