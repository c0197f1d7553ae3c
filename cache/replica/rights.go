package replica

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// accessRate is how many questions for rights a second a cluster is asked at most.
	accessRate = 100
	// accessTimeout bounds one of them.
	accessTimeout = 15 * time.Second
)

// rights are what the user of a cluster may do in each of its namespaces. They are
// asked for with SelfSubjectRulesReviews, one of which is about all resources: in a
// cluster of many namespaces, most of which may not be read, one question a namespace
// is shared by all informers. Where the answer is not complete, because a webhook
// decides for one, SelfSubjectAccessReviews ask about the resource itself. Every
// authenticated user may ask both by default, and they read nothing.
//
// It is safe for concurrent use.
type rights struct {
	limit flowcontrol.RateLimiter
	rate  int

	mu     sync.Mutex // guards all below, and when each was asked
	client authorization.AuthorizationV1Interface
	rules  map[string]*ruling // by namespace
}

// ruling is the answer about one namespace.
type ruling struct {
	at       time.Time     // zero: not asked yet
	asking   chan struct{} // held by who asks; guards all below
	rules    []authorizationv1.ResourceRule
	complete bool // what no rule allows is forbidden
}

func newRights(rate int) *rights {
	return &rights{limit: flowcontrol.NewTokenBucketRateLimiter(float32(rate), rate), rate: rate, rules: map[string]*ruling{}}
}

// connect replaces the client: it may be of another user.
func (r *rights) connect(client authorization.AuthorizationV1Interface) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.rules = client, map[string]*ruling{}
}

func (r *rights) reviews() authorization.AuthorizationV1Interface {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client
}

// of is what is known of a namespace. Of those that nobody asks about any more, which
// may be gone, nothing is kept.
func (r *rights) of(namespace string) *ruling {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.rules[namespace]
	if known == nil {
		maps.DeleteFunc(r.rules, func(_ string, k *ruling) bool {
			return !k.at.IsZero() && time.Since(k.at) > 2*forbiddenRetry
		})
		known = &ruling{asking: make(chan struct{}, 1)}
		r.rules[namespace] = known
	}
	return known
}

// fresh reports whether an answer is still good. That is not for long, as rights may
// come at any time, but several times as long as it takes to ask about all namespaces.
func (r *rights) fresh(known *ruling) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	lasts := forbiddenFirst/2 + 4*time.Second*time.Duration(len(r.rules))/time.Duration(r.rate)
	return !known.at.IsZero() && time.Since(known.at) < lasts
}

// may reports whether a resource may be listed and watched in a namespace, "" for all.
func (r *rights) may(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (bool, error) {
	if namespace != "" {
		allowed, complete, err := r.ruled(ctx, gvr.GroupResource(), namespace)
		if err != nil || allowed || complete {
			return allowed, err
		}
	}
	for _, verb := range []string{"list", "watch"} {
		if allowed, err := r.review(ctx, verb, gvr, namespace); err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

// ruled answers by the rules of the namespace.
func (r *rights) ruled(ctx context.Context, gr schema.GroupResource, namespace string) (allowed, complete bool, err error) {
	known := r.of(namespace)
	select {
	case known.asking <- struct{}{}:
		defer func() { <-known.asking }()
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
	if !r.fresh(known) {
		if err := r.ask(ctx, namespace, known); err != nil {
			return false, false, err
		}
	}
	return permits(known.rules, "list", gr) && permits(known.rules, "watch", gr), known.complete, nil
}

// ask asks for the rules of a namespace. Whoever may not has none, and they are not
// complete.
func (r *rights) ask(ctx context.Context, namespace string, known *ruling) error {
	if err := r.limit.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := r.reviews().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		known.rules, known.complete = nil, false
	case err != nil:
		return fmt.Errorf("ask for the rights in %s: %w", namespace, err)
	default:
		// An evaluation error alone does not make them incomplete: the authorizer of
		// nodes, which has no rules, is one, and so is a binding to a role that is gone.
		known.rules, known.complete = answer.Status.ResourceRules, !answer.Status.Incomplete
	}
	r.mu.Lock()
	known.at = time.Now()
	r.mu.Unlock()
	return nil
}

// permits reports whether a rule allows a verb for all objects of a resource.
func permits(rules []authorizationv1.ResourceRule, verb string, gr schema.GroupResource) bool {
	return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
		return len(rule.ResourceNames) == 0 && lists(rule.Verbs, verb) &&
			lists(rule.APIGroups, gr.Group) && lists(rule.Resources, gr.Resource)
	})
}

func lists(all []string, one string) bool {
	return slices.Contains(all, one) || slices.Contains(all, "*")
}

// review asks about one resource.
func (r *rights) review(ctx context.Context, verb string, gvr schema.GroupVersionResource, namespace string) (bool, error) {
	if err := r.limit.Wait(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
		},
	}}
	answer, err := r.reviews().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether %s %s is allowed: %w", verb, gvr.GroupResource(), err)
	}
	return answer.Status.Allowed, nil
}
