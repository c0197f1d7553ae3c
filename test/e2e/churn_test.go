package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/informerd/informerd/test/e2e/harness"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// kind is one kind that churn writes to.
type kind struct {
	gvr        schema.GroupVersionResource
	apiVersion string
	name       string
	namespaced bool
	status     bool // has a status subresource that nobody else writes
	// body is what an object has beside metadata.
	body func(r *rand.Rand) map[string]any
}

// builtinKinds are kinds that no controller writes to.
func builtinKinds() []kind {
	return []kind{
		{gvr: configMaps, apiVersion: "v1", name: "ConfigMap", namespaced: true, body: func(r *rand.Rand) map[string]any {
			return map[string]any{"data": map[string]any{"text": text(r), "empty": ""}}
		}},
		{gvr: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, apiVersion: "v1", name: "Secret", namespaced: true, body: func(r *rand.Rand) map[string]any {
			return map[string]any{"stringData": map[string]any{"password": text(r)}}
		}},
		{gvr: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, apiVersion: "v1", name: "PersistentVolume", body: func(r *rand.Rand) map[string]any {
			return map[string]any{"spec": map[string]any{
				"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"},
				"hostPath": map[string]any{"path": "/tmp"}, "storageClassName": "none",
			}}
		}},
		{gvr: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, apiVersion: "apps/v1", name: "Deployment", namespaced: true, body: func(r *rand.Rand) map[string]any {
			labels := map[string]any{"app": "churn"}
			return map[string]any{"spec": map[string]any{
				"replicas": int64(r.IntN(3)), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": fmt.Sprintf("registry.example/app:%d", r.IntN(3))}}},
				},
			}}
		}},
	}
}

// customKind is the kind of a harness.CRD.
func customKind(d harness.CRD) kind {
	return kind{
		gvr: d.GVR(), apiVersion: d.GVR().GroupVersion().String(), name: d.Kind, namespaced: !d.Cluster, status: true,
		body: func(r *rand.Rand) map[string]any {
			return map[string]any{"spec": map[string]any{
				"color": colors[r.IntN(len(colors))], "size": int64(r.IntN(4)), "ratio": r.Float64(), "text": text(r), "big": int64(9007199254740993),
				"nested": []any{map[string]any{"a": text(r)}, nil, []any{}, map[string]any{}},
			}}
		},
	}
}

var colors = []string{"red", "green", "blue", "ultra/violet", "weiß"}

// text is a string of the sort that breaks encoders.
func text(r *rand.Rand) string {
	samples := []string{
		"", "plain", `quotes " and \ backslashes`, "line\nbreaks\r\nand\ttabs", "<html>&amp;\u2028\u2029", "grüße, 世界, 🚀",
		"\u0000\u001f\u007f\u0080\ufffd", `{"a":[1,2,{"b":"}"}]}`, "%41%2F%zz", strings.Repeat("long ", 200),
	}
	return fmt.Sprintf("%s#%d", samples[r.IntN(len(samples))], r.IntN(1000))
}

// churner changes objects at random until it has done enough or is stopped. Each
// of its writers has names of its own, so that it knows what is there.
type churner struct {
	cluster    *harness.Cluster
	kinds      []kind
	namespaces []string
	seed       uint64
	// unlike has each change leave another object than any before: two changes of labels may
	// lead back to where the first began.
	unlike bool

	changes atomic.Int64 // that were tried, if unlike
	done    atomic.Int64
	failed  atomic.Int64
	pause   time.Duration // between two operations of one writer
}

func newChurner(tb testing.TB, c *harness.Cluster, kinds []kind, spaces ...string) *churner {
	tb.Helper()
	for _, ns := range spaces {
		createNamespace(tb, c, ns)
	}
	// One seed for all: a failure names it, the data depends on nothing else.
	return &churner{cluster: c, kinds: kinds, namespaces: spaces, seed: rand.Uint64()}
}

// createNamespace makes a namespace, which stays.
func createNamespace(tb testing.TB, c *harness.Cluster, name string) {
	tb.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	err := harness.Poll(time.Minute, func() error {
		_, err := c.Dynamic.Resource(namespaces).Create(tb.Context(), ns, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			have, gerr := c.Dynamic.Resource(namespaces).Get(tb.Context(), name, metav1.GetOptions{})
			if gerr == nil && have.GetDeletionTimestamp() == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		tb.Fatalf("create namespace %s: %v", name, err)
	}
}

// run makes n operations with some writers at once, until ctx ends.
func (c *churner) run(ctx context.Context, writers, n int) {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, uint64(w)))
			wr := &writer{churner: c, rand: r, name: fmt.Sprintf("w%d", w), there: map[string]bool{}}
			for range n / writers {
				if ctx.Err() != nil {
					return
				}
				wr.step(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(c.pause):
				}
			}
		})
	}
	wg.Wait()
}

// start runs in the background; stop ends it and waits.
func (c *churner) start(ctx context.Context, writers int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(ctx, writers, 1<<30)
	}()
	return func() { cancel(); <-done }
}

func (c *churner) check(tb testing.TB) {
	tb.Helper()
	tb.Logf("%d changes made, %d refused, seed %d", c.done.Load(), c.failed.Load(), c.seed)
	if c.done.Load() == 0 {
		tb.Error("the storm changed nothing")
	}
}

// writer is one goroutine of a churner.
type writer struct {
	*churner
	rand  *rand.Rand
	name  string
	there map[string]bool // objects that exist, by kind/namespace/name
}

