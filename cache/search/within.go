package search

import (
	"context"

	"github.com/informerd/informerd/cache"
)

// within leaves only the objects that q selects, none of what cannot be read. Each
// store is asked once, as by a query, and only if something of it was found.
func (m *match) within(ctx context.Context, q *cache.Query) (faults cache.Faults, err error) {
	if q == nil {
		return faults, nil
	}
	selected := make([]map[cache.Key]struct{}, len(m.kinds))
	for k, found := range m.kindsFound() {
		if !found || !m.kinds[k].view.Readable() {
			continue
		}
		var more cache.Faults
		if selected[k], more, err = m.selected(ctx, kindID(k), *q); err != nil {
			return faults, err
		}
		faults = add(faults, more)
	}
	for id, points := range m.points {
		if points > 0 {
			d := m.doc(docID(id))
			if _, ok := selected[d.kind][d.key()]; !ok {
				m.points[id] = 0
			}
		}
	}
	return faults, nil
}

// kindsFound are those that something was found of.
func (m *match) kindsFound() []bool {
	found := make([]bool, len(m.kinds))
	for id, points := range m.points {
		if points > 0 {
			found[m.doc(docID(id)).kind] = true
		}
	}
	return found
}

// add counts faults together; the first stays the first.
func add(a, b cache.Faults) cache.Faults {
	if a.Count == 0 {
		return b
	}
	a.Count += b.Count
	return a
}
