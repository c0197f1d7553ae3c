package health

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// node is an object that is not good, or one that such an object belongs to.
type node struct {
	kind   kindID
	key    cache.Key
	own    *Health // by its own bytes
	parent *node
	depth  int // below the one that belongs to nobody

	status Status // its own or the worst of what it owns, whichever is worse
	cause  *node  // the one among what it owns that shows why
	broken int    // objects below it that are not good, by themselves and not by others
	owns   bool   // what it owns is not good
	past   bool   // it does not matter any more
}

var good = &Health{}

// tree are the nodes of a question, by kind.
type tree struct {
	sighted
	now   time.Time
	nodes []map[cache.Key]*node
	list  []*node
	// callers are the nodes that call Services.
	callers []caller
}

// maxDepth is how long a chain of owners may be: one that goes round has no end.
const maxDepth = 16

// tree is that of now, as somebody sees it. It is made under the lock of the Index and
// belongs to the caller: what is read and selected for an answer may have to wait for its
// turn, and nobody is to wait for that.
func (x *Index) tree(ctx context.Context, sight cache.Sight) (*tree, error) {
	now, err := x.current(ctx)
	if err != nil {
		return nil, err
	}
	t := x.seenBy(sight).tree(now)
	t.state = nil
	x.mu.RUnlock()
	if err := t.judgeCallers(ctx); err != nil {
		return nil, err
	}
	t.settle()
	return t, nil
}

// tree finds who is to be told of what is not good. What they are told is settled later.
func (s sighted) tree(now time.Time) *tree {
	t := &tree{sighted: s, now: now, nodes: make([]map[cache.Key]*node, len(s.kinds))}
	for id, k := range s.kinds {
		if t.readers[id] == nil {
			continue
		}
		for key, e := range k.entries {
			if (e.health.Status == Good && len(e.calls) == 0) || !t.scopes[id].Sees(key) {
				continue
			}
			n := t.node(kindID(id), key, 0)
			if len(e.calls) > 0 {
				t.callers = append(t.callers, caller{n, e.calls})
			}
		}
	}
	return t
}

// node returns the node of an object that is seen, new if there is none yet, with those
// of its owners.
func (t *tree) node(id kindID, key cache.Key, below int) *node {
	if n := t.nodes[id][key]; n != nil {
		return n
	}
	n := &node{kind: id, key: key, own: good}
	if t.nodes[id] == nil {
		t.nodes[id] = map[cache.Key]*node{}
	}
	t.nodes[id][key] = n
	t.list = append(t.list, n)
	var of owner
	e := t.kinds[id].entries[key]
	if e != nil {
		own := e.health // which is judged again in its place
		n.own, of = &own, e.owner
	} else {
		n.own, of = t.readGood(id, key)
	}
	if below < maxDepth {
		n.parent = t.owner(&of, key.Namespace, below)
		t.breakRing(n)
	}
	if n.parent != nil {
		n.past = e != nil && t.superseded(n, e)
	}
	return n
}

// breakRing makes one of some objects that own each other, always the same, one that
// belongs to nobody.
func (t *tree) breakRing(n *node) {
	first := n
	for p := n.parent; p != n; p = p.parent {
		if p == nil {
			return
		}
		if t.compare(p, first) < 0 {
			first = p
		}
	}
	first.parent = nil
}

// readGood reads what is good, of which nothing is remembered. If it has changed since the
// update, that is for the next question.
func (t *tree) readGood(id kindID, key cache.Key) (*Health, owner) {
	o, ok := t.readers[id].Get(key)
	if !ok {
		return good, owner{}
	}
	r := read(t.kinds[id].judge, o, t.now, true)
	if r.health.Status != Good {
		return good, r.owner
	}
	return &r.health, r.owner
}

