package graph

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// Direction says which edges of a node are followed.
type Direction int

// Edges lead from what owns, uses, selects or routes to what is owned, used,
// selected or routed to.
const (
	Both Direction = iota
	Out            // towards what the object needs and consists of
	In             // towards what needs the object
)

// Query asks for the surroundings of one object.
type Query struct {
	Resource schema.GroupResource
	Key      cache.Key
	// Depth is how many edges away from the object the answer reaches.
	Depth     int
	Direction Direction
	// Kinds are the resources walked to; none means all.
	Kinds []schema.GroupResource
	// Edges are the kinds of edges followed. None means all but "contains",
	// which relates a namespace to everything in it and is only followed from a
	// namespace asked for.
	Edges []string
	// Through are resources whose hubs are walked through.
	Through []schema.GroupResource
	// Limit bounds the nodes of the answer; DefaultLimit if it is not positive.
	Limit int
	// Sight is what is walked through. The answer is the same as if all else were
	// not there: what of it is named by what is seen is in the answer as a name.
	Sight cache.Sight
}

// walk is one answer being found. The Graph is locked for reading meanwhile.
type walk struct {
	sighted
	rules     []*compiled
	ctx       context.Context
	query     *Query
	root      nodeID
	depths    map[nodeID]int
	order     []nodeID
	edges     []walked
	seen      map[walked]bool
	reaches   map[string][]reach // by namespace, as far as it was asked
	crowds    map[nodeID]bool    // what a crowd selects
	truncated bool
}

// walked is an edge of an answer.
type walked struct {
	from, to nodeID
	rule     *compiled
}

// hop is an edge seen from one end: to the node other, out from the one at hand
// or into it.
type hop struct {
	other nodeID
	rule  *compiled
	out   bool
}

