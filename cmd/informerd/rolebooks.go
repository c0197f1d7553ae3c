package main

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	askers "github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/gate"
	"github.com/informerd/informerd/server/access/rbac"
)

// roleBooks are the roles of each cluster, as its copy has them.
type roleBooks struct {
	factory *replica.Factory
	options rbac.Options
}

func newRoleBooks(cfg *config.Config, factory *replica.Factory) *roleBooks {
	b := &roleBooks{factory: factory}
	if cfg.Authorization.Mode == config.Review {
		b.options.MaxAge = -1 // old roles only propose what the API server is asked about now
	}
	return b
}

// open makes the book of a cluster. It reads nothing until somebody asks.
func (b *roleBooks) open(cluster string) *rbac.Grants {
	return rbac.New(func() []follow.Resource { return rolesOf(b.factory, cluster) }, b.options)
}

// rolesOf are the resources of a cluster that say what users may, those it has.
func rolesOf(factory *replica.Factory, cluster string) (all []follow.Resource) {
	for _, name := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		i, err := factory.Informer(cache.Resource{Cluster: cluster, GVR: rbacv1.SchemeGroupVersion.WithResource(name)})
		if err == nil {
			all = append(all, i)
		}
	}
	return all
}

// rolesFrom are the roles of the cluster whose book it is.
func rolesFrom(grants *rbac.Grants) gate.Roles {
	return func(ctx context.Context, u user.Info) (gate.Rights, error) {
		rights, err := grants.Rights(ctx, u)
		if err != nil {
			return nil, err
		}
		return roleRights{rights}, nil
	}
}

// roleRights are Rights in the words of package gate.
type roleRights struct{ *rbac.Rights }

func (r roleRights) Scope(verb cache.Verb, resource schema.GroupResource) cache.Scope {
	return r.Rights.Scope(verb, resource, "")
}

func (r roleRights) Allowed(a askers.Attributes) bool {
	return r.Rights.Allowed(rbac.Attributes{
		Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
	})
}
