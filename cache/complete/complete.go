package complete

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// Query asks for proposals.
type Query struct {
	// Prefix is what has been typed.
	Prefix string
	// Limit bounds the proposals; DefaultLimit if it is not positive.
	Limit int
}

// DefaultLimit is how many proposals there are at most unless it is said.
const DefaultLimit = 50

// Item is one proposal.
type Item struct {
	Value string
	// Kind of the values at a path: string, number, bool, object, array, null.
	Kind string
	// Objects is how many of those looked at have it; 0 for a path that only the
	// Schema has.
	Objects int
}

// Answer holds proposals, the best first.
type Answer struct {
	Items     []Item
	Truncated bool // there are more than the limit
	// Sampled objects were looked at, out of Objects; 0 when an index answered.
	Sampled, Objects int
}

// of cuts items, in the order of better, to what q asks for.
func (q Query) of(items []Item, better func(a, b Item) int) *Answer {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	items = slices.DeleteFunc(items, func(i Item) bool { return !strings.HasPrefix(i.Value, q.Prefix) })
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(better(a, b), strings.Compare(a.Value, b.Value)) })
	a := &Answer{Items: items}
	if a.Truncated = len(items) > limit; a.Truncated {
		a.Items = items[:limit:limit]
	}
	return a
}

// Merge makes one answer of those of several clusters: what several propose is proposed
// once, with the objects of all. What is counted comes in the order of the counts, the rest
// as the cluster has it that ranks it best.
func (q Query) Merge(answers []*Answer, counted bool) *Answer {
	if len(answers) == 1 {
		return answers[0]
	}
	type proposal struct{ value, kind string }
	objects, rank := map[proposal]int{}, map[proposal]int{}
	all := &Answer{}
	for _, a := range answers {
		for n, i := range a.Items {
			p := proposal{i.Value, i.Kind}
			if best, ok := rank[p]; !ok || n < best {
				rank[p] = n
			}
			objects[p] += i.Objects
		}
		all.Truncated = all.Truncated || a.Truncated
		all.Sampled += a.Sampled
		all.Objects += a.Objects
	}
	items := make([]Item, 0, len(objects))
	for p, n := range objects {
		items = append(items, Item{p.value, p.kind, n})
	}
	merged := q.of(items, func(a, b Item) int {
		better := moreObjects(a, b)
		if !counted {
			better = cmp.Compare(rank[proposal{a.Value, a.Kind}], rank[proposal{b.Value, b.Kind}])
		}
		return cmp.Or(better, cmp.Compare(a.Value, b.Value), cmp.Compare(a.Kind, b.Kind))
	})
	all.Items, all.Truncated = merged.Items, all.Truncated || merged.Truncated
	return all
}

// moreObjects is the order of values.
func moreObjects(a, b Item) int { return cmp.Compare(b.Objects, a.Objects) }

// sample takes up to n objects of a reader, spread evenly over its keys.
func sample(ctx context.Context, reader *cache.Reader, n int) (objects []*cache.Object, of int, err error) {
	all, err := reader.Select(ctx, cache.Query{})
	if err != nil {
		return nil, 0, err
	}
	of = len(all.Objects)
	if of <= n {
		return all.Objects, of, nil
	}
	for i := range n {
		objects = append(objects, all.Objects[i*of/n])
	}
	return objects, of, nil
}
