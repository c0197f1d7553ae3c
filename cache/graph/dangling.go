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
	// Selector is the one that selects nothing.
	Selector string
}

// DanglingAnswer lists what dangles, by holder.
type DanglingAnswer struct {
	Items     []Dangling
	Truncated bool
	// Unanswered are resources that cannot be read: nothing is said of
	// references to them or from them.
	Unanswered []cache.Status
}

// Dangling finds every reference to what the cluster does not have and every
// selector that selects nothing. References marked optional, those of Events,
// and selectors that are empty are no faults and left out.
func (g *Graph) Dangling(ctx context.Context, q DanglingQuery) (*DanglingAnswer, error) {
	if err := g.updater.Update(ctx); err != nil {
		return nil, err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	found := g.danglingReferences(&q)
	selectors, err := g.danglingSelectors(ctx, &q)
	if err != nil {
		return nil, err
	}
	found = append(found, selectors...)
	slices.SortFunc(found, func(a, b dangling) int {
		return cmp.Or(g.compareNodes(a.from, b.from), cmp.Compare(a.rule.why, b.rule.why), g.compareNodes(a.to, b.to))
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
	from, to nodeID
	rule     *compiled
}

func (g *Graph) item(d dangling) Dangling {
	out := Dangling{From: g.node(d.from), Edge: d.rule.Edge, Why: d.rule.why}
	if selector := g.selectors[d.from]; d.rule.Edge == selects && selector != nil {
		out.Selector = selector.String()
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
				found = append(found, dangling{e.other, id, rule})
			}
		}
	}
	return found
}

func (g *Graph) danglingSelectors(ctx context.Context, q *DanglingQuery) (found []dangling, err error) {
	pods, ok := g.podKind()
	if !ok {
		return nil, nil
	}
	for id, selector := range g.selectors {
		if selector.Empty() || !g.all[pods].covers(g.nodes[id].key.Namespace) || !q.matches(g.state, id, id) {
			continue
		}
		objects, err := g.selected(ctx, pods, id)
		if err != nil {
			return nil, err
		}
		if len(objects) == 0 {
			found = append(found, dangling{id, id, g.selectionRule(id)})
		}
	}
	return found, nil
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
