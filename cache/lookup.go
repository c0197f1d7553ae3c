package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache/spelling"
)

// nameIndex maps every name kubectl would accept to the informers it may mean.
type nameIndex map[string][]*Informer

func indexNames(informers []*Informer) nameIndex {
	slices.SortFunc(informers, func(a, b *Informer) int { return a.resource.Compare(b.resource) })
	names := nameIndex{}
	add := func(i *Informer, name string) {
		name = strings.ToLower(name)
		if name != "" && !slices.Contains(names[name], i) {
			names[name] = append(names[name], i)
		}
	}
	for _, i := range informers {
		spec := i.Spec()
		gvr := spec.GVR
		for _, name := range append([]string{gvr.Resource, spec.Singular, spec.Kind}, spec.ShortNames...) {
			add(i, name)
			if gvr.Group != "" && name != "" {
				add(i, name+"."+gvr.Group)
				add(i, name+"."+gvr.Version+"."+gvr.Group)
			} else if name != "" {
				add(i, name+"."+gvr.Version)
			}
		}
	}
	return names
}

// Lookup finds a resource by the names kubectl accepts: pods, deployments.apps,
// deployments.v1.apps, the singular, short names and the kind, in any case. The
// cluster may be left out when there is only one. An unwatched resource is
// returned together with ErrNotWatched. As long as the cluster has not told which
// resources it has, none is unknown: that is ErrNotSynced.
func (f *Factory) Lookup(cluster, name string) (*Informer, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	cluster, err := f.clusterNameLocked(cluster)
	if err != nil {
		return nil, err
	}
	found, err := f.names[cluster].find(name)
	if errors.Is(err, ErrUnknownResource) && !f.discovered[cluster] {
		return nil, f.statusLocked(f.clusters[cluster]).NotDiscovered()
	}
	if err != nil {
		return nil, err
	}
	if !found.Spec().Watch {
		return found, fmt.Errorf("%w: %s is left out by the configuration", ErrNotWatched, found.resource.Name())
	}
	return found, nil
}

func (f *Factory) clusterNameLocked(name string) (string, error) {
	names := make([]string, 0, len(f.clusters))
	for c := range f.clusters {
		names = append(names, c)
	}
	slices.Sort(names)
	switch {
	case name != "" && slices.Contains(names, name):
		return name, nil
	case name != "":
		return "", invalidf("cluster", "there is no cluster %q; there are: %s", name, strings.Join(names, ", "))
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", fmt.Errorf("%w: no cluster is known yet", ErrNotSynced)
	default:
		return "", invalidf("cluster", "there are several, name one of: %s", strings.Join(names, ", "))
	}
}

// find prefers, as kubectl does, the core group and then a name that is the
// resource's own over one that is a short name or kind.
func (n nameIndex) find(name string) (*Informer, error) {
	found := n[strings.ToLower(name)]
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q%s", ErrUnknownResource, name, n.suggest(name))
	case 1:
		return found[0], nil
	}
	own := slices.DeleteFunc(slices.Clone(found), func(i *Informer) bool { return i.resource.GVR.Resource != strings.ToLower(name) })
	if len(own) == 1 {
		return own[0], nil
	}
	for _, i := range found {
		if i.resource.GVR.Group == "" {
			return i, nil
		}
	}
	var names []string
	for _, i := range found {
		names = append(names, i.resource.Name())
	}
	return nil, invalidf("resource", "%q is ambiguous, it may be: %s", name, strings.Join(names, ", "))
}

// suggest names resources that are spelled alike.
func (n nameIndex) suggest(name string) string {
	name = strings.ToLower(name)
	var near []string
	for known, informers := range n {
		if spelling.Distance(name, known) <= 2 && len(name) > 2 || len(name) > 2 && strings.HasPrefix(known, name) {
			near = append(near, informers[0].resource.Name())
		}
	}
	slices.Sort(near)
	near = slices.Compact(near)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near[:min(len(near), 5)], ", ") + "?"
}
