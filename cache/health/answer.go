package health

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

var zero time.Time

// Query asks for the health of a cluster.
type Query struct {
	// Resources, Namespaces (globs) and Labels select the objects that are counted and
	// listed; nil is all. Causes are looked for everywhere.
	Resources  []schema.GroupResource
	Namespaces []string
	Labels     labels.Selector
	// Statuses are those listed; none is Bad and Progressing.
	Statuses []Status
	// All lists also what belongs to something that is listed for the same trouble.
	All bool
	// Limit is how many of the worst are listed; DefaultLimit if not positive.
	Limit int
	// Sight is what is looked at. The answer is the same as if there were nothing else.
	Sight cache.Sight
}

// DefaultLimit is how many objects an answer has at most unless it is said.
const DefaultLimit = 100

// Counts are how many objects are in each Status.
type Counts [statuses]int

// ResourceCounts are those of one resource.
type ResourceCounts struct {
	Resource, Kind string
	Counts
}

// NamespaceCounts are those of one namespace.
type NamespaceCounts struct {
	Namespace string
	Counts
}

// Object is one object and its health.
type Object struct {
	Resource string // as kubectl names it
	Kind     string
	Key      cache.Key
	Health
}

// Item is an object as it is told of, with what it owns.
type Item struct {
	Object
	// Cause is the object among what it owns that shows why; nil if it shows it itself.
	Cause *Object
	// Affected is how many objects that it owns are not good, less those that are so
	// because of others among them.
	Affected int
}

// Answer is the health of a cluster.
type Answer struct {
	Summary    Counts
	Resources  []ResourceCounts  // in order
	Namespaces []NamespaceCounts // in order; objects of cluster scope are in none
	Items      []Item            // the worst first
	Remaining  int               // items beyond the limit
	// Unanswered are resources that cannot be read and of which something may be seen.
	Unanswered []cache.View
}

// Ask answers q.
func (x *Index) Ask(ctx context.Context, q Query) (*Answer, error) {
	t, err := x.tree(ctx, q.Sight)
	if err != nil {
		return nil, err
	}
	a := &Answer{Resources: []ResourceCounts{}, Namespaces: []NamespaceCounts{}, Unanswered: t.unanswered(q.Resources)}
	found, err := t.count(ctx, &q, a)
	if err != nil {
		return nil, err
	}
	if !q.All {
		found = outermost(found)
	}
	t.worstFirst(found)
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	if len(found) > limit {
		a.Remaining = len(found) - limit
		found = found[:limit]
	}
	a.Items = make([]Item, 0, len(found))
	for _, n := range found {
		a.Items = append(a.Items, t.item(n))
	}
	return a, nil
}

func (q *Query) lists(s Status) bool {
	if len(q.Statuses) == 0 {
		return s == Bad || s == Progressing
	}
	return slices.Contains(q.Statuses, s)
}

// count counts all that q selects and returns what is to be listed.
func (t *tree) count(ctx context.Context, q *Query, a *Answer) (found []*node, err error) {
	namespaces := map[string]*Counts{}
	for i := range t.kinds {
		k := &t.kinds[i]
		if t.readers[i] == nil || !wanted(q.Resources, k) {
			continue
		}
		selected, err := t.readers[i].Select(ctx, cache.Query{Namespaces: q.Namespaces, Labels: q.Labels})
		if err != nil {
			return nil, err
		}
		if len(selected.Objects) == 0 {
			continue
		}
		counts := ResourceCounts{Resource: k.view.Spec.Name(), Kind: k.view.Spec.Kind}
		in := place{}
		for _, o := range selected.Objects {
			n, status := t.of(kindID(i), o)
			counts.Counts[status]++
			if ns := o.Namespace(); ns != "" {
				in.of(namespaces, ns)[status]++
			}
			if q.lists(status) {
				if n == nil {
					n = &node{kind: kindID(i), key: o.Key(), own: good}
				}
				found = append(found, n)
			}
		}
		a.Resources = append(a.Resources, counts)
		for s, n := range counts.Counts {
			a.Summary[s] += n
		}
	}
	for ns, c := range namespaces {
		a.Namespaces = append(a.Namespaces, NamespaceCounts{ns, *c})
	}
	slices.SortFunc(a.Resources, func(a, b ResourceCounts) int { return strings.Compare(a.Resource, b.Resource) })
	slices.SortFunc(a.Namespaces, func(a, b NamespaceCounts) int { return strings.Compare(a.Namespace, b.Namespace) })
	return found, nil
}

// place remembers the namespace of the object before: objects come in their order.
type place struct {
	namespace string
	counts    *Counts
}

func (p *place) of(all map[string]*Counts, namespace string) *Counts {
	if p.counts != nil && p.namespace == namespace {
		return p.counts
	}
	c := all[namespace]
	if c == nil {
		c = &Counts{}
		all[namespace] = c
	}
	p.namespace, p.counts = namespace, c
	return c
}

// of is the node of an object and its status.
func (t *tree) of(k kindID, o *cache.Object) (*node, Status) {
	nodes := t.nodes[k]
	if len(nodes) == 0 {
		return nil, Good
	}
	n := nodes[o.Key()]
	if n == nil {
		return nil, Good
	}
	return n, n.status
}

// outermost leaves out what is in trouble and belongs to another one that is listed.
func outermost(found []*node) []*node {
	listed := make(map[*node]bool, len(found))
	for _, n := range found {
		listed[n] = true
	}
	return slices.DeleteFunc(slices.Clone(found), func(n *node) bool {
		for p := range n.owners() {
			if listed[p] && n.status != Good {
				return true
			}
		}
		return false
	})
}

func (t *tree) object(n *node, h Health) Object {
	spec := &t.kinds[n.kind].view.Spec
	h.Until = zero
	return Object{Resource: spec.Name(), Kind: spec.Kind, Key: n.key, Health: h}
}

// item tells of a node.
func (t *tree) item(n *node) Item {
	out := Item{Object: t.object(n, *n.shown()), Affected: n.broken}
	out.Status = n.status
	switch {
	case n.past:
		out.Health = Health{Reason: "Superseded", Message: "it has failed, and another one has succeeded since", Since: n.own.Since}
	case n.status == Good && n.own == good:
		h, _ := t.readGood(n.kind, n.key)
		out.Health = *h
		out.Until = zero
	}
	if n.cause == nil {
		return out
	}
	cause := t.object(n.cause, *n.cause.own)
	out.Cause = &cause
	if cause.Status >= n.own.Status {
		out.Reason = cmp.Or(cause.Reason, out.Reason)
	}
	why := cause.Reason
	if cause.Message != "" {
		why += ": " + cause.Message
	}
	if n.own.Message == "" {
		why = cause.Resource + "/" + cause.Key.Name + ": " + why
	} else {
		why = n.own.Message + ": " + why
	}
	out.Message = bounded(why, maxMessage)
	return out
}

// shown is what is told of a node itself: its own health, or, of one that is good by
// itself, since when its cause is not.
func (n *node) shown() *Health {
	if n.own.Status == Good && n.cause != nil {
		return &Health{Message: n.own.Message, Since: n.cause.own.Since}
	}
	return n.own
}
