package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// eventNamespace holds the pods that are changed, so that those that are
	// measured otherwise stay as they are.
	eventNamespace = "bench-events"
	eventPods      = 200
	// changeNumber is the annotation that tells one change from another.
	changeNumber = "devcluster.informerd.io/change"
)

// churn changes pods when told to. It writes them to etcd: through the API server
// 500 changes a second would cost more CPU than two cores have, and in
// production it is not informerd's machine that pays for them.
type churn struct {
	*peerProcess
	cluster *cluster
}

// startChurn makes pods to change. stop the churn, or close it.
func (b *bench) startChurn(ctx context.Context) (*churn, error) {
	c := &churn{cluster: b.cluster}
	err := b.cluster.createEventPods(ctx)
	if err == nil {
		cmd := exec.Command(b.options.devcluster, "churn", "--dir", b.options.dir, "--namespace", eventNamespace)
		c.peerProcess, err = startPeerProcess(ctx, "churn", cmd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare pods to change: %w", err), removeEventPods(context.WithoutCancel(ctx), b.cluster))
	}
	return c, nil
}

// change makes rate changes a second for as long as duration.
func (c *churn) change(rate int, duration time.Duration) (reply, error) {
	return c.order(fmt.Sprint(rate), duration.String())
}

// close ends the churn, however it is, and removes its pods.
func (c *churn) close(ctx context.Context) error {
	c.kill()
	return removeEventPods(context.WithoutCancel(ctx), c.cluster)
}

// createEventPods makes pods like the others.
func (c *cluster) createEventPods(ctx context.Context) error {
	_, err := c.somePods(ctx, 0, eventPods, true)
	return err
}

// somePods makes pods like the others, with numbers from first on. Their status is a second
// write of each.
func (c *cluster) somePods(ctx context.Context, first, count int, status bool) ([]corev1.Pod, error) {
	core := c.client.CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: eventNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	for _, name := range []string{"default", "app"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := core.ServiceAccounts(eventNamespace).Create(ctx, account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	models, err := core.Pods("").List(ctx, metav1.ListOptions{Limit: eventPods})
	if err != nil {
		return nil, err
	}
	if len(models.Items) == 0 {
		return nil, errors.New("there is no pod to copy")
	}
	var made []corev1.Pod
	for n := first; n < first+count; n++ {
		pod, err := c.createEventPod(ctx, &models.Items[n%len(models.Items)], n, status)
		if err != nil {
			return nil, err
		}
		made = append(made, *pod)
	}
	return made, nil
}

// anEventPod is the name of one of them.
func (c *cluster) anEventPod(ctx context.Context) (string, error) {
	pods, err := c.client.CoreV1().Pods(eventNamespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil && len(pods.Items) == 0 {
		err = errors.New("there is no pod that changes")
	}
	if err != nil {
		return "", err
	}
	return pods.Items[0].Name, nil
}

// createEventPod makes pod n like model, its status included or not.
func (c *cluster) createEventPod(ctx context.Context, model *corev1.Pod, n int, status bool) (*corev1.Pod, error) {
	pod := &corev1.Pod{Spec: *model.Spec.DeepCopy()}
	pod.Name = fmt.Sprintf("%.200s-%03d", model.Name, n)
	pod.Labels = maps.Clone(model.Labels)
	pod.Annotations = maps.Clone(model.Annotations)
	client := c.client.CoreV1().Pods(eventNamespace)
	created, err := client.Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil || !status {
		return created, err
	}
	created.Status = model.Status
	return client.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: "kubelet"})
}

// eventsFrom is the resourceVersion of the pod that changed last: what is watched
// from there shows the next change first. The version of the list would be the
// whole cluster's, which a watch of pods may not get to know for a minute.
func (c *cluster) eventsFrom(ctx context.Context) (string, error) {
	pods, err := c.client.CoreV1().Pods(eventNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	newest := ""
	for _, pod := range pods.Items {
		if newest == "" {
			newest = pod.ResourceVersion
		}
		order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, newest)
		if err != nil {
			return "", err
		}
		if order > 0 {
			newest = pod.ResourceVersion
		}
	}
	return newest, nil
}

// removeEventPods deletes the pods of a churn, also of one that was interrupted.
func removeEventPods(ctx context.Context, c *cluster) error {
	now := int64(0)
	left, err := c.client.CoreV1().Pods(eventNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for pods of %s: %w", eventNamespace, err)
	}
	for _, pod := range left.Items {
		if len(pod.Finalizers) == 0 {
			continue
		}
		if err := c.release(ctx, pod.Name); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("let pods of %s go: %w", eventNamespace, err)
		}
	}
	err = c.client.CoreV1().Pods(eventNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove pods of %s: %w", eventNamespace, err)
	}
	return nil
}

// startChanging starts informerd beside a churn, and returns when it has all
// pods. Close both.
func (b *bench) startChanging(ctx context.Context) (*informerd, *churn, error) {
	i, err := b.startInformerd(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	c, err := b.startChurn(ctx)
	if err != nil {
		i.kill()
		return nil, nil, err
	}
	if _, err := i.waitLive(ctx, b.data.Pods+c.first.Objects); err != nil {
		i.kill()
		return nil, nil, errors.Join(err, c.close(ctx))
	}
	return i, c, nil
}
