// Package rbac tells what users may read, from the roles and bindings that the
// copy of a cluster holds, in the words of package cache: Scopes. Its verdicts are
// those of Kubernetes' RBAC authorizer over the same objects.
//
// Roles and bindings are read when somebody asks, and from then on only what
// changed since. Rights are worked out for who asks, from the bindings that name
// them, and shared by all who have the same.
//
// It refuses to guess: where one of the four resources cannot be read, nothing is
// told. It knows of no other authorizer that the cluster may have.
package rbac
