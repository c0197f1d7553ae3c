package cache

import (
	"slices"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
	"k8s.io/apimachinery/pkg/selection"
)

// TestRuledOut: of objects of which a column knows that they do not match nothing is looked at,
// and the answer, its order and its plan are what they were, whatever has changed meanwhile.
func TestRuledOut(t *testing.T) {
	s := numberedStore(t, 600)
	paths := mustPaths(t, "status.n", "spec.n", "metadata.resourceVersion")
	field := func(path rawjson.Path, operator selection.Operator, value string) FieldSelector {
		return FieldSelector{[]FieldRequirement{{path, operator, []string{value}}}}
	}
	queries := map[string]Query{
		"a third matches":  {Filter: pathFilter{paths[0], "1", &atLeast{}}},
		"none matches":     {Filter: pathFilter{paths[0], "9", &atLeast{}}},
		"all texts differ": {Filter: pathFilter{paths[2], "7", &atLeast{}}},
		"a field":          {Fields: field(paths[1], selection.Equals, "3")},
		"most match":       {Fields: field(paths[1], selection.NotEquals, "3")},
		"beside a field":   {Filter: pathFilter{paths[0], "1", &atLeast{}}, Fields: field(paths[1], selection.NotEquals, "3")},
	}
	version := 2000
	for round := range 6 {
		for name, q := range queries {
			for ask := range columnAfter + 3 {
				found, err := s.Select(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if want := matching(t, s, q); !slices.Equal(found.Objects, want) {
					t.Fatalf("%s, round %d, asked %d times: %d objects, want %d", name, round, ask, len(found.Objects), len(want))
				}
				if p := found.Plan; p.Candidates != 600 || p.Scanned != 600 || ask > columnAfter && round == 0 && p.Excerpts != 600 {
					t.Errorf("%s, round %d, asked %d times: %+v", name, round, ask, p)
				}
				found.Release()
			}
		}
		for i := range 40 {
			version++
			s.Apply("", Modified, numbered(t, s, (round*97+i*13)%600, i%10, version))
		}
	}
}

// matching are the objects that match, found by looking at each.
func matching(t *testing.T, s *Store, q Query) (all []*Object) {
	t.Helper()
	m, err := s.Matcher(q)
	if err != nil {
		t.Fatal(err)
	}
	s.contents.tree.Scan(func(e entry) bool {
		if ok, err := m.Match(t.Context(), e.obj); err != nil {
			t.Error(err)
		} else if ok {
			all = append(all, e.obj)
		}
		return true
	})
	return all
}
