package main

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// syncTyped runs client-go's typed informer over protobuf, its cheapest form: a
// streaming list into generated types, with an index by namespace.
func syncTyped(ctx context.Context, rc *rest.Config) (*synced, error) {
	client, err := kubernetes.NewForConfig(overProtobuf(rc))
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	return syncInformer(ctx, factory.Start, factory.Core().V1().Pods().Informer())
}
