package gate

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// Rights are what roles grant one user in one cluster.
type Rights interface {
	// Digest is the same for rights that are the same.
	Digest() string
	Scope(verb cache.Verb, r schema.GroupResource) cache.Scope
	Allowed(a access.Attributes) bool
	Path(verb, path string) bool
	Rules(namespace string) ([]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule)
}

// Roles tell the Rights of users. An error is that the roles cannot be read now. It
// costs next to nothing to be told the same again.
type Roles func(ctx context.Context, u user.Info) (Rights, error)

// ByRoles is an Authorizer that takes the word of roles, and nobody else's; and what
// package review proposes by.
type ByRoles struct{ Roles Roles }

var _ Authorizer = ByRoles{}

// untilTold is how long an answer counts: until Mark tells otherwise.
const untilTold = 24 * time.Hour

// Granted is what roles grant of a resource.
func (b ByRoles) Granted(ctx context.Context, u user.Info, verb cache.Verb, r schema.GroupResource) (cache.Scope, error) {
	rights, err := b.rightsOf(ctx, u)
	if err != nil {
		return cache.Scope{}, err
	}
	return rights.Scope(verb, r), nil
}

// Scope is Granted, wherever it may be.
func (b ByRoles) Scope(ctx context.Context, u user.Info, verb cache.Verb, r schema.GroupResource, _ access.Named) (cache.Scope, time.Time, error) {
	scope, err := b.Granted(ctx, u, verb, r)
	return scope, time.Now().Add(untilTold), err
}

// Allowed is whether a role grants a request.
func (b ByRoles) Allowed(ctx context.Context, u user.Info, a access.Attributes) (access.Verdict, error) {
	rights, err := b.rightsOf(ctx, u)
	if err != nil {
		return access.Verdict{}, err
	}
	return access.Verdict{Allowed: rights.Allowed(a), Until: time.Now().Add(untilTold)}, nil
}

// Path is whether a role grants what is no resource.
func (b ByRoles) Path(ctx context.Context, u user.Info, verb, path string) (access.Verdict, error) {
	rights, err := b.rightsOf(ctx, u)
	if err != nil {
		return access.Verdict{}, err
	}
	return access.Verdict{Allowed: rights.Path(verb, path), Until: time.Now().Add(untilTold)}, nil
}

// Rules are those of the roles.
func (b ByRoles) Rules(ctx context.Context, u user.Info, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	rights, err := b.rightsOf(ctx, u)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, err
	}
	resources, paths := rights.Rules(namespace)
	return authorizationv1.SubjectRulesReviewStatus{ResourceRules: resources, NonResourceRules: paths}, nil
}

// Mark is the digest of the rights, or why there are none.
func (b ByRoles) Mark(ctx context.Context, u user.Info) string {
	rights, err := b.rightsOf(ctx, u)
	if err != nil {
		return "unknown: " + err.Error()
	}
	return rights.Digest()
}
