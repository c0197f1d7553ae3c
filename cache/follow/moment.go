package follow

import (
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// moment is what resources were worth when they were read, to see whether they still are.
// It is immutable.
type moment struct {
	views     []*cache.View // which a resource publishes anew when it is worth another thing
	revisions []uint64      // of the objects that were read
	versions  []string
}

// moment is that of the deltas that were read last.
func (f *Follower) moment(deltas []Delta) *moment {
	m := &moment{}
	for i := range deltas {
		d := &deltas[i]
		if d.Gone {
			continue
		}
		var revision uint64
		if at := f.positions[d.View.Spec.Resource]; at != nil {
			revision = at.revision
		}
		m.views = append(m.views, d.View)
		m.revisions = append(m.revisions, revision)
		m.versions = append(m.versions, d.Version)
	}
	return m
}

func (m *moment) equal(other *moment) bool {
	return slices.Equal(m.views, other.views) && slices.Equal(m.revisions, other.revisions) && slices.Equal(m.versions, other.versions)
}

// is reports whether resources are as they were.
func (m *moment) is(resources []Resource) bool {
	if len(resources) != len(m.views) {
		return false
	}
	for i, r := range resources {
		view := r.View()
		if view != m.views[i] {
			return false
		}
		store := view.Store(inside.Cache)
		if store != nil && (store.Revision() != m.revisions[i] || store.Version() != m.versions[i]) {
			return false
		}
	}
	return true
}
