package names

import (
	"errors"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func spec(group, version, resource, kind, singular string, short ...string) cache.Spec {
	return cache.Spec{
		Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}},
		Kind:     kind, Singular: singular, ShortNames: short,
	}
}

func TestFind(t *testing.T) {
	index := New([]cache.Spec{
		spec("", "v1", "pods", "Pod", "pod", "po"),
		spec("", "v1", "services", "Service", "service", "svc"),
		spec("serving.knative.dev", "v1", "services", "Service", "service", "ksvc"),
		spec("apps", "v1", "deployments", "Deployment", "deployment", "deploy"),
		spec("a.example.com", "v1", "things", "Thing", "thing", "t"),
		spec("b.example.com", "v1", "stuff", "Stuff", "stuff", "t"),
		spec("c.example.com", "v1", "t", "T", ""),
		spec("d.example.com", "v1", "x", "X", "", "same"),
		spec("e.example.com", "v1", "y", "Y", "", "same"),
	})
	for name, want := range map[string]string{
		"pods": "pods", "PO": "pods", "Pod": "pods", "pods.v1": "pods",
		"deploy": "deployments.apps", "deployments.v1.apps": "deployments.apps", "deployment.apps": "deployments.apps",
		"services": "services", "svc": "services", "services.serving.knative.dev": "services.serving.knative.dev",
		"t": "t.c.example.com", // its own name goes before short names
	} {
		if got, err := index.Find(name); err != nil || got.Name() != want {
			t.Errorf("Find(%q) = %s, %v; want %s", name, got.Name(), err, want)
		}
	}
	var invalid *cache.InvalidError
	if _, err := index.Find("same"); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "x.d.example.com, y.e.example.com") {
		t.Errorf("Find(same) = %v, want both names", err)
	}
	if _, err := index.Find("pds"); !errors.Is(err, cache.ErrUnknownResource) || !strings.Contains(err.Error(), "did you mean pods?") {
		t.Errorf("Find(pds) = %v, want a suggestion", err)
	}
}
