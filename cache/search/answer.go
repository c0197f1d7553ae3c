package search

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/informerd/informerd/cache"
)

// Query asks for objects.
type Query struct {
	Terms []Term // all must hold
	// Within selects the objects searched; nil is all.
	Within *cache.Query
	// Limit is how many of the best are wanted; DefaultLimit if not positive.
	Limit int
	// Highlights: say where in each object the words are.
	Highlights bool
	// Sight is what is searched. The answer is the same as if there were nothing else.
	Sight cache.Sight
}

// DefaultLimit is how many objects an answer has at most unless it is said.
const DefaultLimit = 20

// Hit is one object found.
type Hit struct {
	Resource string // as kubectl names it
	Kind     string
	Key      cache.Key
	Points   int
	// Matches are texts of the object that have a word, if asked for, in the
	// order of fields.
	Matches []Match
}

// Match is a text that has a word.
type Match struct {
	Field string
	Text  string
}

// Facet is how many of all objects found have a kind or namespace.
type Facet struct {
	Value   string
	Objects int
}

// Answer holds the best objects, and counts of all.
type Answer struct {
	Hits  []Hit
	Total int
	// Kinds and Namespaces count all objects found, the most first.
	Kinds, Namespaces []Facet
	// Unanswered are resources that cannot be read and of which something may be
	// seen; nothing of them is found.
	Unanswered []cache.View
	// Faults are of the Filter of Within, among objects of the kinds found.
	Faults cache.Faults
}

func (m *match) answer(q *Query) *Answer {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	a := &Answer{Hits: []Hit{}}
	best := &ranking{match: m}
	kinds := make([]int, len(m.kinds))
	namespaces := map[string]int{}
	for i, points := range m.points {
		if points == 0 {
			continue
		}
		d := m.doc(docID(i))
		a.Total++
		kinds[d.kind]++
		if ns := d.namespace.Value(); ns != "" {
			namespaces[ns]++
		}
		best.offer(docID(i), limit)
	}
	for _, id := range best.ranked() {
		a.Hits = append(a.Hits, m.hit(id, q))
	}
	a.Kinds, a.Namespaces = []Facet{}, []Facet{}
	for k, n := range kinds {
		if n > 0 {
			a.Kinds = append(a.Kinds, Facet{m.kinds[k].view.Spec.Name(), n})
		}
	}
	for ns, n := range namespaces {
		a.Namespaces = append(a.Namespaces, Facet{ns, n})
	}
	sortFacets(a.Kinds)
	sortFacets(a.Namespaces)
	return a
}

func sortFacets(facets []Facet) {
	slices.SortFunc(facets, func(a, b Facet) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Value, b.Value))
	})
}

func (m *match) hit(id docID, q *Query) Hit {
	d := m.doc(id)
	spec := &m.kinds[d.kind].view.Spec
	h := Hit{Resource: spec.Name(), Kind: spec.Kind, Key: d.key(), Points: int(m.points[id])}
	if !q.Highlights {
		return h
	}
	var found []*value
	for _, value := range m.valuesOf(id) {
		if slices.ContainsFunc(q.Terms, func(t Term) bool {
			return (t.Field == Any || t.Field == value.field) && has(value.text, t.Text)
		}) {
			found = append(found, value)
		}
	}
	slices.SortFunc(found, func(a, b *value) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.text, b.text))
	})
	for _, v := range found {
		h.Matches = append(h.Matches, Match{v.field.String(), v.text})
	}
	return h
}

// ranking keeps the best objects, the worst of them on top of a heap.
type ranking struct {
	*match
	ids []docID
}

// offer keeps id if it is among the best limit ones.
func (r *ranking) offer(id docID, limit int) {
	switch {
	case len(r.ids) < limit:
		heap.Push(r, id)
	case r.compare(id, r.ids[0]) < 0:
		r.ids[0] = id
		heap.Fix(r, 0)
	}
}

// ranked returns what was kept, the best first.
func (r *ranking) ranked() []docID {
	slices.SortFunc(r.ids, r.compare)
	return r.ids
}

// compare orders by points; among equals the shorter name fits better, and the
// rest only has to be stable.
func (r *ranking) compare(a, b docID) int {
	if c := cmp.Compare(r.points[b], r.points[a]); c != 0 {
		return c
	}
	x, y := r.doc(a), r.doc(b)
	if c := cmp.Or(cmp.Compare(len(x.name), len(y.name)), cmp.Compare(x.name, y.name)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(r.kinds[x.kind].view.Spec.Name(), r.kinds[y.kind].view.Spec.Name()), x.key().Compare(y.key()))
}

func (r *ranking) Len() int           { return len(r.ids) }
func (r *ranking) Less(i, j int) bool { return r.compare(r.ids[i], r.ids[j]) > 0 }
func (r *ranking) Swap(i, j int)      { r.ids[i], r.ids[j] = r.ids[j], r.ids[i] }
func (r *ranking) Push(id any)        { r.ids = append(r.ids, id.(docID)) }

func (r *ranking) Pop() any {
	last := r.ids[len(r.ids)-1]
	r.ids = r.ids[:len(r.ids)-1]
	return last
}
