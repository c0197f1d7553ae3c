package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/server/access"
)

// reviewer is an access.Asker of somebody who is known. Everybody who reads without
// authentication is not.
type reviewer interface {
	access.Asker
	// User is who asks, as a cluster knows them.
	User(ctx context.Context, cluster string) (authenticationv1.UserInfo, error)
	// Rules are what is known of what they may in a namespace.
	Rules(ctx context.Context, cluster, namespace string) (authorizationv1.SubjectRulesReviewStatus, error)
	// PathIn is the verdict of one cluster on a path.
	PathIn(ctx context.Context, cluster, verb, path string) (allowed bool, reason string, err error)
	// Other is the verdict on somebody else, about attributes, or about a path if it
	// is not "".
	Other(ctx context.Context, who authenticationv1.UserInfo, a access.Attributes, path string) (allowed bool, reason string, err error)
	// PassesOn says why a request must not be passed on to the API server.
	PassesOn(ctx context.Context, cluster string) error
}

// review is one of the resources whose creation is a question.
type review struct {
	group, resource, kind string
	namespaced            bool
}

// reviewsVersion is the version of all of them.
const reviewsVersion = "v1"

var allReviews = []review{
	{authenticationv1.GroupName, "selfsubjectreviews", "SelfSubjectReview", false},
	{authorizationv1.GroupName, "localsubjectaccessreviews", "LocalSubjectAccessReview", true},
	{authorizationv1.GroupName, "selfsubjectaccessreviews", "SelfSubjectAccessReview", false},
	{authorizationv1.GroupName, "selfsubjectrulesreviews", "SelfSubjectRulesReview", false},
	{authorizationv1.GroupName, "subjectaccessreviews", "SubjectAccessReview", false},
}

func (v *review) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v.group, Version: reviewsVersion, Kind: v.kind}
}

// asking is one question of a client.
type asking struct {
	*request
	ctx    context.Context
	review *review
	asker  access.Asker
	known  reviewer // asker, if it is one, else nil
	object runtime.Object
}

// reviewOf is the review that a request creates, nil if it does something else.
func reviewOf(r *http.Request, req *request) *review {
	if r.Method != http.MethodPost || req.version != reviewsVersion || req.name != "" || req.byPath {
		return nil
	}
	i := slices.IndexFunc(allReviews, func(v review) bool {
		return v.group == req.group && v.resource == req.resource && v.namespaced == (req.namespace != "")
	})
	if i < 0 {
		return nil
	}
	return &allReviews[i]
}

// serveReview answers what clients ask before they ask for anything else: who they are
// and what they may. Of reads it says what their rights are; of all else, that this is
// a replica, unless it is passed on.
func (a *API) serveReview(w http.ResponseWriter, r *http.Request, req *request, v *review) error {
	q := &asking{request: req, ctx: r.Context(), review: v, asker: access.From(r.Context())}
	q.known, _ = q.asker.(reviewer)
	if q.known == nil && a.Modes().passesWrites() {
		return a.pass(w, r, req) // who asks is known there
	}
	release, err := a.Admit(r.Context(), Short)
	if err != nil {
		return err
	}
	defer release()
	create := access.Attributes{
		Cluster: req.cluster, Verb: "create", Group: v.group, Version: reviewsVersion, Resource: v.resource, Namespace: req.namespace,
	}
	allowed, reason, err := q.asker.Allowed(r.Context(), create)
	if err != nil {
		return err
	}
	if !allowed {
		return access.Forbidden(q.asker, create, reason)
	}
	if q.object, err = readReview(w, r, v.gvk()); err != nil {
		return err
	}
	answer, err := a.answerReview(q)
	if err != nil {
		return err
	}
	answer.GetObjectKind().SetGroupVersionKind(v.gvk())
	return writeReview(w, r, answer)
}

func (a *API) answerReview(q *asking) (runtime.Object, error) {
	switch object := q.object.(type) {
	case *authenticationv1.SelfSubjectReview:
		return a.answerSelf(q, object)
	case *authorizationv1.SelfSubjectAccessReview:
		return a.answerSelfAccess(q, object)
	case *authorizationv1.SelfSubjectRulesReview:
		return a.answerSelfRules(q, object)
	case *authorizationv1.SubjectAccessReview:
		return a.answerAccess(q, object)
	case *authorizationv1.LocalSubjectAccessReview:
		return a.answerLocalAccess(q, object)
	}
	return nil, fmt.Errorf("no answer to a %T", q.object)
}

func (a *API) answerSelf(q *asking, object *authenticationv1.SelfSubjectReview) (runtime.Object, error) {
	object.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: metav1.Now()} // as the API server does, of this review alone
	object.Status.UserInfo = authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	if q.known == nil {
		return object, nil
	}
	var err error
	object.Status.UserInfo, err = q.known.User(q.ctx, q.cluster)
	return object, err
}

func (a *API) answerSelfAccess(q *asking, object *authorizationv1.SelfSubjectAccessReview) (runtime.Object, error) {
	spec := object.Spec
	if err := oneOf(q.review, spec.ResourceAttributes, spec.NonResourceAttributes); err != nil {
		return nil, err
	}
	var err error
	object.Status, err = a.verdict(q, spec.ResourceAttributes, spec.NonResourceAttributes, q.self)
	return object, err
}

func (a *API) answerAccess(q *asking, object *authorizationv1.SubjectAccessReview) (runtime.Object, error) {
	var err error
	object.Status, err = a.verdictOf(q, &object.Spec)
	return object, err
}