// owner is the node of an owner that is seen, nil if there is none.
func (t *tree) owner(of *owner, namespace string, below int) *node {
	if !of.answers() {
		return nil
	}
	id, ok := t.byKind[of.kind]
	if !ok || t.readers[id] == nil {
		return nil
	}
	key := cache.Key{Name: of.name}
	if t.kinds[id].view.Spec.Namespaced {
		key.Namespace = namespace
	}
	if o, ok := t.readers[id].Get(key); !ok || o.UID() != of.uid {
		return nil // another one of that name is not the owner
	}
	return t.node(id, key, below+1)
}

// replaces are the kinds that put another pod in the place of one that will not run again.
// Those that were evicted stay where they are until there are thousands of them
// (kube-controller-manager, --terminated-pod-gc-threshold).
var replaces = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Kind: "ReplicationController"}: true,
}

// superseded reports whether what is wrong with an object is history: a failed pod of a
// Job that has completed all the same, or one that another has taken the place of, since
// its ReplicaSet or the like has all that it wants; or a failed Job of a CronJob of which a
// later one has succeeded.
func (t *tree) superseded(n *node, e *entry) bool {
	p := n.parent
	switch {
	case p.past:
		return true
	case e.over && t.kinds[p.kind].group == jobs:
		return p.own.Reason == "Completed"
	case e.over:
		return replaces[t.kinds[p.kind].group] && p.own.Status == Good
	}
	return t.kinds[p.kind].group == cronJobs && !e.health.Since.IsZero() && e.health.Since.Before(p.own.Since)
}

// settle hands what is wrong up to the owners.
func (t *tree) settle() {
	for _, n := range t.list {
		n.status = n.own.Status
		if n.past {
			n.status = Good
		}
		for range n.owners() {
			n.depth++
		}
	}
	for _, n := range t.wrong() {
		for p := range n.owners() {
			p.owns = true
			p.status = max(p.status, n.own.Status)
			if p.cause == nil || t.tellsMore(n, p.cause) {
				p.cause = n
			}
		}
	}
	for _, n := range t.wrong() {
		if n.owns {
			continue // those below it are counted
		}
		for p := range n.owners() {
			p.broken++
		}
	}
}

// wrong are the nodes that are not good by themselves.
func (t *tree) wrong() (all []*node) {
	for _, n := range t.list {
		if n.own.Status != Good && !n.past {
			all = append(all, n)
		}
	}
	return all
}

// owners are those of a node, from the nearest on.
func (n *node) owners() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for p := n.parent; p != nil; p = p.parent {
			if !yield(p) {
				return
			}
		}
	}
}

// tellsMore reports whether a is the better cause: it is worse, or as bad and nearer to
// where things go wrong, or has been so for longer.
func (t *tree) tellsMore(a, b *node) bool {
	return cmp.Or(
		cmp.Compare(b.own.Status, a.own.Status), cmp.Compare(b.depth, a.depth), compareSince(a.own, b.own), t.compare(a, b),
	) < 0
}

// compareSince puts what is longer so before; what nobody knows of comes last.
func compareSince(a, b *Health) int {
	switch {
	case a.Since.IsZero() || b.Since.IsZero():
		return compareBool(a.Since.IsZero(), b.Since.IsZero())
	default:
		return a.Since.Compare(b.Since)
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compare orders by resource, namespace and name.
func (t *tree) compare(a, b *node) int {
	if a.kind == b.kind {
		return a.key.Compare(b.key)
	}
	return cmp.Or(cmp.Compare(t.kinds[a.kind].view.Spec.Name(), t.kinds[b.kind].view.Spec.Name()), a.key.Compare(b.key))
}

// worstFirst is the order of an answer.
func (t *tree) worstFirst(nodes []*node) {
	slices.SortFunc(nodes, func(a, b *node) int {
		if c := cmp.Compare(b.status, a.status); c != 0 || a.status == Good {
			return cmp.Or(c, t.compare(a, b))
		}
		return cmp.Or(cmp.Compare(b.broken, a.broken), compareSince(a.shown(), b.shown()), t.compare(a, b))
	})
}
