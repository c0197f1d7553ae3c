package cache

import (
	"fmt"
	"testing"
)

// TestAlike: how objects are packed is decided by how many of the resource all clusters have,
// each of them once: not by lists that fail, nor twice where one Store is to take over from
// another. What a Store has counts until it is closed, or another has taken over from it.
func TestAlike(t *testing.T) {
	all := &Alike{}
	store := func(cluster string) *Store {
		t.Helper()
		spec := podSpec()
		spec.Cluster = cluster
		s, err := NewStore(spec, StoreOptions{Alike: all})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	fill := func(s *Store, objects int, version string) {
		t.Helper()
		objs := make([]*Object, objects)
		for i := range objs {
			objs[i] = decodePod(t, s, i)
		}
		s.Replace("", objs, version)
	}
	check := func(when string, want int) {
		t.Helper()
		if got := all.Objects(); got != int64(want) {
			t.Errorf("%s: %d objects of all Stores, want %d", when, got, want)
		}
	}
	judges := func(when string, s *Store, want coding) {
		t.Helper()
		if got := s.packing.coding(); got != want {
			t.Errorf("%s: densely %v, want %v", when, got, want)
		}
	}
	one, two := store("one"), store("two")
	fill(one, 40, "100")
	fill(two, 30, "100")
	check("two Stores", 70)
	for n := range 100 { // of a list that breaks
		decodePod(t, two, n)
	}
	check("what no Store has", 70)
	fill(two, 20, "200")
	check("fewer in a list", 60)

	judges("few", one, quick)
	big := store("big")
	big.packing.objects.set(quickObjects)
	judges("another cluster has many", one, dense)
	judges("another cluster has some", big, dense)
	successor := store("big")
	judges("one that begins where another cluster has few", successor, quick)
	successor.packing.objects.set(quickObjects - 100)
	judges("one that is to take over from as many", successor, quick)
	successor.Close()
	big.Close()
	decodePod(t, big, 1)
	check("one is closed", 60)
	judges("many are not used any more", one, quick)

	next := store("one")
	fill(next, 50, "300")
	check("one that is to take over", 110)
	if _, err := one.TakeOver(next); err != nil {
		t.Fatal(err)
	}
	check("it has taken over", 70)
	one.Close()
	two.Close()
	check("all are closed", 0)
}

func decodePod(t *testing.T, s *Store, n int) *Object {
	t.Helper()
	o, err := s.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web-%d","uid":"u-%d","resourceVersion":"%d"}}`, n, n, n+1), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	return o
}
