package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/reply"
)

// retryGivenUp is the Retry-After, in seconds, of a resource in a state that
// only a person changes.
const retryGivenUp = 30

// viewed is a resource and the View that one request takes of it, as who asks may see
// it. All that is said of the resource in the answer is of this View.
type viewed struct {
	Resource
	grant
	view   *cache.View
	reader *cache.Reader // nil unless the View is readable
}

// see takes a View of a resource, as what may be seen of it with verbs.
func see(ctx context.Context, res Resource, verbs ...cache.Verb) (*viewed, error) {
	g, err := granted(ctx, res.Spec(), verbs...)
	if err != nil {
		return nil, err
	}
	return viewOf(res, g), nil
}

func viewOf(res Resource, g grant) *viewed { return viewIn(res, g, res.View()) }

func viewIn(res Resource, g grant, of *cache.View) *viewed {
	view := of.SeenBy(g.scope)
	v := &viewed{Resource: res, grant: g, view: view}
	if v.reader = view.Reader(g.scope); v.reader != nil {
		v.reader = v.reader.For(g.who.Name())
	}
	return v
}

// latest is the resource as it is now, seen by the same rights.
func (v *viewed) latest() *viewed { return viewOf(v.Resource, v.grant) }

// because says why the resource is not answered.
func (v *viewed) because(err error) {
	told := *v.view
	told.Reason = err.Error()
	v.view = &told
}

// stillSeen is grant.stillSeen of the resource.
func (v *viewed) stillSeen(ctx context.Context) error { return v.grant.stillSeen(ctx, v.view.Spec) }

// refused is why nothing of what is asked for may be seen; nil if something may.
func (v *viewed) refused(namespaces []string) error { return v.refusal(v.view.Spec, namespaces) }

// lookup finds the resource the path names, readable or not. One that is not
// watched comes with cache.ErrNotWatched.
func (s *Server) lookup(r *http.Request) (Resource, error) {
	name, err := pathValue(r, "resource")
	if err != nil {
		return nil, err
	}
	cluster, err := s.clusterOf(r.Context(), paramsOf(r))
	if err != nil {
		return nil, err
	}
	res, err := s.Caches.Lookup(cluster, name)
	if res != nil {
		recordResource(r, res.Spec())
	}
	return res, err
}

// lookupReadable finds the resource the path names and refuses one of which nothing
// may be seen with verbs, in one of namespaces or, without any, at all; and one without
// data.
func (s *Server) lookupReadable(w http.ResponseWriter, r *http.Request, namespaces []string, verbs ...cache.Verb) (*viewed, error) {
	res, err := s.lookup(r)
	if err != nil {
		return nil, err
	}
	return readableOf(w, r, res, namespaces, verbs...)
}

// lookupFor is lookupReadable for the answer to q, which may be given ahead of a snapshot that
// is still being read.
func (s *Server) lookupFor(w http.ResponseWriter, r *http.Request, q *query) (*viewed, error) {
	res, err := s.lookup(r)
	if err != nil {
		return nil, err
	}
	v, err := seenFor(r.Context(), res, q.Namespaces, q.verbs()...)
	if err != nil {
		return nil, err
	}
	if v.reader == nil {
		v = v.ahead(r.Context(), q)
	}
	if v.reader == nil {
		return nil, notReadable(w, v.view)
	}
	return v, nil
}

// readsAhead is a Resource that can answer some questions before all of it is there;
// *replica.Informer is one.
type readsAhead interface {
	Ahead(ctx context.Context, scope cache.Scope, q cache.Query) *cache.View
}

// ahead is v, or what it is for q alone, before all of it is there. Whatever refers to other
// answers waits: a page that another one follows, a version, the plan of a question, a watch.
func (v *viewed) ahead(ctx context.Context, q *query) *viewed {
	res, ok := v.Resource.(readsAhead)
	if !ok || q.watch || q.explain || q.limit > 0 || q.token != "" || q.version != "" {
		return v
	}
	if view := res.Ahead(ctx, v.scope, q.Query); view != nil {
		return viewIn(v.Resource, v.grant, view)
	}
	return v
}

func readableOf(w http.ResponseWriter, r *http.Request, res Resource, namespaces []string, verbs ...cache.Verb) (*viewed, error) {
	v, err := seenFor(r.Context(), res, namespaces, verbs...)
	if err != nil {
		return nil, err
	}
	if v.reader == nil {
		return nil, notReadable(w, v.view)
	}
	return v, nil
}

// seenFor is see of a resource, of which something may be seen in namespaces.
func seenFor(ctx context.Context, res Resource, namespaces []string, verbs ...cache.Verb) (*viewed, error) {
	v, err := see(ctx, res, verbs...)
	if err == nil {
		err = v.refused(namespaces)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// clusterNames are the clusters that who asks is somebody in. There are no others to them.
func (s *Server) clusterNames(ctx context.Context) (names []string) {
	who := access.From(ctx)
	for _, c := range s.Caches.Clusters() {
		if !access.Stranger(ctx, who, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

func (s *Server) checkCluster(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	names := s.clusterNames(ctx)
	if slices.Contains(names, name) {
		return nil
	}
	return invalid("cluster", "%q is not configured (there is: %s)", name, strings.Join(names, ", "))
}

// notReadable says that there is no data, which is not the same as no objects.
func notReadable(w http.ResponseWriter, view *cache.View) error {
	w.Header().Set(cache.StateHeader, string(view.State))
	seconds, message := int32(1), fmt.Sprintf("%s is %s: there is no data yet", view.Spec.Name(), view.State)
	if view.State == cache.Forbidden || view.State == cache.Failed {
		seconds, message = retryGivenUp, fmt.Sprintf("%s is %s", view.Spec.Name(), view.State)
	}
	return noData(seconds, message, view.Reason)
}

// namespaceMissing is notReadable of one namespace of a resource.
func namespaceMissing(w http.ResponseWriter, view *cache.View, m cache.MissingNamespace) error {
	w.Header().Set(cache.StateHeader, string(m.State))
	return noNamespaceData(view, m)
}

func noNamespaceData(view *cache.View, m cache.MissingNamespace) error {
	seconds := int32(1)
	if m.State == cache.Forbidden || m.State == cache.Failed {
		seconds = retryGivenUp
	}
	return noData(seconds, fmt.Sprintf("%s of namespace %s is %s", view.Spec.Name(), m.Namespace, m.State), m.Reason)
}

func noData(seconds int32, message, reason string) error {
	if reason != "" {
		message += ": " + reason
	}
	unavailable := reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	return statusError(retryAfter(unavailable, seconds))
}
