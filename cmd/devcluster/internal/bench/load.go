package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"golang.org/x/sync/errgroup"
)

// writers is how many requests are under way at a time.
const writers = 16

// The field managers that these objects have in a real cluster.
var (
	byController = metav1.CreateOptions{FieldManager: "kube-controller-manager"}
	byDeployer   = metav1.CreateOptions{FieldManager: "argocd-controller"}
	byKubelet    = metav1.UpdateOptions{FieldManager: "kubelet"}
	byNewKubelet = metav1.CreateOptions{FieldManager: "kubelet"}
)

// Load makes the cluster hold n pods and what they refer to. Pods that exist
// are kept, also if there are more than n. The ReplicaSet controller must not
// run meanwhile: it would create the pods that are missing itself.
func Load(ctx context.Context, config *rest.Config, n int, logf func(string, ...any)) error {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	l := &loader{client: client, now: metav1.Now(), logf: logf}
	if err := l.load(ctx, n); err != nil {
		return fmt.Errorf("load pods: %w", err)
	}
	return nil
}

type loader struct {
	client kubernetes.Interface
	now    metav1.Time
	logf   func(string, ...any)
}

func (l *loader) load(ctx context.Context, n int) error {
	if err := each(ctx, namespaces, l.namespace); err != nil {
		return err
	}
	if err := each(ctx, nodes, l.node); err != nil {
		return err
	}
	existing, err := l.existing(ctx)
	if err != nil {
		return err
	}
	// Fewer pods than there are would have the ReplicaSets delete the rest.
	for i := range existing {
		n = max(n, i+1)
	}
	owners := make([]types.UID, apps)
	err = each(ctx, apps, func(ctx context.Context, app int) error {
		uid, err := l.app(ctx, app, n)
		owners[app] = uid
		return err
	})
	if err != nil {
		return err
	}
	var done atomic.Int64
	stop := l.reportProgress(&done, n)
	defer stop()
	return each(ctx, n, func(ctx context.Context, i int) error {
		defer done.Add(1)
		return l.pod(ctx, i, owners[id(i).app], existing[i])
	})
}

// each calls do for 0 to n-1, several at a time, until one fails.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range writers {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// namespace creates the service accounts as well: the controllers that would do
// so do not run yet, and no pod is admitted without its service account.
func (l *loader) namespace(ctx context.Context, i int) error {
	name := namespaceName(i)
	_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}},
	}, byDeployer)
	if err := ignoreExisting(err); err != nil {
		return err
	}
	for _, account := range []string{"default", "app"} {
		_, err := l.client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: account},
		}, byDeployer)
		if err := ignoreExisting(err); err != nil {
			return err
		}
	}
	_, err = l.client.CoreV1().Secrets(name).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"registry.example.com":{"auth":"cm9ib3Q6c2VjcmV0"}}}`)},
	}, byDeployer)
	return ignoreExisting(err)
}

func (l *loader) node(ctx context.Context, i int) error {
	node, err := l.client.CoreV1().Nodes().Create(ctx, newNode(i), byNewKubelet)
	if apierrors.IsAlreadyExists(err) {
		node, err = l.client.CoreV1().Nodes().Get(ctx, nodeName(i), metav1.GetOptions{})
	}
	if err != nil || len(node.Status.Conditions) > 0 {
		return err
	}
	node.Status = nodeStatus(i, l.now)
	_, err = l.client.CoreV1().Nodes().UpdateStatus(ctx, node, byKubelet)
	return err
}

// app makes the ReplicaSet of an app want its share of n pods.
func (l *loader) app(ctx context.Context, app, n int) (types.UID, error) {
	namespace := namespaceName(app)
	_, err := l.client.CoreV1().ConfigMaps(namespace).Create(ctx, newConfigMap(app), byDeployer)
	if err := ignoreExisting(err); err != nil {
		return "", err
	}
	_, err = l.client.CoreV1().Secrets(namespace).Create(ctx, newSecret(app), byDeployer)
	if err := ignoreExisting(err); err != nil {
		return "", err
	}
	want := newReplicaSet(app, n)
	client := l.client.AppsV1().ReplicaSets(namespace)
	rs, err := client.Create(ctx, want, byController)
	if apierrors.IsAlreadyExists(err) {
		rs, err = client.Get(ctx, want.Name, metav1.GetOptions{})
	}
	if err != nil {
		return "", err
	}
	if *rs.Spec.Replicas != *want.Spec.Replicas {
		rs.Spec.Replicas = want.Spec.Replicas
		if rs, err = client.Update(ctx, rs, metav1.UpdateOptions{FieldManager: byController.FieldManager}); err != nil {
			return "", err
		}
	}
	// The controller would write the same status later.
	count := *want.Spec.Replicas
	if rs.Status.ReadyReplicas != count || rs.Status.ObservedGeneration != rs.Generation {
		rs.Status = appsv1.ReplicaSetStatus{
			Replicas: count, FullyLabeledReplicas: count, ReadyReplicas: count, AvailableReplicas: count,
			TerminatingReplicas: ptr.To(int32(0)), ObservedGeneration: rs.Generation,
		}
		if _, err := client.UpdateStatus(ctx, rs, metav1.UpdateOptions{FieldManager: byController.FieldManager}); err != nil {
			return "", err
		}
	}
	return rs.UID, nil
}

// existing finds the pods of earlier loads: those that are complete are true,
// those whose status is still missing are false.
func (l *loader) existing(ctx context.Context) (map[int]bool, error) {
	found := map[int]bool{}
	phases := map[string]corev1.PodPhase{}
	for i := range namespaces {
		options := metav1.ListOptions{Limit: 2000}
		for {
			list, err := l.client.CoreV1().Pods(namespaceName(i)).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for _, pod := range list.Items {
				phases[pod.Namespace+"/"+pod.Name] = pod.Status.Phase
			}
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
	}
	// Pods were created nearly in order, so the numbers end soon after all
	// names have been met. Names of other pods are met never.
	misses := 0
	for i := 0; len(phases) > 0 && misses < 10*apps; i++ {
		key := namespaceName(id(i).app) + "/" + podName(i)
		phase, ok := phases[key]
		if !ok {
			misses++
			continue
		}
		misses = 0
		found[i] = phase == corev1.PodRunning
		delete(phases, key)
	}
	return found, nil
}

func (l *loader) pod(ctx context.Context, i int, owner types.UID, complete bool) error {
	if complete {
		return nil
	}
	want := newPod(i, owner)
	client := l.client.CoreV1().Pods(want.Namespace)
	pod, err := client.Create(ctx, want, byController)
	if apierrors.IsAlreadyExists(err) {
		pod, err = client.Get(ctx, want.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	pod.Status = podStatus(i, l.now)
	_, err = client.UpdateStatus(ctx, pod, byKubelet)
	return err
}

// reportProgress logs every few seconds how far the load is.
func (l *loader) reportProgress(done *atomic.Int64, n int) (stop func()) {
	start, ended := time.Now(), make(chan struct{})
	go func() {
		ticker := time.NewTicker(5 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				count := done.Load()
				l.logf("pods created: %d of %d, %.0f per second", count, n, float64(count)/time.Since(start).Seconds())
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
