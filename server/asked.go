package server

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// asked is what was told of rights while a request was made an answer to. Whoever waited
// long for it, behind others who ask for processors, for a version, for what is read of an
// API server, might be told by rights that they have no more: so all is asked again before
// the answer is written.
//
// Streams do not need it: they ask all the time, see rights.
type asked struct {
	began time.Time

	mu   sync.Mutex // guards told
	told map[rightsIn]map[schema.GroupResource]cache.Scope
}

// rightsIn are asked for together.
type rightsIn struct {
	cluster string
	verb    cache.Verb
}

type askedKey struct{}

// noting is ctx with an account of what will be told of rights, if that may change.
func noting(ctx context.Context) context.Context {
	if access.Settled(access.From(ctx)) {
		return ctx
	}
	return context.WithValue(ctx, askedKey{}, &asked{began: time.Now(), told: map[rightsIn]map[schema.GroupResource]cache.Scope{}})
}

// noteRights enters what was told last of a resource.
func noteRights(ctx context.Context, cluster string, verb cache.Verb, r schema.GroupResource, scope cache.Scope) {
	a, ok := ctx.Value(askedKey{}).(*asked)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	in := rightsIn{cluster, verb}
	if a.told[in] == nil {
		a.told[in] = map[schema.GroupResource]cache.Scope{}
	}
	a.told[in][r] = scope
}

// sameRights refuses an answer that took long and was made by other rights than those of
// now: as a stream ends whose rights have changed, or with 403 where nothing may be seen
// any more of all it is about.
func sameRights(ctx context.Context) error {
	a, ok := ctx.Value(askedKey{}).(*asked)
	if !ok || time.Since(a.began) < rightsInterval {
		return nil
	}
	who := access.From(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	for in, told := range a.told {
		resources := make([]schema.GroupResource, 0, len(told))
		for r := range told {
			resources = append(resources, r)
		}
		now, err := access.Sight(ctx, who, in.cluster, in.verb, resources)
		if err != nil {
			return err
		}
		for r, scope := range told {
			switch present := now.Of(r); {
			case present.Digest() == scope.Digest():
			case present.Empty() && len(a.told) == 1 && len(told) == 1:
				return access.Forbidden(who, access.Attributes{Cluster: in.cluster, Verb: string(in.verb), Group: r.Group, Resource: r.Resource}, "")
			default:
				return errRights
			}
		}
	}
	return nil
}
