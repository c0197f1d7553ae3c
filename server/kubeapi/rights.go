package kubeapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// VisibleParameter is of lists and watches: they are answered with what may be seen,
// where the API server would refuse all. It is no parameter of its own, and never gets
// there.
const VisibleParameter = "visible"

// rightsInterval is how often a watch asks whether its reader's rights have changed.
const rightsInterval = 400 * time.Millisecond

// rights are what somebody may see of what they ask for.
type rights struct {
	who        access.Asker
	attributes access.Attributes
	visible    bool // lists and watches show what may be seen, instead of all or nothing
	scope      cache.Scope

	// Of the last look at whether they have changed:
	generation uint64
	known      bool // generation
	looked     time.Time
}

// judge finds out what may be seen of what req asks for. Where that is nothing, its
// error is the API server's verdict, which does not depend on what there is.
func (a *API) judge(r *http.Request, req *request, visible bool) (*rights, error) {
	g := &rights{who: access.From(r.Context()), attributes: req.attributes(r), looked: time.Now()}
	g.visible = (visible || a.Modes().Lists == Visible) && req.subresource == "" && g.attributes.Verb != string(cache.Get)
	var err error
	g.scope, err = g.ask(r.Context())
	return g, err
}

// ask is what may be seen now.
func (g *rights) ask(ctx context.Context) (cache.Scope, error) {
	if !g.visible {
		switch allowed, reason, err := g.who.Allowed(ctx, g.attributes); {
		case err != nil:
			return cache.Scope{}, access.Unknown(g.who, err)
		case !allowed:
			return cache.Scope{}, access.Forbidden(g.who, g.attributes, reason)
		case g.attributes.Subresource != "":
			return cache.Scope{}, nil // they are not held
		}
	}
	scope, err := g.who.Scope(ctx, g.attributes.Cluster, cache.Verb(g.attributes.Verb), g.attributes.GroupResource())
	if err != nil {
		return cache.Scope{}, access.Unknown(g.who, err)
	}
	ns := g.attributes.Namespace
	if g.visible && (scope.Empty() || ns != "" && !scope.Touches(ns)) {
		return cache.Scope{}, access.Forbidden(g.who, g.attributes, "")
	}
	return scope, nil
}

// changed reports, now and then, whether something else may be seen now than when the
// request was judged. What cannot be told may not.
func (g *rights) changed(ctx context.Context) bool {
	changed, err := g.look(ctx)
	return changed || err != nil
}

// look is changed, with the verdict or the failure that is the reason.
func (g *rights) look(ctx context.Context) (changed bool, err error) {
	now := time.Now()
	if access.Settled(g.who) || now.Sub(g.looked) < rightsInterval {
		return false, nil
	}
	g.looked = now
	generation, err := g.who.Generation(ctx, g.attributes.Cluster)
	if err != nil {
		return true, access.Unknown(g.who, err)
	}
	if g.known && generation == g.generation {
		return false, nil
	}
	g.generation, g.known = generation, true
	scope, err := g.ask(ctx)
	return err != nil || g.part(scope).Digest() != g.part(g.scope).Digest(), err
}

// recheck is for after a wait, in which rights may have been taken away: what is
// answered from then on was not there when the request was judged.
func (g *rights) recheck(ctx context.Context) error {
	changed, err := g.look(ctx)
	switch {
	case !changed:
		return nil
	case g.attributes.Verb == string(cache.Watch):
		return errRights()
	case err != nil:
		return err
	}
	return access.Forbidden(g.who, g.attributes, "what may be seen has changed while the request waited")
}

// part is what of a scope is asked for.
func (g *rights) part(scope cache.Scope) cache.Scope {
	if g.attributes.Namespace == "" {
		return scope
	}
	return scope.In(g.attributes.Namespace)
}

// errRights ends a watch whose reader's rights have changed. Clients list anew then, and
// drop what they may not see any more.
func errRights() error {
	return apierrors.NewResourceExpired("what may be seen has changed since the watch began: list again")
}

// see makes t what may be seen of it.
func (t *target) see(g *rights) {
	t.rights, t.view = g, t.view.SeenBy(g.scope)
	if reader := t.view.Reader(g.scope); reader != nil {
		t.reader = reader.For(g.who.Name())
	}
}

// attributes are what the API server judges a request by. It reads paths and parameters
// in the same way (RequestInfoFactory of k8s.io/apiserver), so that a role that names
// objects lets them be listed and watched by a field selector, one by one.
func (q *request) attributes(r *http.Request) access.Attributes {
	a := access.Attributes{
		Cluster: q.cluster, Verb: string(cache.Get), Group: q.group, Version: q.version, Resource: q.resource,
		Namespace: q.namespace, Name: q.name,
	}
	a.Subresource, _, _ = strings.Cut(q.subresource, "/")
	if q.resource == "namespaces" && q.name != "" {
		a.Namespace = q.name // a role in a namespace may let it be got
	}
	if q.byPath {
		a.Verb = string(cache.Watch)
	} else if q.name == "" {
		a.Verb, a.Name = q.listVerb(r)
	}
	if a.Verb != string(cache.Get) {
		a.LabelSelector, a.FieldSelector = r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector")
	}
	return a
}

// listVerb tells a list from a watch, and names the one object that it is about.
func (q *request) listVerb(r *http.Request) (verb, name string) {
	verb = string(cache.List)
	if q.watch {
		verb = string(cache.Watch)
	}
	var opts internalversion.ListOptions
	err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &opts)
	if err != nil || opts.FieldSelector == nil {
		return verb, "" // what is wrong is told to those who may ask
	}
	name, ok := opts.FieldSelector.RequiresExactMatch("metadata.name")
	if !ok || len(path.IsValidPathSegmentName(name)) > 0 {
		return verb, ""
	}
	return verb, name
}

// withoutVisible takes VisibleParameter out of a request, and says whether it was set.
func withoutVisible(r *http.Request) (*http.Request, bool) {
	query := r.URL.Query()
	if !query.Has(VisibleParameter) {
		return r, false
	}
	visible := flag(r, VisibleParameter)
	query.Del(VisibleParameter)
	url := *r.URL
	url.RawQuery = query.Encode()
	r = r.WithContext(r.Context()) // a copy
	r.URL = &url
	return r, visible
}
