package server

import (
	"errors"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server/reply"
)

// danglingList is what the answer says, for encoding/json to write.
type danglingList struct {
	list[danglingItem]
	Unanswered []unansweredItem `json:"unanswered"`
}

// danglingItem is a reference to what is not there, or without a To a selector
// that selects nothing.
type danglingItem struct {
	From     graphNode  `json:"from"`
	To       *graphNode `json:"to,omitempty"`
	Edge     string     `json:"edge"`
	Why      string     `json:"why"`
	Selector string     `json:"selector,omitempty"`

	NamespaceSelector string `json:"namespaceSelector,omitempty"`
}

func danglingAnswer(found *graph.DanglingAnswer) *danglingList {
	answer := &danglingList{Unanswered: unansweredItems(found.Unanswered)}
	answer.list = list[danglingItem]{Kind: "DanglingList", APIVersion: apiVersion, Items: []danglingItem{}}
	answer.Metadata.Truncated = found.Truncated
	for _, d := range found.Items {
		item := danglingItem{From: nodeOf(d.From), Edge: d.Edge, Why: d.Why, Selector: d.Selector, NamespaceSelector: d.NamespaceSelector}
		if d.To != nil {
			to := nodeOf(*d.To)
			item.To = &to
		}
		answer.Items = append(answer.Items, item)
	}
	return answer
}

// TestDanglingJSON compares what is written by hand with what encoding/json makes of it.
func TestDanglingJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "pods", "deployments.apps", "team-1", `q"uote`, "back\\slash", "ümlaut", "<&>", "new\nline", "\xff", "\u2028"}
	text := func() string { return texts[r.IntN(len(texts))] }
	node := func() graph.Node {
		return graph.Node{
			Resource: text(), Kind: text(), Key: cache.Key{Namespace: text(), Name: text()}, UID: text(), State: cache.State(text()),
			Depth: r.IntN(3), Missing: r.IntN(2) == 0, Unknown: r.IntN(3) == 0, Hub: r.IntN(4) == 0,
		}
	}
	for n := range 300 {
		found := &graph.DanglingAnswer{Items: []graph.Dangling{}, Truncated: n%2 == 0, Unanswered: make([]cache.View, n%3)}
		for range n % 7 {
			d := graph.Dangling{From: node(), Edge: text(), Why: text(), Selector: text(), NamespaceSelector: text()}
			if to := node(); r.IntN(3) > 0 {
				d.To = &to
			}
			found.Items = append(found.Items, d)
		}
		missing := make([]unansweredItem, n%2)
		answer := danglingAnswer(found)
		answer.Unanswered = append(answer.Unanswered, missing...)
		list, err := newDanglingParts(found, missing)
		if err != nil {
			t.Fatal(err)
		}
		got, rec := list.json(), httptest.NewRecorder()
		out := reply.New(t.Context(), rec)
		if err := errors.Join(list.write(out), out.Finish()); err != nil || rec.Body.String() != string(got)+"\n" {
			t.Fatalf("in parts it is %s, %v, want\n%s", rec.Body, err, got)
		}
		out.Release()
		for _, pretty := range []bool{false, true} {
			want, _ := reply.JSON(answer, pretty)
			if pretty {
				got, err = reply.AppendIndented(nil, got, "")
			}
			if err != nil || string(got) != string(want) {
				t.Fatalf("%s, %v, want\n%s", got, err, want)
			}
		}
	}
}
