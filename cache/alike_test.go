package cache

import (
	"fmt"
	"testing"
)

// TestAlike: how objects are packed is decided by how many there are in all Stores of the
// resource. What a Store has counts until it is closed, or another has taken over from it.
func TestAlike(t *testing.T) {
	all := &Alike{}
	store := func() *Store {
		t.Helper()
		s, err := NewStore(podSpec(), StoreOptions{Alike: all})
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
	one, two := store(), store()
	fill(one, 40, "100")
	fill(two, 30, "100")
	check("two Stores", 70)
	decodePod(t, two, 31)
	check("one that is not entered yet", 71)
	fill(two, 20, "200")
	check("fewer in a list", 60)

	if one.packing.coding() != quick || two.packing.coding() != quick {
		t.Error("few objects are not packed quickly")
	}
	big := store()
	big.packing.objects.set(quickObjects)
	for n, s := range []*Store{one, two, big} {
		if s.packing.coding() != dense {
			t.Errorf("Store %d of many objects together packs them quickly", n)
		}
	}
	big.Close()
	decodePod(t, big, 1)
	check("one is closed", 60)
	if one.packing.coding() != quick {
		t.Error("objects of a Store that is closed count")
	}

	next := store()
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
