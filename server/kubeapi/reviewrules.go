package kubeapi

import (
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/informerd/informerd/server/access"
)

// attributesOf is what a review is about.
func attributesOf(cluster string, r *authorizationv1.ResourceAttributes) access.Attributes {
	a := access.Attributes{
		Cluster: cluster, Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name,
	}
	if s := r.LabelSelector; s != nil {
		if a.LabelSelector = s.RawSelector; len(s.Requirements) > 0 {
			a.LabelSelector = labelText(s.Requirements)
		}
	}
	if s := r.FieldSelector; s != nil {
		if a.FieldSelector = s.RawSelector; len(s.Requirements) > 0 {
			a.FieldSelector = fieldText(s.Requirements)
		}
	}
	return a
}

// labelText is requirements as a selector; "" if they make none, which is about more.
func labelText(requirements []metav1.LabelSelectorRequirement) string {
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: requirements})
	if err != nil || selector == labels.Nothing() {
		return ""
	}
	return selector.String()
}

// fieldText is labelText for fields, whose selectors have one value in each
// requirement: others are left out.
func fieldText(requirements []metav1.FieldSelectorRequirement) string {
	var terms []string
	for _, r := range requirements {
		if len(r.Values) != 1 {
			continue
		}
		switch r.Operator {
		case metav1.FieldSelectorOpIn:
			terms = append(terms, r.Key+"="+escapeField.Replace(r.Values[0]))
		case metav1.FieldSelectorOpNotIn:
			terms = append(terms, r.Key+"!="+escapeField.Replace(r.Values[0]))
		}
	}
	return strings.Join(terms, ",")
}

var escapeField = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`)

// doesAny reports whether there is anything of a resource in groups that a verb can
// be done with here. resource may have its subresource, and a * for any.
func (a *API) doesAny(q *asking, verb string, groups []string, resource string) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(groups, func(group string) bool {
		if verb == "create" && group == "*" && name == "*" { // some are: the reviews
			return true
		}
		return a.does(q, access.Attributes{Verb: verb, Group: group, Resource: name, Subresource: subresource}, "")
	})
}

// oneOf checks that a review is about one thing.
func oneOf(v *review, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) error {
	switch {
	case resource != nil && path != nil:
		return invalidReview(v, "spec.nonResourceAttributes", "cannot be specified in combination with resourceAttributes")
	case resource == nil && path == nil:
		return invalidReview(v, "spec.resourceAttributes", "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	case resource != nil && (twofold(resource.LabelSelector) || twofoldFields(resource.FieldSelector)):
		return invalidReview(v, "spec.resourceAttributes", "rawSelector may not specified at the same time as requirements")
	}
	return nil
}

func twofold(s *authorizationv1.LabelSelectorAttributes) bool {
	return s != nil && s.RawSelector != "" && len(s.Requirements) > 0
}

func twofoldFields(s *authorizationv1.FieldSelectorAttributes) bool {
	return s != nil && s.RawSelector != "" && len(s.Requirements) > 0
}

// local checks that a review is about the namespace it is made in.
func local(q *asking, spec *authorizationv1.SubjectAccessReviewSpec) error {
	switch {
	case spec.NonResourceAttributes != nil:
		return invalidReview(q.review, "spec.nonResourceAttributes", "disallowed on this kind of request")
	case spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace != q.namespace:
		return apierrors.NewBadRequest("spec.resourceAttributes.namespace must match namespace: " + q.namespace)
	}
	return nil
}

func invalidReview(v *review, path, message string) error {
	return apierrors.NewInvalid(v.gvk().GroupKind(), "", field.ErrorList{
		{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: message},
	})
}

func errNoNamespace() error { return apierrors.NewBadRequest("no namespace on request") }

// withReviews adds the reviews that are answered here, if they are not among groups.
func withReviews(groups []apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
	for _, v := range allReviews {
		version := versionOf(groupOf(&groups, v.group), reviewsVersion)
		if slices.ContainsFunc(version.Resources, func(r apidiscovery.APIResourceDiscovery) bool { return r.Resource == v.resource }) {
			continue
		}
		scope := apidiscovery.ScopeCluster
		if v.namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: v.resource, SingularResource: strings.ToLower(v.kind), Scope: scope, Verbs: []string{"create"},
			ResponseKind: &metav1.GroupVersionKind{Group: v.group, Version: reviewsVersion, Kind: v.kind},
		})
	}
	return groups
}