func (a *API) answerLocalAccess(q *asking, object *authorizationv1.LocalSubjectAccessReview) (runtime.Object, error) {
	if err := local(q, &object.Spec); err != nil {
		return nil, err
	}
	var err error
	object.Status, err = a.verdictOf(q, &object.Spec)
	return object, err
}

// verdictOf is the verdict on somebody who is named.
func (a *API) verdictOf(q *asking, spec *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if err := oneOf(q.review, spec.ResourceAttributes, spec.NonResourceAttributes); err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	if spec.User == "" && len(spec.Groups) == 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, invalidReview(q.review, "spec.user", "at least one of user or group must be specified")
	}
	who := authenticationv1.UserInfo{Username: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if who.Extra == nil {
			who.Extra = map[string]authenticationv1.ExtraValue{}
		}
		who.Extra[key] = authenticationv1.ExtraValue(values)
	}
	return a.verdict(q, spec.ResourceAttributes, spec.NonResourceAttributes, func(attributes access.Attributes, path string) (bool, string, error) {
		if q.known == nil {
			return true, "", nil // everybody may read
		}
		return q.known.Other(q.ctx, who, attributes, path)
	})
}

// self is the verdict on who asks.
func (q *asking) self(a access.Attributes, path string) (bool, string, error) {
	switch {
	case path == "":
		return q.asker.Allowed(q.ctx, a)
	case q.known == nil:
		return true, "", nil
	}
	return q.known.PathIn(q.ctx, q.cluster, a.Verb, path)
}

// isReplica is why nothing but reads are allowed.
const isReplica = "informerd is a read replica"

// verdict is that of judge on what can be done here, and no on all else.
func (a *API) verdict(q *asking, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes,
	judge func(access.Attributes, string) (bool, string, error)) (authorizationv1.SubjectAccessReviewStatus, error) {
	attributes, at := access.Attributes{Cluster: q.cluster}, ""
	if path != nil {
		attributes.Verb, at = path.Verb, path.Path
	} else {
		attributes = attributesOf(q.cluster, resource)
	}
	if !a.does(q, attributes, at) {
		return authorizationv1.SubjectAccessReviewStatus{Reason: isReplica}, nil
	}
	allowed, reason, err := judge(attributes, at)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}, err
}

// does reports whether there is anything here to be allowed.
func (a *API) does(q *asking, attributes access.Attributes, path string) bool {
	modes := a.Modes()
	if modes.passesWrites() {
		return true
	}
	if path != "" {
		return attributes.Verb == "get"
	}
	switch attributes.Verb {
	case "get", "list", "watch":
		return attributes.Subresource == "" ||
			modes.passesReads() && !slices.Contains(connects, attributes.Subresource)
	case "create":
		return slices.ContainsFunc(allReviews, func(v review) bool {
			return v.group == attributes.Group && v.resource == attributes.Resource
		})
	case "impersonate":
		return q.known != nil
	}
	return false
}

func (a *API) answerSelfRules(q *asking, object *authorizationv1.SelfSubjectRulesReview) (runtime.Object, error) {
	if object.Spec.Namespace == "" {
		return nil, errNoNamespace()
	}
	if q.known == nil {
		object.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: readVerbs, APIGroups: []string{"*"}, Resources: []string{"*"}}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}},
		}
		return object, nil
	}
	status, err := q.known.Rules(q.ctx, q.cluster, object.Spec.Namespace)
	if err != nil {
		return nil, err
	}
	object.Status = a.doable(q, status)
	return object, nil
}

// doable is what of rules there is anything here to be done with.
func (a *API) doable(q *asking, status authorizationv1.SubjectRulesReviewStatus) authorizationv1.SubjectRulesReviewStatus {
	if a.Modes().passesWrites() {
		return status
	}
	cut := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: status.Incomplete, EvaluationError: status.EvaluationError,
	}
	for _, rule := range status.ResourceRules {
		cut.ResourceRules = append(cut.ResourceRules, a.doableRule(q, rule)...)
	}
	for _, rule := range status.NonResourceRules {
		if slices.Contains(rule.Verbs, "get") || slices.Contains(rule.Verbs, "*") {
			cut.NonResourceRules = append(cut.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: []string{"get"}, NonResourceURLs: rule.NonResourceURLs,
			})
		}
	}
	return cut
}

// doableRule is a rule for each of its verbs' resources, together where they are the
// same.
func (a *API) doableRule(q *asking, rule authorizationv1.ResourceRule) []authorizationv1.ResourceRule {
	verbs := rule.Verbs
	if slices.Contains(verbs, "*") {
		verbs = append(slices.Clone(readVerbs), "create", "impersonate")
	}
	var rules []authorizationv1.ResourceRule
	for _, verb := range verbs {
		resources := slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool {
			return !a.doesAny(q, verb, rule.APIGroups, resource)
		})
		if len(resources) == 0 {
			continue
		}
		last := len(rules) - 1
		if last >= 0 && slices.Equal(rules[last].Resources, resources) {
			rules[last].Verbs = append(rules[last].Verbs, verb)
			continue
		}
		rules = append(rules, authorizationv1.ResourceRule{
			Verbs: []string{verb}, APIGroups: rule.APIGroups, Resources: resources, ResourceNames: rule.ResourceNames,
		})
	}
	return rules
}
