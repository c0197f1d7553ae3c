package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ensureDeployments gives each ReplicaSet the Deployment that it would come
// from, so that there is a hierarchy to walk. It is done here and not by
// devcluster, since a Deployment controller would roll these out anew: their
// template's hash is not the one that it computes. No controller runs here.
func ensureDeployments(ctx context.Context, c *cluster) error {
	sets, err := c.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loadWorkers)
	for i := range sets.Items {
		set := &sets.Items[i]
		if metav1.GetControllerOf(set) != nil {
			continue
		}
		g.Go(func() error {
			if err := ensureDeployment(ctx, c, set); err != nil {
				return fmt.Errorf("make the Deployment of %s/%s: %w", set.Namespace, set.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func ensureDeployment(ctx context.Context, c *cluster, set *appsv1.ReplicaSet) error {
	client := c.client.AppsV1().Deployments(set.Namespace)
	want := deploymentOf(set)
	d, err := client.Create(ctx, want, metav1.CreateOptions{FieldManager: "argocd-controller"})
	if apierrors.IsAlreadyExists(err) {
		d, err = client.Get(ctx, want.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: set.Status.Replicas, UpdatedReplicas: set.Status.Replicas,
		ReadyReplicas: set.Status.ReadyReplicas, AvailableReplicas: set.Status.AvailableReplicas,
	}
	if _, err := client.UpdateStatus(ctx, d, metav1.UpdateOptions{FieldManager: "kube-controller-manager"}); err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}})
	if err != nil {
		return err
	}
	_, err = c.client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "kube-controller-manager"})
	return err
}

// deploymentOf is the Deployment that would have made set.
func deploymentOf(set *appsv1.ReplicaSet) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Labels["app"], Labels: maps.Clone(set.Labels)},
		Spec: appsv1.DeploymentSpec{
			Replicas: set.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": set.Labels["app"]}},
			Template: *set.Spec.Template.DeepCopy(),
		},
	}
	for _, labels := range []map[string]string{d.Labels, d.Spec.Template.Labels} {
		delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
	}
	return d
}