// run walks breadth first, so that a limit cuts off what is farthest.
func (w *walk) run() error {
	w.visit(w.root, 0)
	for i := 0; i < len(w.order); i++ {
		id := w.order[i]
		depth := w.depths[id]
		if depth == w.query.Depth || w.stops(id) || !w.sees(id) {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		hops, err := w.hops(id)
		if err != nil {
			return err
		}
		for _, h := range hops {
			w.take(id, h, depth+1)
		}
	}
	return nil
}

func (w *walk) visit(id nodeID, depth int) {
	w.depths[id] = depth
	w.order = append(w.order, id)
}

// stops reports whether a node is a hub that is not walked through.
func (w *walk) stops(id nodeID) bool {
	return w.kindOf(id).hub(w.nodeOf(id).name) && !w.through(id)
}

// through reports whether the query wants to go on from a node, hub or not.
func (w *walk) through(id nodeID) bool {
	return id == w.root || slices.Contains(w.query.Through, w.kindOf(id).view.Spec.GVR.GroupResource())
}

// crowd is how many may name an object before it is a hub to them.
const crowd = 100

// crowded reports whether so many name a node that they have nothing in common
// but that. It is not walked through to them, only to what it needs itself.
func (w *walk) crowded(id nodeID) bool {
	if w.crowds[id] {
		return true
	}
	by := w.nodeOf(id).mentions()
	if !w.often(by) || w.through(id) {
		return false
	}
	n := 0
	var one [1]uint32
	for _, m := range by {
		if w.rules[m.rule].flip { // what it owns is its own
			continue
		}
		for _, holder := range w.holders(m, &one) {
			if w.sees(nodeID(holder)) {
				if n++; n > crowd {
					return true
				}
			}
		}
	}
	return false
}

// often reports whether there are more mentions than a crowd has.
func (s *state) often(by []mention) bool {
	n := 0
	for _, m := range by {
		if n += s.bundle(m.bundle).holders.Len(); n > crowd {
			return true
		}
	}
	return false
}

// take enters an edge and the node at its other end.
func (w *walk) take(id nodeID, h hop, depth int) {
	if _, ok := w.depths[h.other]; !ok {
		if len(w.order) >= w.query.Limit {
			w.truncated = true
			return
		}
		w.visit(h.other, depth)
	}
	e := walked{id, h.other, h.rule}
	if !h.out {
		e.from, e.to = e.to, e.from
	}
	if !w.seen[e] {
		w.seen[e] = true
		w.edges = append(w.edges, e)
	}
}

// hops lists the edges of a node that the query follows, in a stable order.
func (w *walk) hops(id nodeID) ([]hop, error) {
	var hops []hop
	add := func(h hop) {
		if w.wants(h) {
			hops = append(hops, h)
		}
	}
	w.references(id, add)
	w.definitions(id, add)
	if err := w.selections(id, add); err != nil {
		return nil, err
	}
	if err := w.contents(id, add); err != nil {
		return nil, err
	}
	slices.SortFunc(hops, func(a, b hop) int {
		return cmp.Or(w.compareNodes(a.other, b.other), cmp.Compare(a.rule.Edge, b.rule.Edge), cmp.Compare(a.rule.why, b.rule.why))
	})
	return hops, nil
}

func (w *walk) wants(h hop) bool {
	q := w.query
	if q.Direction == Out && !h.out || q.Direction == In && h.out {
		return false
	}
	if len(q.Edges) > 0 && !slices.Contains(q.Edges, h.rule.Edge) {
		return false
	}
	return len(q.Kinds) == 0 || slices.Contains(q.Kinds, w.kindOf(h.other).view.Spec.GVR.GroupResource())
}

// references visits what a node names and what names it, also by its UID.
func (w *walk) references(id nodeID, add func(hop)) {
	w.state.references(id, func(e edge) {
		rule := w.rules[e.rule]
		add(hop{w.object(e.other), rule, !rule.flip})
	})
	n := w.nodeOf(id)
	if !w.crowded(id) {
		w.named(n.mentions(), add)
	}
	if n.present {
		if a, ok := w.findAlias(w.aliasOf(id)); ok {
			w.named(w.nodeOf(a).mentions(), add)
		}
	}
}

func (w *walk) named(by []mention, add func(hop)) {
	var one [1]uint32
	for _, m := range by {
		rule := w.rules[m.rule]
		for _, holder := range w.holders(m, &one) {
			if w.sees(nodeID(holder)) {
				add(hop{nodeID(holder), rule, rule.flip})
			}
		}
	}
}

// definitions visits the objects of a CustomResourceDefinition, and of a custom
// object its definition.
func (w *walk) definitions(id nodeID, add func(hop)) {
	n := w.nodeOf(id)
	crd, ok := w.byResource[schema.ParseGroupResource(crds)]
	if !ok || !n.present {
		return
	}
	if n.kind != crd {
		name := w.all[n.kind].view.Spec.GVR.GroupResource().String()
		if definition, ok := w.find(crd, cache.Key{Name: name}); ok && w.nodeOf(definition).present && w.sees(definition) {
			add(hop{definition, definesRule, false})
		}
		return
	}
	k, ok := w.byResource[schema.ParseGroupResource(n.name)]
	if !ok {
		return
	}
	for number := range w.all[k].byKey.All() {
		if object := nodeID(number); w.nodeOf(object).present && w.sees(object) {
			add(hop{object, definesRule, true})
		}
	}
}

// contents visits the objects of a namespace, and of an object its namespace.
func (w *walk) contents(id nodeID, add func(hop)) error {
	n := w.nodeOf(id)
	namespaces, ok := w.byResource[namespaceResource]
	if !ok {
		return nil
	}
	if !slices.Contains(w.query.Edges, namespaceRule.Edge) && (n.kind != namespaces || id != w.root) {
		return nil
	}
	if n.kind != namespaces {
		if own := n.namespace.Value(); own != "" {
			if ns, ok := w.find(namespaces, cache.Key{Name: own}); ok && w.knows(ns) {
				add(hop{ns, namespaceRule, false})
			}
		}
		return nil
	}
	for i, k := range w.all {
		if !k.view.Readable() || !k.view.Spec.Namespaced || !w.scopes[i].Touches(n.name) {
			continue
		}
		found, err := w.selectOf(w.ctx, kindID(i), cache.Query{Terms: []cache.Term{{Index: cache.NamespaceIndex, Value: n.name}}})
		if err != nil {
			return err
		}
		w.each(kindID(i), found, func(o nodeID) { add(hop{o, namespaceRule, true}) })
	}
	return nil
}

// each visits the nodes of objects. One that came into its store after the
// Graph was brought up to date has none yet.
func (w *walk) each(k kindID, objects []*cache.Object, visit func(nodeID)) {
	for _, o := range objects {
		if id, ok := w.find(k, o.Key()); ok && w.nodeOf(id).present {
			visit(id)
		}
	}
}
