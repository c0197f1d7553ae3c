package gate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/authn"
)

// asker is who makes one request.
type asker struct {
	gate *Gate
	// shown is what the request shows of who makes it, as it came in.
	shown  *http.Request
	wanted *authn.Wanted // whom it is to be made as; nil: nobody else
	bad    error         // what is wrong with wanted
	named  access.Named
	about  []string  // clusters
	fixed  user.Info // who it is, whatever is shown; nil: who the request shows

	mu    sync.Mutex // guards all below
	name  string
	known map[string]*acquaintance
}

var _ access.Asker = (*asker)(nil)

func newAsker(g *Gate, r *http.Request) *asker {
	a := &asker{
		gate:  g,
		shown: &http.Request{Method: r.Method, URL: r.URL, Header: r.Header.Clone(), TLS: r.TLS, RemoteAddr: r.RemoteAddr},
		named: namedBy(r), about: g.about(r), known: map[string]*acquaintance{},
	}
	a.wanted, a.bad = authn.WantedBy(r.Header)
	return a
}

// enter finds out who asks in each cluster that the request is about. It is enough to
// be known in one of them; its error is why nobody is.
func (a *asker) enter(ctx context.Context) error {
	clusters := a.about
	errs := make([]error, len(clusters))
	users := make([]user.Info, len(clusters))
	if len(clusters) == 0 {
		return &authn.Unavailable{Cause: errors.New("no cluster is configured")}
	}
	var others sync.WaitGroup
	for i, name := range clusters[1:] {
		others.Go(func() { users[i+1], errs[i+1] = a.user(ctx, name) })
	}
	users[0], errs[0] = a.user(ctx, clusters[0]) // the only one, mostly
	others.Wait()
	a.record(ctx)
	for i, u := range users {
		if errs[i] == nil {
			a.mu.Lock()
			a.name = u.GetName()
			a.mu.Unlock()
			return nil
		}
	}
	return gravest(errs)
}

// gravest is the error that says most: a refusal of what was asked for, that it cannot
// be told, or that somebody is nobody.
func gravest(errs []error) error {
	worst := errs[0]
	for _, err := range errs {
		if _, refused := errors.AsType[*apierrors.StatusError](err); refused {
			return err
		}
		if !errors.Is(err, authn.ErrNobody) {
			worst = err
		}
	}
	return worst
}

// Name is that of the user whom the request is made as.
func (a *asker) Name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.name
}

// in is what is known of who asks in one cluster.
func (a *asker) in(cluster string) *acquaintance {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.known[cluster]
	if k == nil {
		k = newAcquaintance(a, cluster)
		a.known[cluster] = k
	}
	return k
}

func (a *asker) user(ctx context.Context, cluster string) (user.Info, error) {
	k := a.in(cluster)
	if err := k.lock(ctx); err != nil {
		return nil, err
	}
	defer k.unlock()
	return k.user(ctx, time.Now())
}

// Scope is what may be seen. Somebody whom the cluster does not know sees nothing of it.
func (a *asker) Scope(ctx context.Context, cluster string, verb cache.Verb, r schema.GroupResource) (cache.Scope, error) {
	var scope cache.Scope
	q := question{verb: verb, resource: r}
	err := a.in(cluster).ask(ctx, q, func(ctx context.Context, c *Cluster, u user.Info) (told, error) {
		s, until, err := c.Authorizer.Scope(ctx, u, verb, r, a.named)
		scope = s
		return told{s.Digest(), until}, err
	})
	return scope, err
}

// Allowed is the verdict of the API server of a.Cluster.
func (a *asker) Allowed(ctx context.Context, attributes access.Attributes) (bool, string, error) {
	var verdict access.Verdict
	q := question{attributes: attributes}
	err := a.in(attributes.Cluster).ask(ctx, q, func(ctx context.Context, c *Cluster, u user.Info) (told, error) {
		v, err := c.Authorizer.Allowed(ctx, u, attributes)
		verdict = v
		return toldOf(v), err
	})
	return verdict.Allowed, verdict.Reason, err
}

// Path is whether every cluster that the request is about lets who asks read a path:
// what is served there, such as /metrics, is of all of them.
func (a *asker) Path(ctx context.Context, verb, path string) (bool, error) {
	for _, cluster := range a.about {
		if allowed, _, err := a.PathIn(ctx, cluster, verb, path); err != nil || !allowed {
			return false, err
		}
	}
	return len(a.about) > 0, nil
}

// PathIn is the verdict of one cluster on a path.
func (a *asker) PathIn(ctx context.Context, cluster, verb, path string) (bool, string, error) {
	var verdict access.Verdict
	q := question{verb: cache.Verb(verb), path: path}
	err := a.in(cluster).ask(ctx, q, func(ctx context.Context, c *Cluster, u user.Info) (told, error) {
		v, err := c.Authorizer.Path(ctx, u, verb, path)
		verdict = v
		return toldOf(v), err
	})
	return verdict.Allowed, verdict.Reason, err
}

// Stranger reports whether a cluster says that who asks is nobody. That it cannot be
// told now is not that: questions about the cluster fail with it.
func (a *asker) Stranger(ctx context.Context, cluster string) bool {
	_, err := a.user(ctx, cluster)
	return isNobody(err)
}

// Generation is another number when an answer of above may be another.
func (a *asker) Generation(ctx context.Context, cluster string) (uint64, error) {
	return a.in(cluster).generation(ctx)
}
