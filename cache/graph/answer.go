package graph

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// Node is an object of an answer, or what a reference names.
type Node struct {
	// Resource is as kubectl names it. Of a reference to a kind that the
	// cluster does not know it is the kind with its group.
	Resource string
	Kind     string
	Key      cache.Key
	// UID is that of the object; of a missing owner, the one it would have.
	UID string
	// State of the resource; empty if the cluster does not know it.
	State cache.State
	// Depth is how many edges it is away from the object asked for.
	Depth int
	// Missing: it is named and the cluster does not have it.
	Missing bool
	// Unknown: it is named, and the copy cannot tell whether it is there, or who
	// asks may not see. Of the latter there is what the reference says, and nothing
	// else: no State, and a UID only if it is named by that.
	Unknown bool
	// Hub: it was not walked through, or not to those that name it.
	Hub bool
}

// Edge is a relation of two nodes, by their positions in the answer.
type Edge struct {
	From, To int
	Edge     string
	// Why is the path of the reference, or the selector, that makes the edge.
	Why string
}

// Answer is the surroundings of an object: the object first, then by depth.
type Answer struct {
	// View is that of the resource asked about, and Version one up to which its
	// part of the answer is complete. Without a Store the resource cannot be read,
	// and the answer has only what others tell of it.
	View    *cache.View
	Version string

	Nodes []Node
	Edges []Edge
	// Truncated: there is more than the limit let in.
	Truncated bool
	// Unanswered are the resources of the cluster that cannot be read and of which
	// something may be seen; what of them would be related is not in the answer.
	Unanswered []cache.View
}

// DefaultLimit is how many nodes an answer has at most unless it is said.
const DefaultLimit = 500

// Walk answers q. It returns cache.ErrNotFound for an object that is not seen, and
// for one that neither is there nor is named by another that is seen, then with an
// Answer that has its View alone; and for a resource that is unknown, without an
// Answer.
func (g *Graph) Walk(ctx context.Context, q Query) (*Answer, error) {
	g.asking.RLock()
	defer g.asking.RUnlock()
	if err := g.updater.Update(ctx, g.mu.RLocker()); err != nil {
		return nil, err
	}
	defer g.mu.RUnlock()
	k, ok := g.byResource[q.Resource]
	if !ok {
		return nil, cache.ErrNotFound
	}
	seen := g.seenBy(q.Sight)
	root, ok := g.find(k, q.Key)
	if ok = ok && seen.knows(root); !ok && !g.all[k].known {
		return nil, cache.ErrNotFound // that others name the resource does not make it one
	}
	view := g.all[k].view
	a := &Answer{View: view.SeenBy(seen.scopes[k]), Version: g.all[k].version}
	if !ok {
		return a, cache.ErrNotFound
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	w := &walk{sighted: seen, rules: g.rules, ctx: ctx, query: &q, root: root, depths: map[nodeID]int{}, seen: map[walked]bool{},
		reaches: map[string][]reach{}, crowds: map[nodeID]bool{}}
	if err := w.run(); err != nil {
		return nil, err
	}
	w.answer(a)
	a.Unanswered = w.unanswered(q.Kinds)
	return a, nil
}

// answer writes down what was found.
func (w *walk) answer(a *Answer) {
	a.Truncated, a.Edges = w.truncated, []Edge{}
	at := make(map[nodeID]int, len(w.order))
	for i, id := range w.order {
		at[id] = i
		n := w.node(id)
		n.Depth, n.Hub = w.depths[id], w.sees(id) && (w.stops(id) || w.crowded(id))
		a.Nodes = append(a.Nodes, n)
	}
	for _, e := range w.edges {
		a.Edges = append(a.Edges, Edge{at[e.from], at[e.to], e.rule.Edge, e.rule.why})
	}
}

// node describes a node to those who ask.
func (s *sighted) node(id nodeID) Node {
	n, k := s.nodeOf(id), s.kindOf(id)
	out := Node{Resource: k.name(), Kind: k.group.Kind, Key: n.key(), UID: s.uid(id)}
	if !s.sees(id) {
		out.Unknown = true
		return out
	}
	out.State, out.Missing = k.view.State, s.missing(id)
	out.Unknown = !n.present && !out.Missing
	return out
}

// unanswered are the resources among kinds, or all, that cannot be read, less those
// of which nothing may be seen anyway.
func (s *sighted) unanswered(kinds []schema.GroupResource) []cache.View {
	out := []cache.View{}
	for i, k := range s.all {
		if k.known && !k.view.Readable() && !s.scopes[i].Empty() && wanted(kinds, k) {
			out = append(out, *k.view.SeenBy(s.scopes[i]))
		}
	}
	return out
}

func wanted(kinds []schema.GroupResource, k *kind) bool {
	for _, want := range kinds {
		if want == k.view.Spec.GVR.GroupResource() {
			return true
		}
	}
	return len(kinds) == 0
}
