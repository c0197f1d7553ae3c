package kubeapi

import (
	"context"
	"slices"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// legacyDocument is what a path of discovery answered before there was the one
// document for all. It is false for a path that leads nowhere.
func legacyDocument(groups []apidiscovery.APIGroupDiscovery, parts []string) (any, bool) {
	if parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
		if len(parts) == 2 {
			return coreVersions(groups), true
		}
	}
	if len(parts) == 1 {
		return groupList(groups), true
	}
	i := slices.IndexFunc(groups, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == parts[1] })
	switch {
	case i < 0 || len(parts) > 3:
		return nil, false
	case len(parts) == 2:
		g := legacyGroup(groups[i])
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return g, true
	}
	j := slices.IndexFunc(groups[i].Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == parts[2] })
	if j < 0 {
		return nil, false
	}
	return resourceList(parts[1], groups[i].Versions[j]), true
}

func coreVersions(groups []apidiscovery.APIGroupDiscovery) metav1.APIVersions {
	all := metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for _, g := range groups {
		for _, v := range g.Versions {
			all.Versions = append(all.Versions, v.Version)
		}
	}
	return all
}

func groupList(groups []apidiscovery.APIGroupDiscovery) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		list.Groups = append(list.Groups, legacyGroup(g))
	}
	return list
}

// legacyGroup: the first version is the preferred one.
func legacyGroup(g apidiscovery.APIGroupDiscovery) metav1.APIGroup {
	group := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: g.Name, Version: v.Version}.String(), Version: v.Version,
		})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

func resourceList(group string, v apidiscovery.APIVersionDiscovery) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: group, Version: v.Version}.String(),
		APIResources: []metav1.APIResource{},
	}
	for _, r := range v.Resources {
		namespaced := r.Scope == apidiscovery.ScopeNamespace
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced,
			Kind: kindOf(r.ResponseKind), Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, s := range r.Subresources {
			sub := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: namespaced, Kind: kindOf(s.ResponseKind), Verbs: s.Verbs}
			if k := s.ResponseKind; k != nil && (k.Group != group || k.Version != v.Version) {
				sub.Group, sub.Version = k.Group, k.Version
			}
			list.APIResources = append(list.APIResources, sub)
		}
	}
	return list
}

func kindOf(k *metav1.GroupVersionKind) string {
	if k == nil {
		return ""
	}
	return k.Kind
}

// hashTimeout bounds the wait for what discovery can do without.
const hashTimeout = 3 * time.Second

// storageVersionHashes tell in which version the API server stores the resources
// of a group version. Only its own document of that version has them. While it is
// away they are those of before, or none: clients take them for a hint.
func (a *API) storageVersionHashes(ctx context.Context, req *request) map[string]string {
	key := cache.DocumentKey{Cluster: req.cluster, URI: req.path(), Accept: typeJSON}
	if _, held := a.documents.get(key); !held && a.outages.last(req.cluster, time.Now()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	var list metav1.APIResourceList
	doc, err := a.fetch(ctx, key)
	if err == nil {
		err = doc.decode(&list)
	}
	if err != nil {
		a.log.Debug("cannot learn how resources are stored", "cluster", req.cluster, "path", key.URI, "err", err)
		return nil
	}
	hashes := map[string]string{}
	for _, r := range list.APIResources {
		hashes[r.Name] = r.StorageVersionHash
	}
	return hashes
}
