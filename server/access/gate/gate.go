package gate

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/authn"
)

// Authorizer says what users may in one cluster. An error of any method is that it
// cannot be told now. Implementations are safe for concurrent use.
type Authorizer interface {
	Scope(ctx context.Context, u user.Info, verb cache.Verb, r schema.GroupResource, named access.Named) (cache.Scope, time.Time, error)
	Allowed(ctx context.Context, u user.Info, a access.Attributes) (access.Verdict, error)
	Path(ctx context.Context, u user.Info, verb, path string) (access.Verdict, error)
	// Rules are what is known of what u may in a namespace.
	Rules(ctx context.Context, u user.Info, namespace string) (authorizationv1.SubjectRulesReviewStatus, error)
	// Mark is another one when any of the above may be, before the time that was
	// given with it is over. It costs next to nothing.
	Mark(ctx context.Context, u user.Info) string
}

// Cluster is how people are known in one cluster, and what they may there.
type Cluster struct {
	Authenticator *authn.Authenticator
	Authorizer    Authorizer
	FrontProxy    *authn.FrontProxy // whose headers nobody else may send; may be nil
}

// Options configure a Gate. Clusters and Cluster are required.
type Options struct {
	// Clusters are the names of all clusters.
	Clusters func() []string
	// Cluster is one of them, nil if there is none of that name.
	Cluster func(name string) *Cluster
	// Log gets why somebody could not be told from others; nil discards it.
	Log *slog.Logger
}

// Gate makes askers. It is safe for concurrent use.
type Gate struct {
	Options
	log *slog.Logger
}

// New makes a Gate.
func New(o Options) *Gate {
	g := &Gate{Options: o, log: o.Log}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g
}

// open are the paths that answer whoever asks, since who asks for them shows nothing:
// the probes of a kubelet. They see nothing.
var open = []string{"/livez", "/healthz", "/readyz"}

// Asker says who makes a request. Its error is what they are answered with: 401 if no
// cluster that the request is about knows them, 403 if they may not be whom they want
// to be, 503 if it cannot be told now.
//
// All by which a front proxy tells who asks is taken out of the request.
func (g *Gate) Asker(r *http.Request) (access.Asker, error) {
	a := newAsker(g, r)
	authn.DefaultHeaders().Strip(r.Header)
	for _, name := range g.Clusters() {
		if c := g.Cluster(name); c != nil && c.FrontProxy != nil {
			c.FrontProxy.Headers().Strip(r.Header)
		}
	}
	err := a.enter(r.Context())
	switch {
	case err == nil:
		return a, nil
	case slices.Contains(open, r.URL.Path) && !isBadRequest(err):
		return access.From(context.Background()), nil
	}
	return nil, g.answer(r, err)
}

// about are the clusters that a request is about: those it names, or all. One that there
// is not knows nobody, like one that does not know who asks: they are answered alike, and
// what shows who asks is shown to none of the others.
func (g *Gate) about(r *http.Request) []string {
	if named := clustersOf(r); len(named) > 0 {
		return named
	}
	return g.Clusters()
}

// answer is what a client is told of err, whose cause is for the log.
func (g *Gate) answer(r *http.Request, err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	if errors.Is(err, authn.ErrNobody) {
		return errUnauthorized()
	}
	if cause := r.Context().Err(); cause != nil {
		return cause
	}
	g.log.Debug("cannot tell who asks", "path", r.URL.Path, "err", err)
	return errUnknown("who asks")
}

func errUnauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

// errUnknown is a refusal that is nobody's fault who asks.
func errUnknown(what string) error {
	err := apierrors.NewServiceUnavailable(what + " cannot be told now: the API server that decides it does not answer")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

func isBadRequest(err error) bool { return apierrors.IsBadRequest(err) }
