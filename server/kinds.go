package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
)

// see finds the resources that the parameters name, as what q asks may be seen of
// them. One of which nothing may be seen is left out where a glob names it, and stays
// to be refused where it is named itself. If nothing is left, that is the error.
func (s *Server) see(ctx context.Context, p params, q *query) ([]*viewed, error) {
	found, err := s.resourcesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	return seeAll(ctx, found, q)
}

// seeEach is see, but that of several clusters one which cannot tell now what may be seen
// of it holds up none: it is told to dark, with the reason.
func (s *Server) seeEach(ctx context.Context, p params, q *query, dark func(cluster string, err error)) ([]*viewed, error) {
	found, err := s.resourcesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	several := slices.ContainsFunc(found, func(r namedResource) bool { return r.Spec().Cluster != found[0].Spec().Cluster })
	told := map[string]bool{}
	return seeSome(ctx, found, q, func(cluster string, err error) bool {
		if !several || !apierrors.IsServiceUnavailable(err) {
			return false
		}
		if !told[cluster] {
			told[cluster] = true
			dark(cluster, err)
		}
		return true
	})
}

func seeAll(ctx context.Context, found []namedResource, q *query) ([]*viewed, error) {
	return seeSome(ctx, found, q, func(string, error) bool { return false })
}

// seeSome leaves out resources of which it cannot be told what may be seen where without
// says so. If it leaves out all, that is the error.
func seeSome(ctx context.Context, found []namedResource, q *query, without func(cluster string, err error) bool) ([]*viewed, error) {
	kinds := make([]*viewed, 0, len(found))
	var refused error
	for _, res := range found {
		v, err := see(ctx, res.Resource, q.verbs()...)
		if err != nil && without(res.Spec().Cluster, err) {
			refused = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := v.refused(q.Namespaces); err != nil && !res.named {
			refused = cmp.Or(refused, err)
			continue
		}
		kinds = append(kinds, v)
	}
	if len(kinds) == 0 {
		return nil, refused
	}
	verbs := q.verbs()
	recordKinds(audit.From(ctx), kinds, verbs[len(verbs)-1])
	return kinds, nil
}

// namedResource is one that parameters name: itself, or only by a glob.
type namedResource struct {
	Resource
	named bool
}

// resourcesOf finds the resources that the parameters name, each once, in the
// order of cache.Resource.Compare.
func (s *Server) resourcesOf(ctx context.Context, p params) ([]namedResource, error) {
	clusters := s.clustersOf(ctx, p)
	for _, name := range clusters {
		if err := s.checkCluster(ctx, name); err != nil {
			return nil, err
		}
	}
	found := map[cache.Resource]namedResource{}
	column := 1
	for text := range strings.SplitSeq(patternsOf(p), ",") {
		some, err := s.resourcesLike(ctx, clusters, strings.TrimSpace(text), column)
		if err != nil {
			return nil, err
		}
		named := !strings.ContainsAny(text, globs)
		for _, r := range some {
			key := r.Spec().Resource
			found[key] = namedResource{r, named || found[key].named}
		}
		column += len(text) + 1
	}
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b namedResource) int { return a.Spec().Compare(b.Spec().Resource) })
	return all, nil
}

// clustersOf are those that the parameters name, or all that who asks is known in.
func (s *Server) clustersOf(ctx context.Context, p params) []string {
	if named := p.Values["cluster"]; len(named) > 0 {
		return named
	}
	return s.clusterNames(ctx)
}

func patternsOf(p params) string {
	if p.Has("resources") {
		return p.Get("resources")
	}
	return "*"
}

// globs are the characters that make a name a pattern.
const globs = "*?["

// resourcesLike finds the resources of one pattern. A name without globs is one
// that kubectl accepts, and must exist in one of the clusters.
func (s *Server) resourcesLike(ctx context.Context, clusters []string, pattern string, column int) ([]Resource, error) {
	if !strings.ContainsAny(pattern, globs) {
		if pattern == "" {
			return nil, invalid("resources", "column %d: a name is missing; write for example pods,*.apps", column)
		}
		return s.resourcesCalled(clusters, pattern, column)
	}
	match, err := resourcePattern(pattern)
	if err != nil {
		return nil, invalid("resources", "column %d: %v", column, err)
	}
	missing := s.undiscoveredKinds(ctx, clusters, pattern)
	var some []Resource
	for _, r := range s.Caches.Resources() {
		if spec := r.Spec(); slices.Contains(clusters, spec.Cluster) && match(spec) {
			some = append(some, r)
		}
	}
	if len(some) == 0 && missing != nil {
		return nil, noneReadable(missing)
	}
	if len(some) == 0 {
		return nil, notFound("resources: column %d: no resource is called like %s", column, pattern)
	}
	return some, nil
}

// resourcesCalled finds the resource of a name in each cluster that has it. One of several
// that has not told what it has is among undiscoveredKinds, and holds up none.
func (s *Server) resourcesCalled(clusters []string, name string, column int) ([]Resource, error) {
	var all []Resource
	var unknown, untold error
	for _, cluster := range clusters {
		r, err := s.Caches.Lookup(cluster, name)
		switch {
		case err == nil, errors.Is(err, cache.ErrNotWatched):
			all = append(all, r)
		case errors.Is(err, cache.ErrUnknownResource):
			unknown = err
		case errors.Is(err, cache.ErrNotSynced):
			untold = err
		default:
			return nil, fmt.Errorf("resources: column %d: %w", column, err)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("resources: column %d: %w", column, cmp.Or(untold, unknown))
	}
	return all, nil
}

var versionPart = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// resourcePattern reads *, *.apps, dep*.apps and *.v1.apps as config.yaml does:
// a star for the resource does not reach into the group.
func resourcePattern(pattern string) (func(cache.Spec) bool, error) {
	if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
		return nil, fmt.Errorf("%q is not a glob over names such as deployments.apps", pattern)
	}
	if pattern == "*" {
		return func(cache.Spec) bool { return true }, nil
	}
	resource, group, _ := strings.Cut(strings.ToLower(pattern), ".")
	version := ""
	if v, rest, _ := strings.Cut(group, "."); versionPart.MatchString(v) {
		version, group = v, rest
	}
	return func(spec cache.Spec) bool {
		okResource, _ := path.Match(resource, spec.GVR.Resource)
		okGroup, _ := path.Match(group, spec.GVR.Group)
		return okResource && okGroup && (version == "" || version == spec.GVR.Version)
	}, nil
}
