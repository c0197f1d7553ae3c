package search

import (
	"context"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// within leaves only the objects that q selects, none of what cannot be read. Each
// store is asked once, as by a query, and only if something of it was found.
func (m *match) within(ctx context.Context, q *cache.Query) (faults cache.Faults, err error) {
	if q == nil {
		return faults, nil
	}
	selected := make([]map[cache.Key]struct{}, len(m.kinds))
	for id, points := range m.points {
		if points == 0 {
			continue
		}
		d := &m.docs[id]
		if store := m.kinds[d.kind].view.Store(inside.Cache); store != nil && selected[d.kind] == nil {
			found, err := store.Select(ctx, *q)
			if err != nil {
				return faults, err
			}
			keys := make(map[cache.Key]struct{}, len(found.Objects))
			for _, o := range found.Objects {
				keys[o.Key()] = struct{}{}
			}
			selected[d.kind] = keys
			faults = add(faults, found.Faults)
		}
		if _, ok := selected[d.kind][d.key]; !ok {
			m.points[id] = 0
		}
	}
	return faults, nil
}

// add counts faults together; the first stays the first.
func add(a, b cache.Faults) cache.Faults {
	if a.Count == 0 {
		return b
	}
	a.Count += b.Count
	return a
}
