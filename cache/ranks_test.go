package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sortable are objects that have one of values at spec.v, several of them, or none.
func sortable(t testing.TB, s *Store, r *rand.Rand, i, version int, values []string) *Object {
	t.Helper()
	spec := ""
	switch n := r.IntN(10); {
	case n == 0:
	case n < 3:
		spec = fmt.Sprintf(`"v":[%s,%s],`, pick(r, values...), pick(r, values...))
	default:
		spec = fmt.Sprintf(`"v":%s,`, pick(r, values...))
	}
	return decodedThing(t, s, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"team-%d","name":"thing-%d","uid":"uid-%d","resourceVersion":"%d"},"spec":{%s"w":%d}}`,
		i%5, i, i, version, spec, r.IntN(4)))
}

// TestRanks: objects that are put in order by the ranks of their texts are in the order that
// their values have among each other, whatever these are, of all objects and of some, while
// objects change.
func TestRanks(t *testing.T) {
	for name, values := range map[string][]string{
		"numbers":    {"1", "2", "10", "-3", "2.5", "9007199254740993", "9007199254740992.0", "9007199254740992"},
		"quantities": {`"500m"`, `"1"`, `"1Gi"`, "2", "0.1", `"100n"`},
		"times":      {`"2026-01-02T00:00:00Z"`, `"2025-12-31T23:59:59Z"`, `"2026-01-02T01:00:00+02:00"`},
		"texts":      {`"b"`, `"a"`, `"B"`, `"10.1.2.3"`, `"10.1.10.3"`, `""`, "true"},
		"mixed":      {`"b"`, "2", "10", `"500m"`, `"2026-01-02T00:00:00Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(17, uint64(len(name))))
			of := func(i int) []string {
				if name == "mixed" && i%5 < 2 { // some namespaces have nothing but numbers
					return []string{"2", "10"}
				}
				return values
			}
			s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
			var all []*Object
			for i := range 900 {
				all = append(all, sortable(t, s, r, i, i+1, of(i)))
			}
			s.Replace("", all, "900")
			version := 900
			for range 12 * columnAfter {
				for range r.IntN(8) {
					version++
					i := r.IntN(900)
					s.Apply("", Modified, sortable(t, s, r, i, version, of(i)))
				}
				order, err := ParseOrder(pick(r, "spec.v", "-spec.v", "spec.v,-spec.w"))
				if err != nil {
					t.Fatal(err)
				}
				q := Query{Sort: order}
				if r.IntN(3) == 0 {
					q.Namespaces = []string{"team-[01]"}
				}
				found, err := s.Select(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Clone(found.Objects)
				slices.SortFunc(want, compareObjects)
				if err := order.Sort(t.Context(), want); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(found.Objects, want) {
					t.Fatalf("order %s of %d objects is another one by their ranks", order, len(want))
				}
			}
			if !slices.ContainsFunc(s.columnsKept(), func(c *column) bool { return len(c.ranked) > 0 }) {
				t.Error("no ranks are kept")
			}
			if s.contents.columns.forgetAll(0); s.Stats().ColumnBytes != 0 {
				t.Errorf("nothing is kept, and counted as %d bytes", s.Stats().ColumnBytes)
			}
		})
	}
}

func (s *Store) columnsKept() (all []*column) {
	for _, c := range s.contents.columns.sets {
		all = append(all, c)
	}
	return all
}
