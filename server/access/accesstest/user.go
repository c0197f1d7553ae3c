// Package accesstest has askers for tests, who may see what the test says.
package accesstest

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// User is an access.Asker whose rights are those granted, in all clusters. Any
// goroutine may use and change it.
type User struct {
	name string

	mu         sync.Mutex // guards all below
	scopes     map[schema.GroupResource]map[cache.Verb]cache.Scope
	paths      bool
	generation uint64
	err        error
}

var _ access.Asker = (*User)(nil)

// NewUser returns one who may see nothing.
func NewUser(name string) *User {
	return &User{name: name, scopes: map[schema.GroupResource]map[cache.Verb]cache.Scope{}}
}

// Grant makes scope what may be seen of a resource with verbs, all if there are none. It
// returns the User.
func (u *User) Grant(r schema.GroupResource, scope cache.Scope, verbs ...cache.Verb) *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(verbs) == 0 {
		verbs = cache.Verbs
	}
	if u.scopes[r] == nil {
		u.scopes[r] = map[cache.Verb]cache.Scope{}
	}
	for _, verb := range verbs {
		u.scopes[r][verb] = scope
	}
	u.generation++
	return u
}

// GrantPaths lets all be read that is no resource.
func (u *User) GrantPaths() *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths = true
	return u
}

// RevokePaths takes back what GrantPaths granted.
func (u *User) RevokePaths() *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths = false
	u.generation++
	return u
}

// Fail makes every question fail from now on.
func (u *User) Fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
}

// Name is of access.Asker.
func (u *User) Name() string { return u.name }

// Scope is of access.Asker.
func (u *User) Scope(_ context.Context, _ string, verb cache.Verb, r schema.GroupResource) (cache.Scope, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return cache.Scope{}, u.err
	}
	return u.scopes[r][verb], nil
}

// Allowed is of access.Asker.
func (u *User) Allowed(ctx context.Context, a access.Attributes) (bool, string, error) {
	scope, err := u.Scope(ctx, a.Cluster, cache.Verb(a.Verb), a.GroupResource())
	switch {
	case err != nil:
		return false, "", err
	case a.Subresource != "":
		return false, "", nil
	case a.Resource == "namespaces":
		return scope.Whole() || a.Name != "" && scope.Sees(cache.Key{Name: a.Name}), "", nil
	case a.Name != "":
		return scope.Sees(cache.Key{Namespace: a.Namespace, Name: a.Name}), "", nil
	case a.Namespace != "":
		return scope.Namespace(a.Namespace), "", nil
	}
	return scope.Whole(), "", nil
}

// Path is of access.Asker.
func (u *User) Path(context.Context, string, string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.paths, u.err
}

// Generation is of access.Asker.
func (u *User) Generation(context.Context, string) (uint64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.generation, u.err
}
