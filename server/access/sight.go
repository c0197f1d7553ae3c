package access

import (
	"context"

	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sight is what may be seen of some resources of a cluster with a verb, for questions
// about many at once. Others are not seen, but by Everyone. It is as long good as each
// Scope of it.
func Sight(ctx context.Context, who Asker, cluster string, verb cache.Verb, resources []schema.GroupResource) (cache.Sight, error) {
	if who == Everyone() {
		return cache.WholeSight(), nil
	}
	scopes := make(map[schema.GroupResource]cache.Scope, len(resources))
	for _, r := range resources {
		if _, known := scopes[r]; known {
			continue
		}
		scope, err := who.Scope(ctx, cluster, verb, r)
		if err != nil {
			return cache.Sight{}, Unknown(who, err)
		}
		scopes[r] = scope
	}
	return cache.NewSight(scopes), nil
}
