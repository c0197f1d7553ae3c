package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/discovery"
)

// Saved describes the resources of cluster that a snapshot holds as discovery
// would. It is all that is known of them until discovery has answered.
func Saved(cluster string, saved []cache.Saved) []discovery.Resource {
	var all []discovery.Resource
	for _, s := range saved {
		if s.Spec.Cluster != cluster {
			continue
		}
		all = append(all, discovery.Resource{
			GVR:              s.Spec.GVR,
			Kind:             s.Spec.Kind,
			ListKind:         s.Spec.ListKind,
			Categories:       s.Spec.Categories,
			Singular:         s.Spec.Singular,
			ShortNames:       s.Spec.ShortNames,
			Namespaced:       s.Spec.Namespaced,
			Versions:         []string{s.Spec.GVR.Version},
			Aggregated:       s.Spec.Aggregated,
			CRDUID:           s.Spec.CRDUID,
			CRDGeneration:    s.Spec.CRDGeneration,
			SelectableFields: selectable(s.Spec.Indexes),
		})
	}
	sortResources(all)
	return slices.CompactFunc(all, func(a, b discovery.Resource) bool {
		return a.GroupResource() == b.GroupResource()
	})
}

// selectable are the paths of the indexes that Choose made of selectable fields:
// it names them by their path.
func selectable(indexes map[string]string) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(indexes)) {
		if indexes[name] == name {
			paths = append(paths, name)
		}
	}
	return paths
}

// Merge is what is known of a cluster after set: its resources, and those known
// before that set says nothing certain about. A resource is gone only when
// discovery succeeds without it.
func Merge(known []discovery.Resource, set discovery.Set) []discovery.Resource {
	all := make(map[schema.GroupResource]discovery.Resource, len(set.Resources))
	for _, r := range set.Resources {
		all[r.GroupResource()] = r
	}
	for _, k := range known {
		r, reported := all[k.GroupResource()]
		switch {
		case kept(k, set):
			all[k.GroupResource()] = k
		case reported:
			all[k.GroupResource()] = remember(r, k)
		}
	}
	merged := slices.Collect(maps.Values(all))
	sortResources(merged)
	return merged
}

// kept tells whether k, known before, still holds beside set. Where its group
// version does not answer, another version is no reason to give it up.
func kept(k discovery.Resource, set discovery.Set) bool {
	r, reported := set.Get(k.GroupResource())
	if !reported {
		return set.Unknown(k.GVR)
	}
	_, failed := set.Failed[k.GVR.GroupVersion()]
	return failed && r.GVR != k.GVR
}

// remember is r with what k knew of its definition, where r does not know it: a
// CRD that could not be read now is unknown, not changed.
func remember(r, k discovery.Resource) discovery.Resource {
	if r.GVR != k.GVR || r.CRDUID != "" || k.CRDUID == "" {
		return r
	}
	r.CRDUID, r.CRDGeneration = k.CRDUID, k.CRDGeneration
	r.Aggregated, r.SelectableFields = k.Aggregated, k.SelectableFields
	return r
}

func sortResources(all []discovery.Resource) {
	slices.SortFunc(all, func(a, b discovery.Resource) int {
		return cmp.Or(
			cmp.Compare(a.GVR.Group, b.GVR.Group),
			cmp.Compare(a.GVR.Resource, b.GVR.Resource),
			cmp.Compare(a.GVR.Version, b.GVR.Version),
		)
	})
}
