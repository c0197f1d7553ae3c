package review

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

const (
	// maxProbes bounds the questions about one user's namespaces at once, so that one
	// user of many does not take all places.
	maxProbes = 8
	// maxScopes bounds what the scopes held of one cluster weigh.
	maxScopes = 1 << 18
	// maxNamed and maxAsked bound the places that are asked about for one Scope: those
	// that the request names, and all.
	maxNamed = 500
	maxAsked = 10_000
)

// Proposer says what the roles of one cluster grant, as far as informerd holds them.
type Proposer interface {
	// Granted is where asking is worth while. An error is that it cannot be told now.
	Granted(ctx context.Context, u user.Info, verb cache.Verb, r schema.GroupResource) (cache.Scope, error)
	// Mark is another one when a Scope of u may be. It costs next to nothing.
	Mark(ctx context.Context, u user.Info) string
	// Rules are what roles grant in a namespace.
	Rules(ctx context.Context, u user.Info, namespace string) (authorizationv1.SubjectRulesReviewStatus, error)
}

// Options configure an Authorizer. Reviewer and Proposer are required.
type Options struct {
	Cluster  string
	Reviewer Reviewer
	Proposer Proposer
	// TTL is how long an answer counts, default DefaultTTL.
	TTL time.Duration
	// Told hears how each question to the API server went; nil: nobody does.
	Told func(error)
}

// Authorizer says what users may in one cluster, as its API server decides. It is safe
// for concurrent use.
type Authorizer struct {
	cluster  string
	proposer Proposer
	reviews  *reviews

	mu     sync.Mutex // guards scopes
	scopes recent[*scoped]
}

type scoped struct {
	scope  cache.Scope
	places int
	until  time.Time
}

func (s *scoped) fresh(now time.Time) bool { return now.Before(s.until) }

// weight is in places; what is held with them is as much as some.
func (s *scoped) weight() int { return 16 + s.places }

// New makes an Authorizer.
func New(o Options) *Authorizer {
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.Told == nil {
		o.Told = func(error) {}
	}
	return &Authorizer{
		cluster: o.Cluster, proposer: o.Proposer,
		reviews: newReviews(o.Reviewer, o.TTL, o.Told), scopes: newRecent[*scoped](maxScopes),
	}
}

// Allowed is the API server's verdict.
func (a *Authorizer) Allowed(ctx context.Context, u user.Info, attributes access.Attributes) (access.Verdict, error) {
	attributes.Cluster = a.cluster
	return a.reviews.ask(ctx, u, question{user: access.Digest(u), Attributes: attributes})
}

// Path is the API server's verdict on what is no resource.
func (a *Authorizer) Path(ctx context.Context, u user.Info, verb, path string) (access.Verdict, error) {
	return a.reviews.ask(ctx, u, question{user: access.Digest(u), Attributes: access.Attributes{Verb: verb}, path: path})
}

// Rules are what roles grant. The API server tells the rules of nobody but who asks
// it, so there may be others.
func (a *Authorizer) Rules(ctx context.Context, u user.Info, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	status, err := a.proposer.Rules(ctx, u, namespace)
	if err != nil {
		return status, err
	}
	status.Incomplete = true
	if status.EvaluationError == "" {
		status.EvaluationError = "informerd knows the rules of roles; the API server may have further authorizers"
	}
	return status, nil
}

// Mark is another one when a Scope may be before its time is over.
func (a *Authorizer) Mark(ctx context.Context, u user.Info) string { return a.proposer.Mark(ctx, u) }

// Scope is what the API server lets u see, and until when that may be taken for true.
// It is asked about everything at once; if it says no, about each place that roles
// propose or that the request names. What it refuses is not seen, whatever roles say.
func (a *Authorizer) Scope(ctx context.Context, u user.Info, verb cache.Verb, r schema.GroupResource, named access.Named) (cache.Scope, time.Time, error) {
	named, possible := thatMayBe(named, verb, r)
	if !possible {
		return cache.Scope{}, time.Now().Add(a.reviews.ttl), nil
	}
	digest := access.Digest(u)
	key := keyOf(digest, a.proposer.Mark(ctx, u), verb, r, named)
	a.mu.Lock()
	held, ok := a.scopes.get(key, time.Now())
	a.mu.Unlock()
	if ok {
		return held.scope, held.until, nil
	}
	p := &probes{Authorizer: a, user: u, digest: digest, attributes: access.Attributes{
		Cluster: a.cluster, Verb: string(verb), Group: r.Group, Version: "*", Resource: r.Resource,
		LabelSelector: named.LabelSelector, FieldSelector: named.FieldSelector,
	}}
	scope, err := p.scope(ctx, verb, r, named)
	if err != nil {
		return cache.Scope{}, time.Time{}, err
	}
	a.hold(key, &scoped{scope, len(p.seen), p.until})
	return scope, p.until, nil
}

