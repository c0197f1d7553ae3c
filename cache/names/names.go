// Package names finds resources by what kubectl calls them.
package names

import (
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/spelling"
)

// Index maps every name that kubectl would accept to the resources it may mean:
// pods, deployments.apps, deployments.v1.apps, the singular, short names and the
// kind, in any case. It is immutable.
type Index map[string][]cache.Resource

// New indexes the names of resources of one cluster.
func New(specs []cache.Spec) Index {
	specs = slices.SortedFunc(slices.Values(specs), func(a, b cache.Spec) int { return a.Resource.Compare(b.Resource) })
	index := Index{}
	for _, spec := range specs {
		gvr := spec.GVR
		for _, name := range append([]string{gvr.Resource, spec.Singular, spec.Kind}, spec.ShortNames...) {
			index.add(spec.Resource, name)
			if gvr.Group != "" && name != "" {
				index.add(spec.Resource, name+"."+gvr.Group)
				index.add(spec.Resource, name+"."+gvr.Version+"."+gvr.Group)
			} else if name != "" {
				index.add(spec.Resource, name+"."+gvr.Version)
			}
		}
	}
	return index
}

func (x Index) add(r cache.Resource, name string) {
	name = strings.ToLower(name)
	if name != "" && !slices.Contains(x[name], r) {
		x[name] = append(x[name], r)
	}
}

// Find returns the resource that name means. It prefers, as kubectl does, a name
// that is the resource's own over one that is a short name or kind, and then the
// core group. The error is cache.ErrUnknownResource, with names that are spelled
// alike, or an *cache.InvalidError for a name that may be several.
func (x Index) Find(name string) (cache.Resource, error) {
	found := x[strings.ToLower(name)]
	switch len(found) {
	case 0:
		return cache.Resource{}, fmt.Errorf("%w: %q%s", cache.ErrUnknownResource, name, x.suggest(name))
	case 1:
		return found[0], nil
	}
	own := slices.DeleteFunc(slices.Clone(found), func(r cache.Resource) bool { return r.GVR.Resource != strings.ToLower(name) })
	if len(own) == 1 {
		return own[0], nil
	}
	var names []string
	for _, r := range found {
		if r.GVR.Group == "" {
			return r, nil
		}
		names = append(names, r.Name())
	}
	return cache.Resource{}, &cache.InvalidError{
		Parameter: "resource",
		Message:   fmt.Sprintf("%q is ambiguous, it may be: %s", name, strings.Join(names, ", ")),
	}
}

// suggest names resources that are spelled alike.
func (x Index) suggest(name string) string {
	name = strings.ToLower(name)
	var near []string
	for known, resources := range x {
		if spelling.Distance(name, known) <= 2 && len(name) > 2 || len(name) > 2 && strings.HasPrefix(known, name) {
			near = append(near, resources[0].Name())
		}
	}
	slices.Sort(near)
	near = slices.Compact(near)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near[:min(len(near), 5)], ", ") + "?"
}
