package health

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// ObjectQuery asks for the health of one object and of what it owns.
type ObjectQuery struct {
	Resource schema.GroupResource
	Key      cache.Key
	// Limit is how many of what it owns are told, the worst; DefaultLimit if not positive.
	Limit int
	Sight cache.Sight
}

// ObjectAnswer is the health of one object and of what it owns.
type ObjectAnswer struct {
	// View is that of the resource asked about. It may be not Readable; then there is no
	// Item.
	View *cache.View
	Item Item
	// Children are what it owns, and what those own, the worst first.
	Children  []Object
	Remaining int // Children beyond the limit
	// Unanswered are the resources that cannot be read and of which something may be seen:
	// what of them it owns is not known.
	Unanswered []cache.View
}

// AskObject answers q. It returns cache.ErrNotFound, with an Answer that has its View
// alone, for an object that is not there or not seen, and without one for a resource that
// is not known.
func (x *Index) AskObject(ctx context.Context, q ObjectQuery) (*ObjectAnswer, error) {
	t, err := x.tree(ctx, q.Sight)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(t.kinds, func(k kind) bool { return k.known && k.view.Spec.GVR.GroupResource() == q.Resource })
	if at < 0 {
		return nil, cache.ErrNotFound
	}
	id, view := kindID(at), t.kinds[at].view
	a := &ObjectAnswer{View: view.SeenBy(t.scopes[id])}
	if !view.Readable() {
		return a, nil
	}
	o, ok := view.Reader(t.scopes[id]).Get(q.Key)
	if !ok {
		return a, cache.ErrNotFound
	}
	n, _ := t.of(id, o)
	if n == nil {
		h := t.read(id, o)
		n = &node{kind: id, key: q.Key, own: &h, status: h.Status}
	}
	a.Item = t.item(n)
	children, err := t.children(ctx, o)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(max(q.Limit, 0), DefaultLimit)
	if len(children) > limit {
		a.Remaining = len(children) - limit
		children = children[:limit]
	}
	a.Children = make([]Object, 0, len(children))
	for _, c := range children {
		a.Children = append(a.Children, t.child(c))
	}
	a.Unanswered = t.unanswered(nil)
	return a, nil
}

// read judges an object now, of which nothing is remembered.
func (t *tree) read(id kindID, o *cache.Object) Health {
	if t.kinds[id].records {
		return Health{}
	}
	return read(t.kinds[id].judge, o, t.now, false).health
}

// owned is an object that another one owns.
type owned struct {
	kind   kindID
	object *cache.Object
	node   *node // nil: it is good
}

func (o *owned) status() Status {
	if o.node == nil {
		return Good
	}
	return o.node.status
}

// children finds what an object owns, and what those own, the worst first.
func (t *tree) children(ctx context.Context, root *cache.Object) ([]owned, error) {
	var found []owned
	seen := map[string]bool{root.UID(): true}
	waiting := []string{root.UID()}
	for len(waiting) > 0 {
		uid := waiting[0]
		waiting = waiting[1:]
		if err := ctx.Err(); err != nil {
			return nil, err // there may be many, of many kinds
		}
		for i := range t.kinds {
			if t.readers[i] == nil || uid == "" {
				continue
			}
			some, err := t.readers[i].Select(ctx, cache.Query{Terms: []cache.Term{{Index: cache.OwnerIndex, Value: uid}}})
			if err != nil {
				return nil, err
			}
			for _, o := range some.Objects {
				if seen[o.UID()] {
					continue
				}
				seen[o.UID()] = true
				waiting = append(waiting, o.UID())
				n, _ := t.of(kindID(i), o)
				found = append(found, owned{kindID(i), o, n})
			}
		}
	}
	slices.SortFunc(found, func(a, b owned) int {
		return cmp.Or(
			cmp.Compare(b.status(), a.status()),
			cmp.Compare(t.kinds[a.kind].view.Spec.Name(), t.kinds[b.kind].view.Spec.Name()), a.object.Key().Compare(b.object.Key()),
		)
	})
	return found, nil
}

// child tells of an object that is owned.
func (t *tree) child(c owned) Object {
	if c.node != nil {
		return t.item(c.node).Object
	}
	return t.object(&node{kind: c.kind, key: c.object.Key()}, t.read(c.kind, c.object))
}
