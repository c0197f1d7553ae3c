package replica

import (
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestAlike: the objects of a resource are counted in all clusters together, those of each
// resource by themselves.
func TestAlike(t *testing.T) {
	f := &Factory{}
	other := thingSpec
	other.Cluster = "other"
	events := thingSpec
	events.GVR.Resource = "events"
	for _, spec := range []cache.Spec{thingSpec, other, events} {
		store, err := f.newStore(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Decode([]byte(`{"metadata":{"namespace":"shop","name":"a","uid":"u-a","resourceVersion":"1"}}`), "v1", "Thing"); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.alike.of(thingSpec.GVR.GroupResource()).Objects(); got != 2 {
		t.Errorf("%d objects of two clusters", got)
	}
}
