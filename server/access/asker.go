package access

import (
	"context"

	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Asker is who asks, and what they may see. There is one for each request, in its
// context. Any goroutine may use it, as long as the request is being answered.
//
// An error of any method means that it cannot be told now, and that nothing may be
// seen: whoever has it refuses, and says why to the log. One that is an
// *apierrors.StatusError is what the client is answered with.
type Asker interface {
	// Name is for logs, limits and messages: the user's name. It is empty for
	// Everyone.
	Name() string

	// Scope is what may be seen of a resource with a verb. What is seen as a whole
	// with Watch is not for that reason seen with List.
	Scope(ctx context.Context, cluster string, verb cache.Verb, r schema.GroupResource) (cache.Scope, error)

	// Allowed is the API server's verdict on one request, with its reason, which is
	// often empty.
	Allowed(ctx context.Context, a Attributes) (allowed bool, reason string, err error)

	// Path is the verdict on a request for what is no resource, such as /metrics, with
	// a verb in lower case: get.
	Path(ctx context.Context, verb, path string) (bool, error)

	// Generation is another number when what was answered so far of a cluster may
	// be answered in another way now, and only then. Streams ask for it several
	// times a second: it costs next to nothing. They end with an error of it, since
	// who asks is nobody any more.
	Generation(ctx context.Context, cluster string) (uint64, error)
}

// Attributes are what a verdict depends on beside who asks, as in a
// SubjectAccessReview.
type Attributes struct {
	Cluster string
	// Verb is one of the API server's: get, list, watch, or any other.
	Verb        string
	Group       string
	Version     string
	Resource    string // plural, lower case
	Subresource string
	// Namespace is empty at cluster scope, and for all namespaces.
	Namespace string
	// Name is that of one object. The API server takes it from a field selector
	// metadata.name=x of a list or a watch, too.
	Name string
	// LabelSelector and FieldSelector are as they were asked for; empty: none.
	LabelSelector string
	FieldSelector string
}

// GroupResource is what a verdict is of, in all its versions.
func (a Attributes) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: a.Group, Resource: a.Resource}
}

type contextKey struct{}

// With is ctx with who asks.
func With(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// From is who asks. It is never nil: one that sees nothing, where nobody said who.
func From(ctx context.Context) Asker {
	if a, ok := ctx.Value(contextKey{}).(Asker); ok && a != nil {
		return a
	}
	return nobody{}
}

// Everyone sees everything: of a server on loopback without authentication, whose
// requests all come from who runs it.
func Everyone() Asker { return everyone{} }

type everyone struct{}

func (everyone) Name() string { return "" }

func (everyone) Scope(context.Context, string, cache.Verb, schema.GroupResource) (cache.Scope, error) {
	return cache.WholeScope(), nil
}

func (everyone) Allowed(context.Context, Attributes) (bool, string, error) { return true, "", nil }

func (everyone) Path(context.Context, string, string) (bool, error) { return true, nil }

func (everyone) Generation(context.Context, string) (uint64, error) { return 0, nil }

// nobody sees nothing.
type nobody struct{}

func (nobody) Name() string { return "" }

func (nobody) Scope(context.Context, string, cache.Verb, schema.GroupResource) (cache.Scope, error) {
	return cache.Scope{}, nil
}

func (nobody) Allowed(context.Context, Attributes) (bool, string, error) { return false, "", nil }

func (nobody) Path(context.Context, string, string) (bool, error) { return false, nil }

func (nobody) Generation(context.Context, string) (uint64, error) { return 0, nil }

// Settled reports whether what a may see never changes, so that nobody has to look.
func Settled(a Asker) bool {
	switch a.(type) {
	case everyone, nobody:
		return true
	}
	return false
}

// Stranger reports whether a is known to be nobody in a cluster, and is not to be told
// that there is one. Everyone is somebody everywhere, as is an Asker that does not tell.
func Stranger(ctx context.Context, a Asker, cluster string) bool {
	s, ok := a.(interface {
		Stranger(ctx context.Context, cluster string) bool
	})
	return ok && s.Stranger(ctx, cluster)
}
