package cache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
)

// countingFilter counts how often it was evaluated. It has no value where the text is "bad".
type countingFilter struct {
	pathFilter
	evaluated *atomic.Int64
}

func (f countingFilter) Match(ctx context.Context, raw []byte) (ok bool, cost uint64, err error) {
	f.evaluated.Add(1)
	if bad, _, _ := wantsAt(raw, f.path, "13"); bad {
		return false, 1, &EvalError{Message: "13 is no number"}
	}
	return f.pathFilter.Match(ctx, raw)
}

// TestVerdicts: a question that is asked again tests the texts alone that have come since, and
// finds what a new copy would, however the objects have changed.
func TestVerdicts(t *testing.T) {
	s := numberedStore(t, 600)
	path := mustPaths(t, "metadata.resourceVersion")[0]
	var evaluated atomic.Int64
	q := Query{Filter: countingFilter{pathFilter{path, "1500", &atLeast{}}, &evaluated}}
	other := Query{Filter: countingFilter{pathFilter{path, "1501", &atLeast{}}, &evaluated}}
	ask := func(q Query, want int) int64 {
		t.Helper()
		before := evaluated.Load()
		found, err := s.Select(t.Context(), q)
		if err != nil || len(found.Objects) != want || found.Faults.Count != 1 || found.Faults.First != "13 is no number" || found.Faults.Key.Name != "thing-12" {
			t.Fatalf("%d objects, %v, %v", len(found.Objects), found.Faults, err)
		}
		return evaluated.Load() - before
	}
	for range columnAfter + 2 {
		ask(q, 0)
	}
	if n := ask(q, 0); n > 1 { // what has no value is looked at again
		t.Errorf("%d objects are tested once more", n)
	}
	for i := range 20 {
		s.Apply("", Modified, numbered(t, s, 100+i, 1, 1490+i))
	}
	ask(q, 1) // the new ones have no numbers
	ask(q, 1)
	if n := ask(q, 1); n > 1 {
		t.Errorf("%d objects are tested once more after changes", n)
	}
	ask(other, 1)
	for i := range verdictsKept + 2 {
		ask(Query{Filter: countingFilter{pathFilter{path, fmt.Sprint(1502 + i), &atLeast{}}, &evaluated}}, 1)
	}
	if n := ask(other, 1); n < 600 {
		t.Errorf("%d objects are tested for a question that was asked long before: more are kept than should be", n)
	}
	for version := 2000; version < 2000+3*codeRows; version++ { // the texts get other numbers meanwhile
		s.Apply("", Modified, numbered(t, s, 100+version%500, 1, version))
		if version%500 == 499 {
			ask(q, 0)
			ask(other, 0)
		}
	}
	s.Apply("", Modified, numbered(t, s, 400, 1, 99_000))
	ask(q, 0)
	ask(q, 0)
	if n := ask(q, 0); n > 1 {
		t.Errorf("%d objects are tested once more after all were changed", n)
	}
}
