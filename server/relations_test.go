package server

import (
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/graph"
)

// TestDeclared: what the options declare is followed and found.
func TestDeclared(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.References = []graph.Rule{{Edge: "shows", From: "pods", Path: "status.phase", To: "nodes"}}
		o.SearchTexts = map[string][]string{"pods": {"status.phase"}}
	})
	var got graphAnswer
	w.getJSON(t, "/v1/graph/pods/a/one?edges=shows", &got)
	if len(got.Edges) != 1 || got.Edges[0] != (graphEdge{"pods/a/one", "nodes/-/Running", "shows", "status.phase"}) {
		t.Errorf("edges = %+v", got.Edges)
	}
	var found searchAnswer
	if w.getJSON(t, "/v1/search?q=text:running", &found); found.Total != 3 {
		t.Errorf("%d objects found by a declared text, want 3", found.Total)
	}
}

func TestDeclaredMistakes(t *testing.T) {
	for _, o := range []Options{
		{References: []graph.Rule{{Edge: "e", From: "pods", Path: "a..b"}}},
		{SearchTexts: map[string][]string{"pods": {"a..b"}}},
	} {
		o.Caches = &fakeCaches{}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "a..b") {
			t.Errorf("New(%+v) = %v, want an error that names the path", o, err)
		}
	}
}
