package graph

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

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
	// Sight is what is looked at. What it does not see is not known to be there, nor
	// to be missing.
	Sight cache.Sight
}

// Dangling is one reference to what is not there, or one selector that selects
// nothing.
type Dangling struct {
	From Node
	// To is what is named, the same for all that name it and not to be changed; nil for a
	// selector.
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
	// Unanswered are resources that cannot be read, of those of which something may
	// be seen: nothing is said of references to them or from them.
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
	l := &loose{g.seenBy(q.Sight), g.rules, &q}
	found := l.references()
	selectors, err := l.selectors(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, selectors...)
	found = l.sorted(found)
	a := &DanglingAnswer{Unanswered: l.unanswered(q.Kinds)}
	if a.Truncated = q.Limit > 0 && len(found) > q.Limit; a.Truncated {
		found = found[:q.Limit]
	}
	a.Items = make([]Dangling, len(found))
	missing := map[nodeID]*Node{} // most are named by many
	for i, d := range found {
		a.Items[i] = l.item(d, missing)
	}
	return a, nil
}

// loose is one answer being found. The Graph is locked for reading meanwhile.
type loose struct {
	sighted
	rules []*compiled
	query *DanglingQuery
}

// dangling is a Dangling by positions: of 100,000 pods there may be as many or more. Of a
// selector both nodes are the holder.
type dangling struct {
	from, to  nodeID
	rule      uint32 // of a reference, among the rules
	selection int32  // among those of the holder; or noSelection
}

const noSelection = -1

func (l *loose) ruleOf(d dangling) *compiled {
	if d.selection == noSelection {
		return l.rules[d.rule]
	}
	return l.selections[d.from][d.selection].rule
}

// holder is what decides, nearly always, where something dangling is among what its namespace
// has of one kind: taken out of the nodes once, it need not be looked for again with each
// comparison.
type holder struct {
	name string
	at   uint32 // in what was found
}

// place is where holders are that are told apart by their names.
type place struct {
	kind      int // by name
	namespace string
}

// sorted orders by holder. References are found by what they name, so that those of a namespace
// mostly come together, and in the order of their names.
func (l *loose) sorted(found []dangling) []dangling {
	kinds := l.kindOrder()
	places := map[place]*[]holder{}
	var last place
	var holders *[]holder
	for i, d := range found {
		n := l.nodeOf(d.from)
		if at := (place{kinds[n.kind], n.namespace.Value()}); holders == nil || at != last {
			last = at
			if holders = places[at]; holders == nil {
				holders = new([]holder)
				places[at] = holders
			}
		}
		*holders = append(*holders, holder{n.name, uint32(i)})
	}
	sorted := make([]dangling, 0, len(found))
	for _, at := range slices.SortedFunc(maps.Keys(places), func(a, b place) int {
		return cmp.Or(a.kind-b.kind, strings.Compare(a.namespace, b.namespace))
	}) {
		slices.SortFunc(*places[at], func(a, b holder) int {
			if c := strings.Compare(a.name, b.name); c != 0 {
				return c
			}
			return l.compare(found[a.at], found[b.at])
		})
		for _, h := range *places[at] {
			sorted = append(sorted, found[h.at])
		}
	}
	return sorted
}

// compare orders what two holders of the same name have, or one has.
func (l *loose) compare(a, b dangling) int {
	if c := l.compareNodes(a.from, b.from); c != 0 {
		return c
	}
	if c := cmp.Compare(l.ruleOf(a).why, l.ruleOf(b).why); c != 0 {
		return c
	}
	if c := l.compareNodes(a.to, b.to); c != 0 {
		return c
	}
	return cmp.Compare(a.selection, b.selection)
}

// item shows what dangles. missing has the Node of each id that was named before.
func (l *loose) item(d dangling, missing map[nodeID]*Node) Dangling {
	rule := l.ruleOf(d)
	out := Dangling{From: l.node(d.from), Edge: rule.Edge, Why: rule.why}
	if d.selection != noSelection {
		out.Selector, out.NamespaceSelector = l.selections[d.from][d.selection].text()
		return out
	}
	if out.To = missing[d.to]; out.To == nil {
		to := l.node(d.to)
		out.To, missing[d.to] = &to, &to
	}
	return out
}

// references lists those to what is known not to be there.
func (l *loose) references() (found []dangling) {
	var one [1]uint32
	for id := range nodeID(l.nodes.End()) {
		by := l.nodeOf(id).mentions()
		if len(by) == 0 || l.object(id) != id || !l.missing(id) {
			continue
		}
		for _, m := range by {
			rule := l.rules[m.rule]
			if rule.loose || m.optional {
				continue
			}
			for _, holder := range l.holders(m, &one) {
				if from := nodeID(holder); l.sees(from) && l.query.matches(l.state, from, id) {
					found = append(found, dangling{from, id, uint32(m.rule), noSelection})
				}
			}
		}
	}
	return found
}

// selectors lists those of which it is known that they select nothing.
func (l *loose) selectors(ctx context.Context) (found []dangling, err error) {
	for id, all := range l.selections {
		if !l.sees(id) || !l.query.matches(l.state, id, id) {
			continue
		}
		for i := range all {
			nothing, err := l.selectsNothing(ctx, id, &all[i])
			if err != nil {
				return nil, err
			}
			if nothing {
				found = append(found, dangling{from: id, to: id, selection: int32(i)})
			}
		}
	}
	return found, nil
}

// selectsNothing reports whether there is nothing that a selection selects. One
// that would take anything is no fault, nor one of which that cannot be known.
func (l *loose) selectsNothing(ctx context.Context, id nodeID, s *selection) (bool, error) {
	if (s.pods == nil || s.pods.Empty()) && (s.namespaces == nil || s.namespaces.Empty()) {
		return false, nil
	}
	found, err := l.selected(ctx, id, s)
	switch {
	case err != nil || !found.known || !found.all || len(found.objects) > 0:
		return false, err
	case s.namespaces == nil:
		return l.all[found.kind].covers(l.nodeOf(id).namespace.Value()), nil
	default:
		return l.all[found.kind].covers(""), nil
	}
}

// matches reports whether q asks for what from says about to.
func (q *DanglingQuery) matches(s *state, from, to nodeID) bool {
	if len(q.Namespaces) > 0 && !slices.ContainsFunc(q.Namespaces, func(glob string) bool {
		namespace := s.nodeOf(from).namespace.Value()
		ok, _ := path.Match(glob, namespace) // checked by whoever parsed it
		return ok && namespace != ""
	}) {
		return false
	}
	return wanted(q.Kinds, s.kindOf(from)) || wanted(q.Kinds, s.kindOf(to))
}
