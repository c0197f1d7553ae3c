package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAccessQuestions bounds how many namespaces one resource is asked about.
const maxAccessQuestions = 200

// allowed finds out what of the resource may be listed and watched: "" for all
// namespaces, or those namespaces that are known by name (of the configuration,
// the kubeconfig's context, or the copy of the namespaces) and that the rule
// covers. It asks with SelfSubjectAccessReviews, which every authenticated user
// may do by default and which read nothing.
func (i *Informer) allowed(ctx context.Context) ([]string, error) {
	all, err := i.may(ctx, "")
	if err != nil {
		return nil, err
	}
	if all {
		return []string{""}, nil
	}
	spec := i.Spec()
	if !spec.Namespaced {
		return nil, nil
	}
	var out []string
	for n, ns := range i.candidates(spec) {
		if n == maxAccessQuestions {
			i.log.Warn("too many namespaces to ask for rights in, name them in the configuration", "asked", n)
			break
		}
		ok, err := i.may(ctx, ns)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, ns)
		}
	}
	if len(out) > 0 {
		// Had the rights come while the questions were asked, only some of the
		// namespaces would be among the answers.
		if all, err := i.may(ctx, ""); err != nil || all {
			return []string{""}, err
		}
	}
	return out, nil
}

// candidates are the namespaces known by name, sorted.
func (i *Informer) candidates(spec Spec) []string {
	names := slices.Clone(spec.Namespaces)
	names = append(names, i.cluster.contextNamespaces()...)
	if s := i.factory.namespaceStore(i.resource.Cluster); s != nil {
		for _, o := range s.objectsOf("") {
			names = append(names, o.Name())
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(ns string) bool {
		return ns == "" || isGlob(ns) || !namespaceFilter(spec.Namespaces).match(ns)
	})
}

// may asks whether the resource may be listed and watched in a namespace.
func (i *Informer) may(ctx context.Context, namespace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb,
				Group: i.resource.GVR.Group, Version: i.resource.GVR.Version, Resource: i.resource.GVR.Resource,
			},
		}}
		answer, err := i.cluster.reviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask whether %s %s is allowed: %w", verb, i.resource.Name(), err)
		}
		if !answer.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
