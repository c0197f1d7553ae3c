package kubeapi

import (
	"context"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/informerd/informerd/cache"
)

// groups are what can be asked for through this API: what is watched and reviews, or,
// where requests are passed on, what the API server serves. While it does not answer
// only what is watched can be asked for: incomplete says why there may be more, nil if
// there is not.
func (a *API) groups(ctx context.Context, cluster string) (all []apidiscovery.APIGroupDiscovery, incomplete error) {
	modes := a.Modes()
	if !modes.passesReads() {
		incomplete = a.undiscovered(cluster) // before looking
		return a.served(cluster), incomplete
	}
	for _, path := range []string{"/api", "/apis"} {
		groups, err := a.upstreamGroups(ctx, cluster, path)
		if err != nil {
			a.log.Debug("cannot learn what the API server serves", "cluster", cluster, "err", err)
			return a.served(cluster), err
		}
		all = append(all, groups...)
	}
	if modes.passesWrites() {
		return all, nil
	}
	return withReviews(readable(all)), nil
}

func (a *API) upstreamGroups(ctx context.Context, cluster, path string) ([]apidiscovery.APIGroupDiscovery, error) {
	const accept = typeJSON + ";g=apidiscovery.k8s.io;v=v2;as=" + asDiscovery
	doc, err := a.fetch(ctx, cache.DocumentKey{Cluster: cluster, URI: path, Accept: accept})
	if err != nil {
		return nil, err
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := doc.decode(&list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// readable is what of groups can be read. It modifies its argument.
func readable(groups []apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
	unread := func(verb string) bool { return !slices.Contains(readVerbs, verb) }
	for g := range groups {
		for v := range groups[g].Versions {
			version := &groups[g].Versions[v]
			for i := range version.Resources {
				r := &version.Resources[i]
				r.Verbs = slices.DeleteFunc(r.Verbs, unread)
				r.Subresources = slices.DeleteFunc(r.Subresources, func(s apidiscovery.APISubresourceDiscovery) bool {
					return slices.Contains(connects, s.Subresource) || !slices.Contains(s.Verbs, "get")
				})
				for n := range r.Subresources {
					r.Subresources[n].Verbs = slices.DeleteFunc(r.Subresources[n].Verbs, unread)
				}
			}
			version.Resources = slices.DeleteFunc(version.Resources, func(r apidiscovery.APIResourceDiscovery) bool { return len(r.Verbs) == 0 })
		}
		groups[g].Versions = slices.DeleteFunc(groups[g].Versions, func(v apidiscovery.APIVersionDiscovery) bool { return len(v.Resources) == 0 })
	}
	return slices.DeleteFunc(groups, func(g apidiscovery.APIGroupDiscovery) bool { return len(g.Versions) == 0 })
}
