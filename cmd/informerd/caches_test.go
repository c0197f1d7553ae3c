package main

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
)

// TestResourcesOfCaches: the list of resources is made anew when they are others, in order,
// and only then.
func TestResourcesOfCaches(t *testing.T) {
	caches := &factoryCaches{Factory: replica.NewFactory(replica.Options{})}
	defer func() { // which ends what the clusters have begun
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := caches.Run(ended); err != nil {
			t.Error(err)
		}
	}()
	names := func() (all []string) {
		for _, r := range caches.Resources() {
			all = append(all, r.Spec().Cluster+"/"+r.Spec().GVR.Resource)
		}
		return all
	}
	apply := func(cluster string, resources ...string) {
		t.Helper()
		var specs []cache.Spec
		for _, r := range resources {
			specs = append(specs, cache.Spec{Resource: cache.Resource{Cluster: cluster, GVR: schema.GroupVersionResource{Version: "v1", Resource: r}}, Kind: r})
		}
		if err := caches.Apply(cluster, specs); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		cluster   string
		resources []string
		want      []string
	}{
		{"b", nil, nil},
		{"b", []string{"pods", "nodes"}, []string{"b/nodes", "b/pods"}},
		{"a", []string{"pods"}, []string{"a/pods", "b/nodes", "b/pods"}},
		{"b", []string{"secrets", "nodes"}, []string{"a/pods", "b/nodes", "b/secrets"}},
		{"a", nil, []string{"b/nodes", "b/secrets"}},
	} {
		apply(step.cluster, step.resources...)
		if got := names(); !slices.Equal(got, step.want) {
			t.Errorf("%s has %q: resources are %q, want %q", step.cluster, step.resources, got, step.want)
		}
		if len(step.want) > 0 && &caches.Resources()[0] != &caches.Resources()[0] {
			t.Errorf("%q: made anew when nothing has changed", step.want)
		}
	}
}
