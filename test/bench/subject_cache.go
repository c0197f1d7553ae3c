package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
)

// podIndexes are those of the shipped configuration.
var podIndexes = map[string]string{
	"node":  "spec.nodeName",
	"phase": "status.phase",
	"image": "spec.containers[*].image",
}

// managedFields is what the shipped configuration drops of every object.
const managedFields = "metadata.managedFields"

// syncCache runs informerd's cache within this program, as informerd configures
// it for pods: only from inside can the heap be told from the rest.
func syncCache(ctx context.Context, rc *rest.Config) (*synced, error) {
	return syncFactory(ctx, rc, []string{managedFields})
}

// syncCacheAll is the same with objects kept whole, as client-go's informers
// keep them.
func syncCacheAll(ctx context.Context, rc *rest.Config) (*synced, error) {
	return syncFactory(ctx, rc, nil)
}

func syncFactory(ctx context.Context, rc *rest.Config, drop []string) (*synced, error) {
	factory := replica.NewFactory(replica.Options{})
	go func() { _ = factory.Run(ctx) }() // ends with the process
	if err := factory.Connect("default", replica.ClusterConfig{REST: rc}); err != nil {
		return nil, err
	}
	pods := cache.Resource{Cluster: "default", GVR: corev1.SchemeGroupVersion.WithResource("pods")}
	err := factory.Apply("default", []cache.Spec{{
		Resource: pods, Kind: "Pod", Singular: "pod", Namespaced: true,
		Watch: true, Indexes: podIndexes, Drop: drop,
	}})
	if err != nil {
		return nil, err
	}
	informer, err := factory.Informer(pods)
	if err != nil {
		return nil, err
	}
	if err := informer.WaitForSync(ctx); err != nil {
		return nil, err
	}
	reader := informer.View().Reader(cache.WholeScope())
	return &synced{
		objects: reader.Len(),
		held:    factory,
		answer: func(dst []byte, app string) ([]byte, int, error) {
			return selectApp(ctx, reader, dst, app)
		},
	}, nil
}

// selectApp is the answer of the cache: the objects of an index value as JSON.
func selectApp(ctx context.Context, reader *cache.Reader, dst []byte, app string) ([]byte, int, error) {
	r, err := reader.Select(ctx, cache.Query{Terms: []cache.Term{{Index: cache.LabelIndex, Value: "app=" + app}}})
	if err != nil {
		return dst, 0, err
	}
	for _, o := range r.Objects {
		if dst, err = o.AppendJSON(dst); err != nil {
			return dst, 0, err
		}
		dst = append(dst, ',')
	}
	return dst, len(r.Objects), nil
}
