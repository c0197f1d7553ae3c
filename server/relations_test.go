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

// TestDeclareAgain: what is declared while it runs is followed and found, and
// what did not change is not read again.
func TestDeclareAgain(t *testing.T) {
	w := newWorld(t)
	edges := func() int {
		var got graphAnswer
		w.getJSON(t, "/v1/graph/pods/a/one?direction=out&depth=1&kinds=nodes", &got)
		return len(got.Edges)
	}
	texts := func() int {
		var found searchAnswer
		w.getJSON(t, "/v1/search?q=text:running", &found)
		return found.Total
	}
	check := func(what string, wantEdges, wantTexts int) {
		t.Helper()
		if e, n := edges(), texts(); e != wantEdges || n != wantTexts {
			t.Errorf("%s: %d edges and %d texts, want %d and %d", what, e, n, wantEdges, wantTexts)
		}
	}
	declare := func(references []graph.Rule, texts map[string][]string) {
		t.Helper()
		if err := w.Declare(references, texts); err != nil {
			t.Fatal(err)
		}
	}
	shows := []graph.Rule{{Edge: "shows", From: "pods", Path: "status.phase", To: "nodes"}}
	phase := map[string][]string{"pods": {"status.phase"}}
	check("before", 1, 0)
	declare(shows, nil)
	check("with a reference", 2, 0)
	declare(shows, phase)
	check("with both", 2, 3)
	if err := w.Declare([]graph.Rule{{Edge: "e", From: "pods", Path: "a..b"}}, nil); err == nil {
		t.Error("a bad path is no error")
	}
	check("after a mistake", 2, 3)
	declare(nil, nil)
	check("without", 1, 0)
}
