package review

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
)

// specOf is a question in the words of the API.
func specOf(u user.Info, q question) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
	if q.path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: q.Verb, Path: q.path}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: q.Verb, Group: q.Group, Version: q.Version, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name,
		LabelSelector: labelRequirements(q.LabelSelector), FieldSelector: fieldRequirements(q.FieldSelector),
	}
	return spec
}

var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn,
	selection.In:        metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// labelRequirements is a selector as the API server tells it to its authorizers. A
// requirement that they have no words for is left out: a selector narrows what is
// asked for, so that less of it asks for more.
func labelRequirements(selector string) *authorizationv1.LabelSelectorAttributes {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil || len(requirements) == 0 {
		return nil
	}
	var list []metav1.LabelSelectorRequirement
	for _, r := range requirements {
		if operator, ok := labelOperators[r.Operator()]; ok {
			list = append(list, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted()})
		}
	}
	if list == nil {
		return nil
	}
	return &authorizationv1.LabelSelectorAttributes{Requirements: list}
}

// fieldRequirements is labelRequirements for fields. One without a field, as of "=x",
// would make the review invalid: it selects nothing that could be judged, and whoever
// is allowed to ask is told so.
func fieldRequirements(selector string) *authorizationv1.FieldSelectorAttributes {
	parsed, err := fields.ParseSelector(selector)
	if err != nil || parsed.Empty() {
		return nil
	}
	var list []metav1.FieldSelectorRequirement
	for _, r := range parsed.Requirements() {
		if r.Field == "" {
			continue
		}
		operator := metav1.FieldSelectorOpIn
		if r.Operator == selection.NotEquals {
			operator = metav1.FieldSelectorOpNotIn
		}
		list = append(list, metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	if list == nil {
		return nil
	}
	return &authorizationv1.FieldSelectorAttributes{Requirements: list}
}
