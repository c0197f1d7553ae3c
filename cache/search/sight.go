package search

import (
	"context"
	"unique"

	"github.com/informerd/informerd/cache"
)

// see leaves only the objects that are seen. It comes before all that counts, ranks
// or shows objects, so that the answer is as if there were no others. The points of
// an object are by its own texts alone: they tell nothing of others, either.
func (m *match) see(sight cache.Sight) {
	m.scopes = make([]cache.Scope, len(m.kinds))
	whole := true
	for i, k := range m.kinds {
		m.scopes[i] = sight.Of(k.view.Spec.GVR.GroupResource())
		whole = whole && m.scopes[i].Whole()
	}
	if whole {
		return
	}
	var at place
	seen := false // all of the place; if not, objects one by one
	for id, points := range m.points {
		if points == 0 {
			continue
		}
		d := m.doc(docID(id))
		if here := (place{d.kind, d.namespace}); here != at {
			at, seen = here, m.scopes[d.kind].Namespace(d.namespace.Value())
		}
		if !seen && !m.scopes[d.kind].Sees(d.key()) {
			m.points[id] = 0
		}
	}
}

// place is where an object is. Mostly its neighbours are there, too.
type place struct {
	kind      kindID
	namespace unique.Handle[string]
}

// selected returns the keys of the objects of a kind that are seen and that q
// selects, with the faults of its Filter among those that are seen.
func (m *match) selected(ctx context.Context, k kindID, q cache.Query) (map[cache.Key]struct{}, cache.Faults, error) {
	found, err := m.kinds[k].view.Reader(m.scopes[k]).Select(ctx, q)
	if err != nil {
		return nil, cache.Faults{}, err
	}
	keys := make(map[cache.Key]struct{}, len(found.Objects))
	for _, o := range found.Objects {
		keys[o.Key()] = struct{}{}
	}
	return keys, found.Faults, nil
}
