// Package traffic changes objects all the time, the same way for the same seed as
// far as the cluster lets it. What becomes of a change is none of its business:
// the history is read from etcd.
package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/informerd/informerd/test/soak/history"
)

const (
	// Count is the annotation that holds the number of the change that made an
	// object what it is. It grows over all objects.
	Count = "soak.example.com/count"
	// names is how many objects each writer has of each kind in each namespace.
	names = 10
	// patience is how long a change may take.
	patience = 5 * time.Second
)

var tiers = []string{"red", "green", "blue"}

// Options of Traffic.
type Options struct {
	Clients    []dynamic.Interface // each of one API server
	Resources  []history.Resource
	Namespaces []string
	Seed       uint64
	Writers    int
	// Pause is between two changes of one writer.
	Pause time.Duration
}

// Traffic writes.
type Traffic struct {
	Options
	count atomic.Int64
	done  atomic.Int64
	lost  atomic.Int64
	gate  sync.RWMutex // held for reading while something is written
}

// New returns a Traffic.
func New(opts Options) *Traffic { return &Traffic{Options: opts} }

// Done is how many changes were made, and how many failed.
func (t *Traffic) Done() (done, failed int64) { return t.done.Load(), t.lost.Load() }

// Hold waits until nothing is being written, and keeps it so until it is
// released.
func (t *Traffic) Hold() (release func()) {
	t.gate.Lock()
	return t.gate.Unlock
}

// Prepare makes the namespaces, with the service account that pods need.
func (t *Traffic) Prepare(ctx context.Context) error {
	for _, ns := range t.Namespaces {
		if err := MakeNamespace(ctx, t.Clients[0], ns); err != nil {
			return err
		}
	}
	return nil
}

// MakeNamespace makes a namespace unless it is there.
func MakeNamespace(ctx context.Context, client dynamic.Interface, name string) error {
	for _, o := range []struct {
		resource, kind, namespace, name string
	}{{"namespaces", "Namespace", "", name}, {"serviceaccounts", "ServiceAccount", name, "default"}} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion("v1")
		u.SetKind(o.kind)
		u.SetName(o.name)
		var c dynamic.ResourceInterface = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: o.resource})
		if o.namespace != "" {
			c = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: o.resource}).Namespace(o.namespace)
		}
		if _, err := c.Create(ctx, u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", o.kind, o.name, err)
		}
	}
	return nil
}

// Run writes until ctx ends.
func (t *Traffic) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for n := range t.Writers {
		wg.Go(func() {
			w := &writer{Traffic: t, number: n, rand: rand.New(rand.NewPCG(t.Seed, uint64(n))), there: map[string]bool{}}
			for ctx.Err() == nil {
				t.gate.RLock()
				w.step(ctx)
				t.gate.RUnlock()
				select {
				case <-ctx.Done():
				case <-time.After(t.Pause):
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// writer has objects of its own, so that it knows what is there.
type writer struct {
	*Traffic
	number int
	rand   *rand.Rand
	there  map[string]bool
}

func (w *writer) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Everything is drawn before anything is done, so that what fails changes
	// nothing of what follows.
	resource := w.Resources[w.rand.IntN(len(w.Resources))]
	namespace := w.Namespaces[w.rand.IntN(len(w.Namespaces))]
	name := fmt.Sprintf("w%d-%d", w.number, w.rand.IntN(names))
	dice, client := w.rand.IntN(100), w.Clients[w.rand.IntN(len(w.Clients))]
	body := w.body(resource, name)
	id := resource.Name() + " " + namespace + "/" + name
	c := dynamic.ResourceInterface(client.Resource(resource.GVR))
	if resource.Namespaced {
		c = client.Resource(resource.GVR).Namespace(namespace)
	}
	var err error
	switch {
	case !w.there[id]:
		err = w.create(ctx, c, body)
		w.there[id] = err == nil
	case dice < 70:
		if err = w.change(ctx, c, body); apierrors.IsNotFound(err) {
			w.there[id] = false
		}
	case dice < 85: // another object under the same name
		if err = remove(ctx, c, name); err == nil {
			err = w.create(ctx, c, body)
		}
		w.there[id] = err == nil
	default:
		err = remove(ctx, c, name)
		w.there[id] = err != nil
	}
	if err != nil {
		w.lost.Add(1)
		return
	}
	w.done.Add(1)
}

func (w *writer) body(r history.Resource, name string) *unstructured.Unstructured {
	n := w.count.Add(1)
	text := fmt.Sprintf("%s %d %x", name, n, w.rand.Uint64())
	return Object(r, name, tiers[w.rand.IntN(len(tiers))], text, n)
}

// Object is one to create.
func Object(r history.Resource, name, tier, text string, count int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(r.GVR.GroupVersion().String())
	u.SetKind(r.Kind)
	u.SetName(name)
	u.SetLabels(map[string]string{"tier": tier, "app": "soak"})
	u.SetAnnotations(map[string]string{Count: strconv.FormatInt(count, 10)})
	switch r.Kind {
	case "ConfigMap":
		u.Object["data"] = map[string]any{"text": text}
	case "Secret":
		u.Object["stringData"] = map[string]any{"text": text}
	case "Pod":
		u.Object["spec"] = map[string]any{
			"automountServiceAccountToken": false,
			"containers":                   []any{map[string]any{"name": "c", "image": "registry.example/app:" + strconv.FormatInt(count, 10)}},
		}
	default:
		u.Object["spec"] = map[string]any{"text": text, "size": count % 100}
	}
	return u
}

func (w *writer) create(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	_, err := c.Create(ctx, o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// change gives an object the labels, annotations and content of another. Of pods
// little may be changed.
func (w *writer) change(ctx context.Context, c dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	name := o.GetName()
	patch := map[string]any{"metadata": map[string]any{"labels": o.GetLabels(), "annotations": o.GetAnnotations()}}
	if o.GetKind() != "Pod" {
		for _, field := range []string{"data", "stringData", "spec"} {
			if v, ok := o.Object[field]; ok {
				patch[field] = v
			}
		}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

func remove(ctx context.Context, c dynamic.ResourceInterface, name string) error {
	err := c.Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Burst creates n ConfigMaps in a namespace, and deletes them all at once.
func Burst(ctx context.Context, client dynamic.Interface, r history.Resource, namespace string, n int) error {
	if err := MakeNamespace(ctx, client, namespace); err != nil {
		return err
	}
	c := client.Resource(r.GVR).Namespace(namespace)
	errs := make(chan error, 4)
	for part := range cap(errs) {
		go func() {
			var err error
			for i := part; i < n && ctx.Err() == nil; i += cap(errs) {
				_, e := c.Create(ctx, Object(r, fmt.Sprintf("burst-%d", i), tiers[i%3], "burst", int64(i)), metav1.CreateOptions{})
				if e != nil && !apierrors.IsAlreadyExists(e) {
					err = e
				}
			}
			errs <- err
		}()
	}
	var err error
	for range cap(errs) {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, deleteAll(ctx, c))
}

// deleteAll tries until all objects are gone: a busy API server may take longer for them
// than a client waits for an answer, and goes on where it was.
func deleteAll(ctx context.Context, c dynamic.ResourceInterface) error {
	for {
		err := c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
