package access

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// sightQuestions is how many resources are asked about at once: each may be a question
// to the API server.
const sightQuestions = 8

// Sight is what may be seen of some resources of a cluster with a verb, for questions
// about many at once. Others are not seen, but by Everyone. It is as long good as each
// Scope of it.
func Sight(ctx context.Context, who Asker, cluster string, verb cache.Verb, resources []schema.GroupResource) (cache.Sight, error) {
	if who == Everyone() {
		return cache.WholeSight(), nil
	}
	distinct := slices.Clone(resources)
	slices.SortFunc(distinct, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	distinct = slices.Compact(distinct)
	found := make([]cache.Scope, len(distinct))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sightQuestions)
	for n, r := range distinct {
		g.Go(func() (err error) {
			found[n], err = who.Scope(ctx, cluster, verb, r)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return cache.Sight{}, Unknown(who, err)
	}
	scopes := make(map[schema.GroupResource]cache.Scope, len(distinct))
	for n, r := range distinct {
		scopes[r] = found[n]
	}
	return cache.NewSight(scopes), nil
}
