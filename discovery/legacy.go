package discovery

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// legacyParallel is how many group versions are asked at a time.
const legacyParallel = 8

// fetchLegacy asks a server without aggregated discovery: one request for each
// group version.
func (c *client) fetchLegacy(ctx context.Context) (answer, error) {
	groups, err := c.legacyGroups(ctx)
	if err != nil {
		return answer{}, err
	}
	var g errgroup.Group
	g.SetLimit(legacyParallel)
	asked := 0
	for i := range groups {
		for k := range groups[i].versions {
			asked++
			g.Go(func() error {
				c.legacyVersion(ctx, groups[i].name, &groups[i].versions[k])
				return nil
			})
		}
	}
	_ = g.Wait() // failures are in the versions
	if err := allFailed(groups); err != nil && asked > 0 {
		return answer{}, err
	}
	return answer{groups: groups}, nil
}

// legacyGroups are the groups and their versions, preferred first.
func (c *client) legacyGroups(ctx context.Context) ([]group, error) {
	var core metav1.APIVersions
	if err := c.getJSON(ctx, "/api", nil, &core); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var others metav1.APIGroupList
	if err := c.getJSON(ctx, "/apis", nil, &others); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var groups []group
	if len(core.Versions) > 0 {
		g := group{}
		for _, v := range core.Versions {
			g.versions = append(g.versions, version{name: v})
		}
		groups = append(groups, g)
	}
	for _, item := range others.Groups {
		groups = append(groups, legacyGroup(item))
	}
	return groups, nil
}

func legacyGroup(item metav1.APIGroup) group {
	g := group{name: item.Name}
	for _, v := range item.Versions {
		if v.Version == item.PreferredVersion.Version {
			g.versions = append([]version{{name: v.Version}}, g.versions...)
		} else {
			g.versions = append(g.versions, version{name: v.Version})
		}
	}
	return g
}

// legacyVersion fills in the resources of v, or its error.
func (c *client) legacyVersion(ctx context.Context, groupName string, v *version) {
	path := "/apis/" + groupName + "/" + v.name
	if groupName == "" {
		path = "/api/" + v.name
	}
	var list metav1.APIResourceList
	if v.err = c.getJSON(ctx, path, nil, &list); v.err != nil {
		return
	}
	if list.Kind != "APIResourceList" {
		v.err = fmt.Errorf("decode %s: kind is %q, not APIResourceList", path, list.Kind)
		return
	}
	for _, r := range list.APIResources {
		v.resources = append(v.resources, served{
			name:       r.Name,
			kind:       r.Kind,
			singular:   r.SingularName,
			shortNames: orNil(r.ShortNames),
			categories: orNil(r.Categories),
			verbs:      orNil(r.Verbs),
			namespaced: r.Namespaced,
		})
	}
}

// allFailed is the first error if no group version answered.
func allFailed(groups []group) error {
	var first error
	for _, g := range groups {
		for _, v := range g.versions {
			if v.err == nil {
				return nil
			}
			if first == nil {
				first = fmt.Errorf("ask %s: %w", schema.GroupVersion{Group: g.name, Version: v.name}, v.err)
			}
		}
	}
	return first
}