// step makes one operation. Errors are counted only: the API server may be away
// or refuse, and what is true afterwards is asked of it at the end.
func (w *writer) step(ctx context.Context) {
	k := w.kinds[w.rand.IntN(len(w.kinds))]
	ns := ""
	if k.namespaced {
		ns = w.namespaces[w.rand.IntN(len(w.namespaces))]
	}
	name := fmt.Sprintf("%s-%d", w.name, w.rand.IntN(12))
	if !k.namespaced {
		name = w.namespaces[0] + "-" + name
	}
	id := k.name + "/" + ns + "/" + name
	client := dynamic.ResourceInterface(w.cluster.Dynamic.Resource(k.gvr))
	if k.namespaced {
		client = w.cluster.Dynamic.Resource(k.gvr).Namespace(ns)
	}
	var err error
	switch p := w.rand.IntN(100); {
	case !w.there[id]:
		err = w.create(ctx, client, k, name)
		if err == nil || apierrors.IsAlreadyExists(err) {
			w.there[id] = true
		}
	case p < 35:
		err = w.label(ctx, client, name)
	case p < 50:
		err = w.annotate(ctx, client, name)
	case p < 65 && k.status:
		err = w.patch(ctx, client, name, map[string]any{"status": map[string]any{"phase": colors[w.rand.IntN(3)], "note": text(w.rand)}}, "status")
	case p < 75:
		err = w.patch(ctx, client, name, k.body(w.rand))
	case p < 82:
		err = w.finalize(ctx, client, name)
		w.there[id] = err != nil && !apierrors.IsNotFound(err)
	case p < 92: // delete and create: another UID under the same name
		err = client.Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil {
			err = w.create(ctx, client, k, name)
		}
		w.there[id] = err == nil || apierrors.IsAlreadyExists(err)
	default:
		err = client.Delete(ctx, name, metav1.DeleteOptions{})
		w.there[id] = err != nil && !apierrors.IsNotFound(err)
	}
	if err != nil {
		w.failed.Add(1)
		return
	}
	w.done.Add(1)
}

func (w *writer) create(ctx context.Context, client dynamic.ResourceInterface, k kind, name string) error {
	o := &unstructured.Unstructured{Object: k.body(w.rand)}
	o.SetAPIVersion(k.apiVersion)
	o.SetKind(k.name)
	o.SetName(name)
	o.SetLabels(w.labels())
	_, err := client.Create(ctx, o, metav1.CreateOptions{})
	return err
}

func (w *writer) labels() map[string]string {
	return map[string]string{
		"app":               fmt.Sprintf("app-%d", w.rand.IntN(4)),
		"example.com/empty": "",
		"tier":              colors[w.rand.IntN(3)],
	}
}

// label changes labels; one of them comes and goes.
func (w *writer) label(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	labels := map[string]any{}
	for k, v := range w.labels() {
		labels[k] = v
	}
	if w.rand.IntN(2) == 0 {
		labels["example.com/empty"] = nil
	}
	return w.patch(ctx, client, name, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func (w *writer) annotate(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	long := strings.Repeat("0123456789", w.rand.IntN(2000))
	return w.patch(ctx, client, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"example.com/note": text(w.rand), "example.com/long": long,
	}}})
}

// finalize deletes an object that a finalizer holds, changes it while it is
// being deleted, and lets it go.
func (w *writer) finalize(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	set := func(finalizers []any) error {
		return w.patch(ctx, client, name, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	}
	if err := set([]any{"example.com/hold"}); err != nil {
		return err
	}
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := w.annotate(ctx, client, name); err != nil {
		return err
	}
	return set(nil)
}

func (w *writer) patch(ctx context.Context, client dynamic.ResourceInterface, name string, change map[string]any, subresources ...string) error {
	if w.unlike {
		err := unstructured.SetNestedField(change, fmt.Sprint(w.changes.Add(1)), "metadata", "annotations", "example.com/change")
		if err != nil {
			return err
		}
	}
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	return err
}

// createConfigMap creates one and returns it as the server answered.
func createConfigMap(tb testing.TB, c *harness.Cluster, namespace, name string, labels map[string]string, data map[string]any) *unstructured.Unstructured {
	tb.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	o.SetName(name)
	o.SetLabels(labels)
	created, err := c.Dynamic.Resource(configMaps).Namespace(namespace).Create(tb.Context(), o, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return created
}

// patchConfigMap changes one and returns it.
func patchConfigMap(tb testing.TB, c *harness.Cluster, namespace, name string, change string) *unstructured.Unstructured {
	tb.Helper()
	patched, err := c.Dynamic.Resource(configMaps).Namespace(namespace).
		Patch(tb.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return patched
}

func deleteConfigMap(tb testing.TB, c *harness.Cluster, namespace, name string) {
	tb.Helper()
	// Cleanups have no context of their test any more.
	if err := c.Dynamic.Resource(configMaps).Namespace(namespace).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		tb.Error(err)
	}
}

// selected are the objects the API server holds of gvr, as informerd must show
// them, that keep accepts; nil accepts all.
func selected(tb testing.TB, c *harness.Cluster, gvr schema.GroupVersionResource, keep func(harness.Object) bool) func() (map[string]harness.Object, error) {
	return func() (map[string]harness.Object, error) {
		list, err := c.List(tb.Context(), gvr, "")
		if err != nil {
			return nil, err
		}
		all := map[string]harness.Object{}
		for _, o := range list.Items {
			if o = harness.Kept(o); keep == nil || keep(o) {
				all[o.Key()] = o
			}
		}
		return all, nil
	}
}