func (a *Authorizer) hold(key access.Key, s *scoped) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes.put(key, s, time.Now())
}

// keyOf is of all that a Scope depends on, beside the API server.
func keyOf(digest, mark string, verb cache.Verb, r schema.GroupResource, named access.Named) access.Key {
	texts := []string{digest, mark, string(verb), r.Group, r.Resource, named.LabelSelector, named.FieldSelector, strconv.FormatBool(named.Only)}
	for _, p := range named.Places {
		texts = append(texts, p.Namespace, p.Name)
	}
	return access.KeyOf(texts...)
}

// probes are the questions that one Scope is made of.
type probes struct {
	*Authorizer
	user       user.Info
	digest     string
	attributes access.Attributes

	mu    sync.Mutex // guards all below
	seen  []access.Place
	until time.Time // that all answers count
}

func (p *probes) scope(ctx context.Context, verb cache.Verb, r schema.GroupResource, named access.Named) (cache.Scope, error) {
	if whole, err := p.ask(ctx, access.Place{}); err != nil || whole {
		return wholeIf(whole), err
	}
	if len(named.Places) > maxNamed {
		return cache.Scope{}, &access.TooManyError{Asked: len(named.Places), Most: maxNamed}
	}
	var places []access.Place
	for _, place := range named.Places {
		places = append(places, access.Place{Namespace: place.Namespace}, place)
	}
	if !named.Only {
		proposed, err := p.proposer.Granted(ctx, p.user, verb, r)
		if err != nil {
			return cache.Scope{}, err
		}
		places = append(places, p.placesOf(proposed)...)
	}
	if len(places) > maxAsked {
		return cache.Scope{}, &access.TooManyError{Asked: len(places), Most: maxAsked}
	}
	if err := p.probe(ctx, places); err != nil {
		return cache.Scope{}, err
	}
	var namespaces []string
	names := map[string][]string{}
	for _, place := range p.seen {
		if place.Name == "" {
			namespaces = append(namespaces, place.Namespace)
		} else {
			names[place.Namespace] = append(names[place.Namespace], place.Name)
		}
	}
	return cache.NewScope(namespaces, names), nil
}

func wholeIf(whole bool) cache.Scope {
	if whole {
		return cache.WholeScope()
	}
	return cache.Scope{}
}

// placesOf are the places that a Scope proposes. Of one that proposes everything, which
// the API server has refused, there are none to be asked about.
func (p *probes) placesOf(s cache.Scope) []access.Place {
	var places []access.Place
	for _, namespace := range s.Namespaces() {
		if p.ofNamespaces() { // the object, not what is in it
			places = append(places, access.Place{Name: namespace})
			continue
		}
		places = append(places, access.Place{Namespace: namespace})
	}
	for namespace, names := range s.Names() {
		for _, name := range names {
			places = append(places, access.Place{Namespace: namespace, Name: name})
		}
	}
	return places
}

// probe asks about namespaces, then about objects in those that are not seen whole.
func (p *probes) probe(ctx context.Context, places []access.Place) error {
	var namespaces, objects []access.Place
	for _, place := range places {
		switch {
		case place.Name != "":
			objects = append(objects, place)
		case place.Namespace != "": // else it is everything, which was refused
			namespaces = append(namespaces, place)
		}
	}
	if err := p.each(ctx, namespaces); err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, place := range p.seen {
		whole[place.Namespace] = true
	}
	objects = slices.DeleteFunc(objects, func(o access.Place) bool { return whole[o.Namespace] })
	return p.each(ctx, objects)
}

// each asks about different places, and remembers those that are seen. One that cannot
// be asked about is an error of all: less than all there is would look like all.
func (p *probes) each(ctx context.Context, places []access.Place) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxProbes)
	asked := make(map[access.Place]bool, len(places))
	for _, place := range places {
		if asked[place] {
			continue
		}
		asked[place] = true
		g.Go(func() error {
			seen, err := p.ask(ctx, place)
			if err != nil || !seen {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.seen = append(p.seen, place)
			return nil
		})
	}
	return g.Wait()
}

// ofNamespaces: the API server takes the name of a Namespace that is got for its
// namespace, too, so that a Role in it may let somebody.
func (p *probes) ofNamespaces() bool {
	return inItself(cache.Verb(p.attributes.Verb), schema.GroupResource{Group: p.attributes.Group, Resource: p.attributes.Resource})
}

func (p *probes) ask(ctx context.Context, place access.Place) (bool, error) {
	attributes := p.attributes
	attributes.Namespace, attributes.Name = place.Namespace, place.Name
	if p.ofNamespaces() && place.Name != "" {
		attributes.Namespace = place.Name
	}
	verdict, err := p.reviews.ask(ctx, p.user, question{user: p.digest, Attributes: attributes})
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.IsZero() || verdict.Until.Before(p.until) {
		p.until = verdict.Until
	}
	return verdict.Allowed, nil
}
