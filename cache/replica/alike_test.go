package replica

import (
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestAlike: the objects of a resource are counted in all clusters together, whichever version
// each prefers, and those of each resource by themselves.
func TestAlike(t *testing.T) {
	f := &Factory{}
	other := thingSpec
	other.Cluster, other.GVR.Version = "other", "v2"
	events := thingSpec
	events.GVR.Resource = "events"
	for _, spec := range []cache.Spec{thingSpec, other, events} {
		store, err := f.newStore(spec)
		if err != nil {
			t.Fatal(err)
		}
		o, err := store.Decode([]byte(`{"metadata":{"namespace":"shop","name":"a","uid":"u-a","resourceVersion":"1"}}`), "v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		store.Replace("", []*cache.Object{o}, "1")
	}
	if got := f.alike.of(thingSpec.GVR.GroupResource()).Objects(); got != 2 {
		t.Errorf("%d objects of two clusters", got)
	}
}
