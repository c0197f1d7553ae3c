package harness

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Recorder is a bare watch of the API server: what really happened.
type Recorder struct {
	cancel  context.CancelFunc
	done    chan struct{}
	changes []Change // read after done
	err     string
}

// Record notes the changes in one namespace from now on.
func (c *Cluster) Record(tb testing.TB, gvr schema.GroupVersionResource, namespace string) *Recorder {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := c.Dynamic.Resource(gvr).Namespace(namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	r := &Recorder{cancel: cancel, done: make(chan struct{})}
	tb.Cleanup(func() { cancel(); <-r.done })
	go func() {
		defer close(r.done)
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-w.ResultChan():
				if !ok || e.Type == watch.Error {
					r.err = "the recording watch ended"
					return
				}
				if o, ok := e.Object.(*unstructured.Unstructured); ok {
					r.changes = append(r.changes, Change{
						Type: string(e.Type), Key: o.GetNamespace() + "/" + o.GetName(), UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(),
					})
				}
			}
		}
	}()
	return r
}

// Stop ends the recording and returns it. Changes made just before may be
// missing.
func (r *Recorder) Stop(tb testing.TB) []Change {
	tb.Helper()
	r.cancel()
	<-r.done
	if r.err != "" {
		tb.Fatal(r.err)
	}
	return r.changes
}
