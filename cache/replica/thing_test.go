package replica

import (
	"fmt"
	"testing"

	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// thingSpec is of a resource whose objects tests make themselves.
var thingSpec = cache.Spec{
	Resource:   cache.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}},
	Kind:       "Thing",
	Namespaced: true,
	Watch:      true,
	Indexes:    map[string]string{"node": "spec.node"},
}

func newStore(t testing.TB, spec cache.Spec) *cache.Store {
	t.Helper()
	s, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func decodeThing(t testing.TB, s *cache.Store, namespace, name string, version int) *cache.Object {
	t.Helper()
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":"uid-%s","resourceVersion":"%d"},"spec":{}}`, namespace, name, name, version)
	o, err := s.Decode(raw, "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}
