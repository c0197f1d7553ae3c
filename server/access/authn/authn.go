package authn

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access"
)

// Options configure an Authenticator. What is left out is a way by which nobody is
// known.
type Options struct {
	// FrontProxy is asked first, then Clients for certificates, then Tokens.
	FrontProxy *FrontProxy
	Clients    *Authorities
	Tokens     TokenReviewer
	// Audiences are what a token must be made for. None: for the API server.
	Audiences []string
	// TTL is how long the API server's word on a token counts, default DefaultTTL.
	TTL time.Duration
	// Anonymous lets in who shows nothing at all, as system:anonymous. Who shows
	// something wrong is refused.
	Anonymous bool
	// Told hears how each question to the API server went; nil: nobody does.
	Told func(error)
}

// Authenticator says who asks, for one cluster. It is safe for concurrent use.
type Authenticator struct {
	proxy, clients authenticator.Request
	tokens         *tokens
	anonymous      bool
}

// New makes an Authenticator.
func New(o Options) *Authenticator {
	a := &Authenticator{anonymous: o.Anonymous}
	if o.FrontProxy != nil {
		a.proxy = o.FrontProxy.authenticator()
	}
	if o.Clients != nil {
		a.clients = x509request.NewDynamic(o.Clients.options, x509request.CommonNameUserConversion)
	}
	if o.Told == nil {
		o.Told = func(error) {}
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.Tokens != nil {
		a.tokens = newTokens(o.Tokens, o.Audiences, o.TTL, o.Told)
	}
	return a
}

// ErrNobody is that a request shows nothing by which the cluster knows who makes it.
// It does not say why: that would help whoever tries.
var ErrNobody = errors.New("who asks is not known")

// Identity is who asks, and how they are known.
type Identity struct {
	user.Info
	By Means
}

// Means is how somebody is known.
type Means string

// The means there are.
const (
	ByToken       Means = "token"
	ByCertificate Means = "certificate"
	ByProxy       Means = "proxy"
	ByNothing     Means = "nothing" // anonymous
)

// Authenticate says who made r, which it does not modify: ErrNobody, or an
// Unavailable if that cannot be told now. Its ways are tried in the order of the API
// server, and what does not fit one of them may fit the next.
func (a *Authenticator) Authenticate(ctx context.Context, r *http.Request) (Identity, error) {
	shown := r.WithContext(ctx)
	shown.Header = r.Header.Clone() // authenticators take out what they used
	if id, ok := try(a.proxy, shown, ByProxy); ok {
		return id, nil
	}
	if id, ok := try(a.clients, shown, ByCertificate); ok {
		return id, nil
	}
	token := bearer(r.Header)
	if token != "" && a.tokens != nil {
		answer, ok, err := a.tokens.authenticate(ctx, access.AddressOf(r.RemoteAddr), token)
		if ok && err == nil {
			return identity(answer.User, ByToken), nil
		}
		if unavailable, is := errors.AsType[*Unavailable](err); is {
			return Identity{}, unavailable
		}
		if ctx.Err() != nil {
			return Identity{}, ctx.Err()
		}
		return Identity{}, ErrNobody
	}
	if a.anonymous && !shows(r) {
		return Identity{&user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, ByNothing}, nil
	}
	return Identity{}, ErrNobody
}

func try(by authenticator.Request, r *http.Request, means Means) (Identity, bool) {
	if by == nil {
		return Identity{}, false
	}
	answer, ok, err := by.AuthenticateRequest(r)
	if err != nil || !ok || answer.User.GetName() == "" {
		return Identity{}, false
	}
	return identity(answer.User, means), true
}

// shows reports whether a request carries anything that is to say who makes it.
func shows(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || bearer(r.Header) != "" ||
		r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// identity adds the group of all who are known, as the API server does.
func identity(u user.Info, by Means) Identity {
	if u.GetName() == user.Anonymous || slices.Contains(u.GetGroups(), user.AllAuthenticated) ||
		slices.Contains(u.GetGroups(), user.AllUnauthenticated) {
		return Identity{u, by}
	}
	return Identity{&user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Extra: u.GetExtra(),
		Groups: append(slices.Clone(u.GetGroups()), user.AllAuthenticated),
	}, by}
}
