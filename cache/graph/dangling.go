package graph

import (
	"cmp"
	"context"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// DanglingQuery asks for references to what is not there, and for selectors
// that select nothing.
type DanglingQuery struct {
	// Namespaces are globs over the namespace of the holder; none means all.
	Namespaces []string
	// Kinds are the resources that either hold or are named; none means all.
	Kinds []schema.GroupResource
	// Limit bounds the answer, if it is positive.
	Limit int
}

// Dangling is one reference to what is not there, or one selector that selects
// nothing.
type Dangling struct {
	From Node
	// To is what is named; nil for a selector.
	To   *Node
	Edge string
	Why  string
	// Selector is the one that selects no pod, in the namespaces that
	// NamespaceSelector selects if it is not empty; without a Selector it is that
	// which selects no namespace.
	Selector, NamespaceSelector string
}

// DanglingAnswer lists what dangles, by holder.
type DanglingAnswer struct {
	Items     []Dangling
	Truncated bool
	// Unanswered are resources that cannot be read: nothing is said of
	// references to them or from them.
	Unanswered []cache.View
}

// Dangling finds every reference to what the cluster does not have and every
// selector that selects nothing. References marked optional, those of Events,
// and selectors that are empty are no faults and left out.
func (g *Graph) Dangling(ctx context.Context, q DanglingQuery) (*DanglingAnswer, error) {
	g.asking.RLock()
	defer g.asking.RUnlock()
	if err := g.updater.Update(ctx, g.mu.RLocker()); err != nil {
		return nil, err
	}
	defer g.mu.RUnlock()
	found := g.danglingReferences(&q)
	selectors, err := g.danglingSelectors(ctx, &q)
	if err != nil {
		return nil, err
	}
	found = append(found, selectors...)
	slices.SortFunc(found, func(a, b dangling) int {
		return cmp.Or(g.compareNodes(a.from, b.from), cmp.Compare(a.rule.why, b.rule.why), g.compareNodes(a.to, b.to), cmp.Compare(a.position, b.position))
	})
	a := &DanglingAnswer{Items: []Dangling{}, Unanswered: g.unanswered(q.Kinds)}
	if a.Truncated = q.Limit > 0 && len(found) > q.Limit; a.Truncated {
		found = found[:q.Limit]
	}
	for _, d := range found {
		a.Items = append(a.Items, g.item(d))
	}
	return a, nil
}

// dangling is a Dangling by its nodes. Of a selector both are the holder.
type dangling struct {
	from, to  nodeID
	rule      *compiled
	selection *selection // nil: a reference
	position  int        // of the selection
}

func (g *Graph) item(d dangling) Dangling {
	out := Dangling{From: g.node(d.from), Edge: d.rule.Edge, Why: d.rule.why}
	if d.selection != nil {
		out.Selector, out.NamespaceSelector = d.selection.text()
		return out
	}
	to := g.node(d.to)
	out.To = &to
	return out
}

func (g *Graph) danglingReferences(q *DanglingQuery) (found []dangling) {
	for i := range g.nodes {
		id := nodeID(i)
		if len(g.nodes[id].by) == 0 || g.object(id) != id || !g.missing(id) {
			continue
		}
		for _, e := range g.nodes[id].by {
			rule := g.rules[e.rule]
			if !rule.loose && !e.optional && q.matches(g.state, e.other, id) {
				found = append(found, dangling{from: e.other, to: id, rule: rule})
			}
		}
	}
	return found
}

func (g *Graph) danglingSelectors(ctx context.Context, q *DanglingQuery) (found []dangling, err error) {
	for id, all := range g.selections {
		if !q.matches(g.state, id, id) {
			continue
		}
		for i := range all {
			nothing, err := g.selectsNothing(ctx, id, &all[i])
			if err != nil {
				return nil, err
			}
			if nothing {
				found = append(found, dangling{from: id, to: id, rule: all[i].rule, selection: &all[i], position: i})
			}
		}
	}
	return found, nil
}

// selectsNothing reports whether there is nothing that a selection selects. One
// that would take anything is no fault, nor one of which that cannot be known.
func (g *Graph) selectsNothing(ctx context.Context, id nodeID, s *selection) (bool, error) {
	if (s.pods == nil || s.pods.Empty()) && (s.namespaces == nil || s.namespaces.Empty()) {
		return false, nil
	}
	k, found, ok, err := g.selected(ctx, id, s)
	switch {
	case !ok || err != nil || len(found) > 0:
		return false, err
	case s.namespaces == nil:
		return g.all[k].covers(g.nodes[id].key.Namespace), nil
	default:
		return g.all[k].covers(""), nil
	}
}

// matches reports whether q asks for what from says about to.
func (q *DanglingQuery) matches(s *state, from, to nodeID) bool {
	if len(q.Namespaces) > 0 && !slices.ContainsFunc(q.Namespaces, func(glob string) bool {
		ok, _ := path.Match(glob, s.nodes[from].key.Namespace) // checked by whoever parsed it
		return ok && s.nodes[from].key.Namespace != ""
	}) {
		return false
	}
	return wanted(q.Kinds, s.kindOf(from)) || wanted(q.Kinds, s.kindOf(to))
}
