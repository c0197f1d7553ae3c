package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	runtimecache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// syncRuntime runs controller-runtime's cache over unstructured pods, as a
// controller without generated types has it: a streaming list, an index by
// namespace, kinds mapped to resources through discovery.
func syncRuntime(ctx context.Context, rc *rest.Config) (*synced, error) {
	objects, err := runtimecache.New(rc, runtimecache.Options{})
	if err != nil {
		return nil, err
	}
	pod := &unstructured.Unstructured{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	informer, err := objects.GetInformer(ctx, pod, runtimecache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("informer is a %T", informer)
	}
	start := func(<-chan struct{}) {
		go func() { _ = objects.Start(ctx) }() // ends with the process
	}
	return syncInformer(ctx, start, shared)
}
