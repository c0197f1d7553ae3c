package server

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
)

// sight is what who asks may see of all that is watched of a cluster, for questions
// about many resources at once. What is not watched is not there to be seen.
func (s *Server) sight(ctx context.Context, cluster string, verb cache.Verb) (cache.Sight, error) {
	var watched []schema.GroupResource
	for _, res := range s.Caches.Resources() {
		if spec := res.Spec(); spec.Cluster == cluster && spec.Watch {
			watched = append(watched, spec.GVR.GroupResource())
		}
	}
	audit.From(ctx).AboutMany(string(verb), cluster, everything)
	sight, err := access.Sight(ctx, access.From(ctx), cluster, verb, watched)
	for _, r := range watched {
		noteRights(ctx, cluster, verb, r, sight.Of(r))
	}
	return sight, err
}
