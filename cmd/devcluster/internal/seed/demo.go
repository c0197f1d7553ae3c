// Package seed fills a cluster with what a small company would run in it, and
// with some of what goes wrong there. Everything is created through the API, so
// that defaults, managed fields and the work of the controllers are real. Doing
// it again changes nothing.
package seed

import (
	"context"
	"embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Broken labels workloads that never become ready.
const Broken = "devcluster.informerd.io/broken"

//go:embed manifests/*.yaml
var manifests embed.FS

// files are applied in this order, each by the field manager that objects of
// its kind have in a real cluster.
var files = []struct{ name, manager string }{
	{"cluster.yaml", "kubectl"},
	{"crds.yaml", "kubectl"},
	{"platform.yaml", "helm"},
	{"data.yaml", "helm"},
	{"monitoring.yaml", "helm"},
	{"shop.yaml", "argocd-controller"},
	{"payments.yaml", "argocd-controller"},
	{"team-a.yaml", "kubectl"},
	{"custom.yaml", "kubectl"},
	{"broken.yaml", "kubectl"},
}

// Demo creates the demo data. With wait it returns when all workloads that can
// become ready are; that needs the controllers, the scheduler and kwok.
func Demo(ctx context.Context, config *rest.Config, wait bool, logf func(string, ...any)) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	a, err := newApplier(config)
	if err != nil {
		return err
	}
	count := 0
	for _, file := range files {
		objects, err := readManifest("manifests/" + file.name)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := a.apply(ctx, object, file.manager); err != nil {
				return fmt.Errorf("seed %s: %w", file.name, err)
			}
			for _, volume := range volumesFor(object) {
				if err := a.apply(ctx, volume, "ebs-csi-controller"); err != nil {
					return fmt.Errorf("seed %s: %w", file.name, err)
				}
				count++
			}
		}
		count += len(objects)
		if file.name == "cluster.yaml" && wait {
			// Controllers back off when a pod's service account is missing.
			if err := waitForServiceAccounts(ctx, client, objects); err != nil {
				return err
			}
		}
	}
	if err := certificates(ctx, client); err != nil {
		return fmt.Errorf("seed certificates: %w", err)
	}
	// Its finalizer belongs to a controller that does not exist.
	err = client.CoreV1().ConfigMaps("payments").Delete(ctx, "ledger-migration-lock", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("seed: %w", err)
	}
	logf("demo objects applied: %d", count)
	if !wait {
		return nil
	}
	return waitForWorkloads(ctx, client, logf)
}

// waitForWorkloads returns when everything that is not meant to be broken runs.
func waitForWorkloads(ctx context.Context, client kubernetes.Interface, logf func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	reported := time.Now()
	for {
		missing, err := unready(ctx, client)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if err == nil && time.Since(reported) > 5*time.Second {
			reported = time.Now()
			logf("waiting for %d workloads: %v", len(missing), missing)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for demo workloads: not ready: %v (%w)", missing, context.Cause(ctx))
		}
	}
}

// unready names the workloads that should run and do not.
func unready(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	var missing []string
	add := func(kind string, m metav1.ObjectMeta, ready bool) {
		if !ready {
			missing = append(missing, kind+" "+m.Namespace+"/"+m.Name)
		}
	}
	options := metav1.ListOptions{LabelSelector: "!" + Broken}
	deployments, err := client.AppsV1().Deployments("").List(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		add("Deployment", d.ObjectMeta, d.Status.ObservedGeneration == d.Generation &&
			d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.UpdatedReplicas == *d.Spec.Replicas)
	}
	sets, err := client.AppsV1().StatefulSets("").List(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, s := range sets.Items {
		add("StatefulSet", s.ObjectMeta, s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == *s.Spec.Replicas)
	}
	daemons, err := client.AppsV1().DaemonSets("").List(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, d := range daemons.Items {
		add("DaemonSet", d.ObjectMeta, d.Status.ObservedGeneration == d.Generation && d.Status.NumberReady == d.Status.DesiredNumberScheduled)
	}
	jobs, err := client.BatchV1().Jobs("").List(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs.Items {
		// Those of CronJobs come and go.
		add("Job", j.ObjectMeta, len(j.OwnerReferences) > 0 || j.Status.CompletionTime != nil)
	}
	return missing, nil
}

// waitForServiceAccounts waits until each of the namespaces has its default one.
func waitForServiceAccounts(ctx context.Context, client kubernetes.Interface, objects []object) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, o := range objects {
		if o.GetKind() != "Namespace" {
			continue
		}
		for {
			_, err := client.CoreV1().ServiceAccounts(o.GetName()).Get(ctx, corev1.NamespaceDefault, metav1.GetOptions{})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("wait for service accounts: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
