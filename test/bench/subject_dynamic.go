package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// appIndex is the index by the label app that queries use.
const appIndex = "app"

// syncDynamic runs client-go's dynamic informer as it is: a streaming list,
// unstructured objects, an index by namespace.
func syncDynamic(ctx context.Context, rc *rest.Config) (*synced, error) {
	return syncDynamicWith(ctx, rc, nil)
}

// syncDynamicApp adds an index by the label app, without which it would have to
// look at every pod for each query.
func syncDynamicApp(ctx context.Context, rc *rest.Config) (*synced, error) {
	return syncDynamicWith(ctx, rc, toolscache.Indexers{appIndex: byApp})
}

func syncDynamicWith(ctx context.Context, rc *rest.Config, indexers toolscache.Indexers) (*synced, error) {
	client, err := dynamic.NewForConfig(rc)
	if err != nil {
		return nil, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Informer()
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, err
	}
	return syncInformer(ctx, factory.Start, informer)
}

// syncInformer starts a shared informer and waits until it has everything.
func syncInformer(ctx context.Context, start func(<-chan struct{}), informer toolscache.SharedIndexInformer) (*synced, error) {
	start(ctx.Done())
	// WaitForCacheSync looks every 100 ms only: a delay that is none of the informer's.
	select {
	case <-informer.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for sync: %w", ctx.Err())
	}
	indexer := informer.GetIndexer()
	return &synced{
		objects: len(indexer.ListKeys()),
		held:    informer,
		answer: func(dst []byte, app string) ([]byte, int, error) {
			return marshalApp(indexer, dst, app)
		},
	}, nil
}

func byApp(obj any) ([]string, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if app := o.GetLabels()["app"]; app != "" {
		return []string{app}, nil
	}
	return nil, nil
}

// marshalApp is the answer of an informer: the objects of an index value as JSON.
func marshalApp(indexer toolscache.Indexer, dst []byte, app string) ([]byte, int, error) {
	objs, err := indexer.ByIndex(appIndex, app)
	if err != nil {
		return dst, 0, err
	}
	for _, obj := range objs {
		data, err := json.Marshal(obj)
		if err != nil {
			return dst, 0, err
		}
		dst = append(append(dst, data...), ',')
	}
	return dst, len(objs), nil
}
