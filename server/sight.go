package server

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
)

// sights are what may be seen of all resources of some clusters, watched or not, by
// cluster. Each may be a question to an API server, so they are asked side by side.
func (s *Server) sights(ctx context.Context, clusters []string, verb cache.Verb) (map[string]cache.Sight, error) {
	resources := map[string][]schema.GroupResource{}
	for _, res := range s.Caches.Resources() {
		spec := res.Spec()
		resources[spec.Cluster] = append(resources[spec.Cluster], spec.GVR.GroupResource())
	}
	sights := map[string]cache.Sight{}
	for _, cluster := range clusters {
		sight, err := access.Sight(ctx, access.From(ctx), cluster, verb, resources[cluster])
		if err != nil {
			return nil, err
		}
		for _, r := range resources[cluster] {
			noteRights(ctx, cluster, verb, r, sight.Of(r))
		}
		sights[cluster] = sight
	}
	return sights, nil
}

// watched are the resources of a cluster that are. What is not is not there to be seen.
func (s *Server) watched(cluster string) (watched []schema.GroupResource) {
	for _, res := range s.Caches.Resources() {
		if spec := res.Spec(); spec.Cluster == cluster && spec.Watch {
			watched = append(watched, spec.GVR.GroupResource())
		}
	}
	return watched
}

// streamSight is what who asks may see of it with list and watch, for streams.
func (s *Server) streamSight(ctx context.Context, cluster string) (cache.Sight, error) {
	listed, err := s.sight(ctx, cluster, cache.List)
	if err != nil {
		return listed, err
	}
	followed, err := s.sight(ctx, cluster, cache.Watch)
	if err != nil {
		return followed, err
	}
	both := map[schema.GroupResource]cache.Scope{}
	for _, r := range s.watched(cluster) {
		both[r] = listed.Of(r).And(followed.Of(r))
	}
	return cache.NewSight(both), nil
}

// sight is what who asks may see of all that is watched of a cluster, for questions
// about many resources at once.
func (s *Server) sight(ctx context.Context, cluster string, verb cache.Verb) (cache.Sight, error) {
	watched := s.watched(cluster)
	audit.From(ctx).AboutMany(string(verb), cluster, everything)
	sight, err := access.Sight(ctx, access.From(ctx), cluster, verb, watched)
	for _, r := range watched {
		noteRights(ctx, cluster, verb, r, sight.Of(r))
	}
	return sight, err
}
