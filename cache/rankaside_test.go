package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

// TestRankAside: where no column has what is sorted by, objects are put in order by their texts if
// many have the same, and then as their values are; if not, nobody goes on with it.
func TestRankAside(t *testing.T) {
	const count = 3 * asideFrom
	r := rand.New(rand.NewPCG(5, 1))
	s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
	objects := make([]*Object, count)
	for i := range objects {
		some := []string{`"500m"`, `"1"`, `"1Gi"`, "2", "0.1", `"100n"`}
		objects[i] = decodedThing(t, s, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"a","name":"thing-%06d","resourceVersion":"%d"},
			"spec":{"few":%s,"ofSets":"set-%d","own":"own-%d"}}`, i, i+1, pick(r, some...), i/40*7919%count, i*7919%count))
	}
	s.Replace("", objects, "9")
	for path, shared := range map[string]bool{"spec.few": true, "-spec.ofSets": true, "spec.none": true, "spec.few,-spec.ofSets": true, "spec.own": false} {
		order, err := ParseOrder(path)
		if err != nil {
			t.Fatal(err)
		}
		var paths []rawjson.Path
		for _, k := range order {
			paths = append(paths, k.Path)
		}
		ranked, err := order.rankAside(t.Context(), &located{objects: objects}, paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !shared {
			if ranked != nil {
				t.Errorf("%s: %d texts of %d objects were compared", path, count, count)
			}
			continue
		}
		want := slices.Clone(objects)
		if err := order.Sort(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if len(ranked) != count {
			t.Errorf("%s: nothing is in order", path)
			continue
		}
		for i, n := range ranked {
			if objects[n] != want[i] {
				t.Errorf("%s: object %d is %s, want %s", path, i, objects[n].Key(), want[i].Key())
				break
			}
		}
	}
}
