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
