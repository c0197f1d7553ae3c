package complete

import (
	"cmp"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// Resources proposes resources that have a name with the prefix, as kubectl
// would take it; those whose own name it is come first. Which resources there are
// everybody may know; of their objects those are counted that sight sees.
func Resources(views []*cache.View, sight cache.Sight, q Query) *Answer {
	prefix := strings.ToLower(q.Prefix)
	rank := map[string]int{}
	var items []Item
	for _, view := range views {
		spec := &view.Spec
		if r, ok := rankOf(spec, prefix); ok {
			rank[spec.Name()] = r
			item := Item{Value: spec.Name(), Kind: spec.Kind}
			if reader := view.Reader(sight.Of(spec.GVR.GroupResource())); reader != nil {
				item.Objects = reader.Len()
			}
			items = append(items, item)
		}
	}
	q.Prefix = ""
	return q.of(items, func(a, b Item) int { return cmp.Compare(rank[a.Value], rank[b.Value]) })
}

// rankOf says how well a prefix fits a resource: a short name in full best, then
// the beginning of its name, then of its kind.
func rankOf(spec *cache.Spec, prefix string) (rank int, ok bool) {
	switch {
	case slices.Contains(spec.ShortNames, prefix):
		return 0, true
	case strings.HasPrefix(spec.Name(), prefix):
		return 1, true
	case strings.HasPrefix(strings.ToLower(spec.Kind), prefix), strings.HasPrefix(spec.Singular, prefix):
		return 2, true
	default:
		return 3, slices.ContainsFunc(spec.ShortNames, func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
}
