package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restartDeliveries has a handler deliver all pods, and counts what restarts deliver: one
// after which nothing has changed, and one while which a hundredth has, by a third each of
// changes, deletions and new pods.
func (b *bench) restartDeliveries(ctx context.Context) (rows []Row, err error) {
	third := max(1, b.data.Pods/300)
	logf("making %d pods to change and delete", 2*third)
	defer func() { err = errors.Join(err, removeEventPods(context.WithoutCancel(ctx), b.cluster)) }()
	pods, err := b.cluster.somePods(ctx, 0, 2*third, true)
	if err != nil {
		return nil, err
	}
	if err := b.cluster.holdDeleted(ctx, pods[third:]); err != nil {
		return nil, err
	}
	r, err := startReceiver()
	if err != nil {
		return nil, err
	}
	defer r.close()
	start := func(n int) (*informerd, time.Duration, error) { return b.startDelivered(ctx, r, n) }

	all := b.data.Pods + 2*third
	logf("delivering %d pods", all)
	i, took, err := start(all)
	if err != nil {
		return nil, err
	}
	first, _, err := r.take()
	if err = errors.Join(err, i.stop()); err != nil {
		return nil, err
	}
	if len(first) != all {
		return nil, fmt.Errorf("%d deliveries of %d pods", len(first), all)
	}

	logf("restart, nothing changed")
	if i, _, err = start(all); err != nil {
		return nil, err
	}
	again, _, err := r.take()
	if err = errors.Join(err, i.stop()); err != nil {
		return nil, err
	}

	logf("restart, %d pods changed", 3*third)
	want, err := b.cluster.changeSome(ctx, pods)
	if err != nil {
		return nil, err
	}
	if i, _, err = start(all); err != nil { // as many came as went
		return nil, err
	}
	changed, _, err := r.take()
	if err = errors.Join(err, i.stop()); err != nil {
		return nil, err
	}
	extra, missing := compareDelivered(changed, want)
	count := func(n int) Figure { return worst("informerd", []float64{float64(n)}) }
	return []Row{
		{What: "deliveries of a restart, nothing changed", Unit: unitCount, Ours: count(len(again)), Bar: atMost(0)},
		{What: "deliveries of a restart beyond the changes, 1 % changed while down", Unit: unitCount, Ours: count(extra), Bar: atMost(0)},
		{What: "changes not delivered of a restart, 1 % changed while down", Unit: unitCount, Ours: count(missing), Bar: atMost(0)},
		{What: "first deliveries of all pods", Unit: unitPerSecond, Ours: newFigure("informerd", []float64{float64(all) / took.Seconds()}), Bar: noBar, Constant: true},
	}, nil
}

// lateDeliveries is how long is waited for deliveries that should not be.
const lateDeliveries = 3 * time.Second

// startDelivered starts an informerd and returns when it has all pods and has delivered what
// it had to, and how long that took.
func (b *bench) startDelivered(ctx context.Context, r *receiver, pods int) (*informerd, time.Duration, error) {
	i, err := b.startWithHandlers(ctx, "restarts", handlerConfig("bench", r.url, "from: beginning, concurrency: 64"))
	if err != nil {
		return nil, 0, err
	}
	if _, err = i.waitLive(ctx, pods); err == nil {
		err = i.waitDelivered(ctx, "bench", 0)
	}
	if err != nil {
		i.kill()
		return nil, 0, err
	}
	took := time.Since(i.started)
	select {
	case <-ctx.Done():
		i.kill()
		return nil, 0, ctx.Err()
	case <-time.After(lateDeliveries):
		return i, took, nil
	}
}

// compareDelivered counts deliveries that are not wanted, or not so often, and those missing.
func compareDelivered(got, want []delivered) (extra, missing int) {
	open := map[delivered]int{}
	for _, d := range want {
		open[d]++
	}
	for _, d := range got {
		if open[d] == 0 {
			logf("delivered beyond what changed: %+v", d)
			extra++
			continue
		}
		open[d]--
	}
	for _, n := range open {
		missing += n
	}
	return extra, missing
}

// finalizer holds pods that are deleted.
const finalizer = "bench.informerd.example.com/hold"

// holdDeleted deletes pods that stay for as long as they have the finalizer. The API server
// deletes a pod in two writes, of which the first says that it is to go (CheckGracefulDelete,
// whatever the grace period is): a handler that is told of both, one after the other, is right
// to deliver both. What is left to do to these pods is one.
func (c *cluster) holdDeleted(ctx context.Context, pods []corev1.Pod) error {
	client, now := c.client.CoreV1().Pods(eventNamespace), int64(0)
	held := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, finalizer)
	for _, pod := range pods {
		if _, err := client.Patch(ctx, pod.Name, types.MergePatchType, held, metav1.PatchOptions{}); err != nil {
			return err
		}
		if err := client.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	return nil
}

// release lets a pod go that was held.
func (c *cluster) release(ctx context.Context, name string) error {
	_, err := c.client.CoreV1().Pods(eventNamespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return err
}

// changeSome changes half of the pods and lets the other half go, which are held, makes half
// as many new ones, and returns what is to be delivered of that. Each is one write: of two,
// the first may be delivered, too, since they come one after the other.
func (c *cluster) changeSome(ctx context.Context, pods []corev1.Pod) (want []delivered, err error) {
	client, half := c.client.CoreV1().Pods(eventNamespace), len(pods)/2
	for n, pod := range pods {
		if n < half {
			patch := []byte(`{"metadata":{"annotations":{"bench":"changed"}}}`)
			_, err = client.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			want = append(want, delivered{"changes", eventNamespace, pod.Name})
		} else {
			err = c.release(ctx, pod.Name)
			want = append(want, delivered{"leaves", eventNamespace, pod.Name})
		}
		if err != nil {
			return nil, err
		}
	}
	added, err := c.somePods(ctx, len(pods), half, false)
	for _, pod := range added {
		want = append(want, delivered{"enters", eventNamespace, pod.Name})
	}
	return want, err
}
