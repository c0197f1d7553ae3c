package authn

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access"
)

const impersonateExtra = authenticationv1.ImpersonateUserExtraHeaderPrefix

// Wanted is whom a request asks to be made as.
type Wanted struct {
	user, uid string
	groups    []string
	extra     map[string][]string
}

// WantedBy reads the headers of a request; nil is nobody else. An error is what the
// API server answers to headers that make no sense.
func WantedBy(h http.Header) (*Wanted, error) {
	w := &Wanted{
		user: h.Get(authenticationv1.ImpersonateUserHeader), uid: h.Get(authenticationv1.ImpersonateUIDHeader),
		groups: h.Values(authenticationv1.ImpersonateGroupHeader),
	}
	extra := false
	for name, values := range h {
		rest, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), impersonateExtra)
		if !ok {
			continue
		}
		extra = true
		key := strings.ToLower(rest)
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if w.extra == nil {
			w.extra = map[string][]string{}
		}
		w.extra[key] = append(w.extra[key], values...)
	}
	switch {
	case w.user != "":
		return w, nil
	case w.uid != "" || len(w.groups) > 0 || extra:
		return nil, apierrors.NewBadRequest("requested groups, a UID or extra values to impersonate without impersonating a user")
	}
	return nil, nil
}

// Impersonates reports whether headers ask to be somebody else.
func Impersonates(h http.Header) bool {
	for name := range h {
		if hasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// StripImpersonation takes the headers out of h by which somebody asks to be somebody
// else, for what is passed on with an identity that is not theirs.
func StripImpersonation(h http.Header) {
	for name := range h {
		if hasPrefix(name, "Impersonate-") {
			delete(h, name)
		}
	}
}

// Judge is the verdict on one request of who asks.
type Judge func(ctx context.Context, a access.Attributes) (allowed bool, reason string, err error)

// Impersonate is whom a request of asker is made as. Each part must be allowed, as at
// the API server: an error is its refusal, or says that it cannot be told now. name is
// asker's, for the refusal.
func (w *Wanted) Impersonate(ctx context.Context, cluster, name string, judge Judge) (user.Info, error) {
	for _, a := range w.attributes() {
		a.Cluster, a.Verb = cluster, "impersonate"
		allowed, reason, err := judge(ctx, a)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return nil, access.Forbidden(named(name), a, reason)
		}
	}
	return w.Info(), nil
}

// attributes are what must be allowed, in the order of the API server.
func (w *Wanted) attributes() []access.Attributes {
	var all []access.Attributes
	if namespace, name, err := serviceaccount.SplitUsername(w.user); err == nil {
		all = append(all, access.Attributes{Resource: "serviceaccounts", Namespace: namespace, Name: name})
	} else {
		all = append(all, access.Attributes{Resource: "users", Name: w.user})
	}
	for _, group := range w.groups {
		all = append(all, access.Attributes{Resource: "groups", Name: group})
	}
	identity := access.Attributes{Group: authenticationv1.GroupName, Version: "v1"}
	for _, key := range slices.Sorted(maps.Keys(w.extra)) {
		for _, value := range w.extra[key] {
			a := identity
			a.Resource, a.Subresource, a.Name = "userextras", key, value
			all = append(all, a)
		}
	}
	if w.uid != "" {
		identity.Resource, identity.Name = "uids", w.uid
		all = append(all, identity)
	}
	return all
}

// Info is who is meant, with the groups that the API server adds. Whether they may be is
// another question.
func (w *Wanted) Info() user.Info {
	groups := slices.Clone(w.groups)
	if namespace, _, err := serviceaccount.SplitUsername(w.user); err == nil && len(groups) == 0 {
		groups = serviceaccount.MakeGroupNames(namespace)
	}
	unauthenticated := slices.Contains(groups, user.AllUnauthenticated)
	switch {
	case w.user == user.Anonymous && !unauthenticated:
		groups = append(groups, user.AllUnauthenticated)
	case w.user != user.Anonymous && !unauthenticated && !slices.Contains(groups, user.AllAuthenticated):
		groups = append(groups, user.AllAuthenticated)
	}
	return &user.DefaultInfo{Name: w.user, UID: w.uid, Groups: groups, Extra: w.extra}
}

// named is an Asker for the words of a refusal.
func named(name string) access.Asker { return nameOnly{access.From(context.Background()), name} }

type nameOnly struct {
	access.Asker
	name string
}

func (n nameOnly) Name() string { return n.name }
