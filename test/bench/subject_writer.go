package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// eventNamespace holds the pods that are changed, so that those that are
	// measured otherwise stay as they are.
	eventNamespace = "bench-events"
	eventPods      = 200
	// sequence is the annotation that tells one change from another.
	sequence = "bench.informerd.io/sequence"
	// writes is how many changes are under way at most.
	writes = 32
)

// startWriter creates pods like the others and changes them when told to.
func startWriter(ctx context.Context, rc *rest.Config) (*synced, error) {
	client, err := kubernetes.NewForConfig(overProtobuf(rc))
	if err != nil {
		return nil, err
	}
	w := &writer{client: client}
	if err := w.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare pods to change: %w", err)
	}
	return &synced{objects: len(w.pods), write: w.write}, nil
}

type writer struct {
	client kubernetes.Interface
	pods   []*corev1.Pod // as created, less what the API server has of its own
	next   int           // number of the next change
}

func (w *writer) prepare(ctx context.Context) error {
	core := w.client.CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: eventNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, name := range []string{"default", "app"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := core.ServiceAccounts(eventNamespace).Create(ctx, account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	models, err := core.Pods("").List(ctx, metav1.ListOptions{Limit: eventPods})
	if err != nil {
		return err
	}
	if len(models.Items) == 0 {
		return errors.New("there is no pod to copy")
	}
	for n := range eventPods {
		if err := w.create(ctx, &models.Items[n%len(models.Items)], n); err != nil {
			return err
		}
	}
	return nil
}

// create makes pod n like model, its status included.
func (w *writer) create(ctx context.Context, model *corev1.Pod, n int) error {
	pod := &corev1.Pod{Spec: *model.Spec.DeepCopy()}
	pod.Name = fmt.Sprintf("%.200s-%03d", model.Name, n)
	pod.Labels = maps.Clone(model.Labels)
	pod.Annotations = maps.Clone(model.Annotations)
	client := w.client.CoreV1().Pods(eventNamespace)
	created, err := client.Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	created.Status = model.Status
	updated, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: "kubelet"})
	if err != nil {
		return err
	}
	updated.ResourceVersion, updated.ManagedFields = "", nil
	w.pods = append(w.pods, updated)
	return nil
}

// write changes one pod after the other, rate times a second, and returns how
// many changes it made. It puts whole pods, over protobuf, whatever their
// version, and does not read the answers: patches would cost more, and the machine
// is shared with what is measured.
func (w *writer) write(ctx context.Context, rate int, duration time.Duration) (int, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writes)
	first, start := w.next, time.Now()
	for time.Since(start) < duration && ctx.Err() == nil {
		n := w.next
		if wait := time.Until(start.Add(time.Duration(n-first) * time.Second / time.Duration(rate))); wait > 0 {
			time.Sleep(wait)
		}
		w.next++
		g.Go(func() error {
			pod := *w.pods[n%len(w.pods)]
			pod.Annotations = maps.Clone(pod.Annotations)
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sequence, strconv.Itoa(n))
			return w.client.CoreV1().RESTClient().Put().Namespace(eventNamespace).Resource("pods").Name(pod.Name).Body(&pod).Do(ctx).Error()
		})
	}
	return w.next - first, g.Wait()
}

// removeEventPods deletes the pods of a writer, also of one that was
// interrupted.
func removeEventPods(ctx context.Context, c *cluster) error {
	now := int64(0)
	err := c.client.CoreV1().Pods(eventNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove pods of %s: %w", eventNamespace, err)
	}
	return nil
}
