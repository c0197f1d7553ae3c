package rows

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRows: items are where they were put, whatever is added and removed.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var rows Rows[int]
	want := map[uint32]int{}
	for n := range 20_000 {
		if len(want) > 0 && r.IntN(3) == 0 {
			for i := range want {
				rows.Remove(i)
				delete(want, i)
				break
			}
			continue
		}
		i := rows.Add(n)
		if _, taken := want[i]; taken {
			t.Fatalf("number %d is given twice", i)
		}
		want[i] = n
	}
	for i := range rows.End() {
		if *rows.At(i) != want[i] {
			t.Errorf("item %d is %d, want %d", i, *rows.At(i), want[i])
		}
	}
	if rows.Len() != len(want) || len(rows.chunks) < 3 {
		t.Errorf("%d items in %d chunks, want %d in some", rows.Len(), len(rows.chunks), len(want))
	}
	for i := range want {
		rows.Remove(i)
	}
	if rows.Len() != 0 || rows.chunks != nil || rows.free != nil || rows.Add(1) != 0 {
		t.Errorf("without items there are %d, %d chunks and %d free numbers", rows.Len(), len(rows.chunks), len(rows.free))
	}
}

// TestTable: numbers are found by hashes that many have in common, and those that were removed
// are not.
func TestTable(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		few := r.IntN(2) == 0 // most hashes are of several numbers
		hashOf := func(n uint32) uint64 {
			if few {
				n /= 8
			}
			return uint64(n) * 0x9e3779b97f4a7c15
		}
		var table Table
		want := map[uint32]bool{}
		parts := 0
		for step := range 40_000 {
			n := r.Uint32N(1 << (3 + step/2500))
			switch {
			case want[n]:
				table.Remove(n, hashOf)
				delete(want, n)
			case step < 30_000 || r.IntN(4) == 0:
				table.Add(n, hashOf)
				want[n] = true
			}
			parts = max(parts, len(table.parts))
			probe := r.Uint32N(1 << (3 + step/2500))
			if _, found := table.Find(hashOf(probe), func(m uint32) bool { return m == probe }); found != want[probe] {
				t.Fatalf("seed %d, step %d: %d is found: %v", seed, step, probe, found)
			}
		}
		if table.Len() != len(want) || !slices.Equal(slices.Sorted(table.All()), slices.Sorted(maps.Keys(want))) {
			t.Errorf("seed %d: %d numbers, want %d", seed, table.Len(), len(want))
		}
		for n := range want {
			table.Remove(n, hashOf)
		}
		if table.Len() != 0 || table.parts != nil {
			t.Errorf("seed %d: emptied it has %d numbers in %d parts", seed, table.Len(), len(table.parts))
		}
		if parts != manyParts {
			t.Errorf("seed %d: it was never large", seed)
		}
	}
}

// TestSet: a Set is what a map of numbers would be, in order.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		var s Set
		want := map[uint32]bool{}
		for range r.IntN(60) {
			n := r.Uint32N(20)
			if r.IntN(5) < 3 {
				s.Add(n)
				want[n] = true
			} else {
				s.Remove(n)
				delete(want, n)
			}
			if s.Has(n) != want[n] {
				t.Fatalf("has %d: %v", n, s.Has(n))
			}
		}
		if got := s.List(new([1]uint32)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) || s.Len() != len(want) {
			t.Fatalf("%v, %d of them, want %v", got, s.Len(), want)
		}
		if alone := len(want) == 1; alone != (s.one != 0) || alone != (s.several == nil) && len(want) > 0 {
			t.Errorf("%d numbers, in memory of their own: %v", len(want), s.several != nil)
		}
	}
}
