package review

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestKeysHaveBorders: a scope that the API server gave for selectors is not found by
// who asks without them, although namespaces with a NUL spell the same text.
func TestKeysHaveBorders(t *testing.T) {
	api := &accesstest.API{}
	api.Allow(func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return s.ResourceAttributes.LabelSelector != nil
	})
	a := New(Options{Reviewer: api, Proposer: &proposals{}})
	narrow := access.Named{LabelSelector: "a=b", FieldSelector: "c=d", Only: true, Places: []access.Place{{Namespace: "n"}}}
	if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, narrow); err != nil || !s.Whole() {
		t.Fatalf("with selectors: %v, %v", s.Whole(), err)
	}
	for name, wide := range map[string]access.Named{
		"namespaces": {Places: []access.Place{{Namespace: "a=b", Name: "c=d"}, {Namespace: "only\x00n"}}},
		"a border":   {Places: []access.Place{{Namespace: "a=b\x00c=d\x00only\x00n"}}},
		"the names":  {Places: []access.Place{{Namespace: "a=b", Name: "c=d"}, {Namespace: "only", Name: "n"}, {}}},
	} {
		if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, wide); err != nil || s.Whole() {
			t.Errorf("%s, without selectors: whole %v, %v", name, s.Whole(), err)
		}
	}
	for name, other := range map[string]access.Named{
		"without selectors": {Only: true, Places: narrow.Places},
		"not only":          {LabelSelector: "a=b", FieldSelector: "c=d", Places: narrow.Places},
		"moved border":      {LabelSelector: "a=bc", FieldSelector: "=d", Only: true, Places: narrow.Places},
		"name for place":    {LabelSelector: "a=b", FieldSelector: "c=d", Only: true, Places: []access.Place{{Name: "n"}}},
	} {
		if keyOf("u", "m", cache.List, pods, other) == keyOf("u", "m", cache.List, pods, narrow) {
			t.Errorf("%s: the same key", name)
		}
	}
}

// TestNoSuchNamespace: of a namespace that there cannot be, nobody is asked.
func TestNoSuchNamespace(t *testing.T) {
	api := &accesstest.API{}
	a := New(Options{Reviewer: api, Proposer: &proposals{}})
	for _, namespace := range []string{"a\x00b", "A", "a.b", "-", "a/b", " ", string(make([]byte, 64))} {
		named := access.Named{Only: true, Places: []access.Place{{Namespace: namespace, Name: "x"}}}
		if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, named); err != nil || !s.Empty() {
			t.Errorf("%q: %v, %v", namespace, s, err)
		}
		attributes := access.Attributes{Verb: "get", Version: "v1", Resource: "pods", Namespace: namespace}
		if v, err := a.Allowed(t.Context(), jane, attributes); err != nil || v.Allowed || v.Reason == "" {
			t.Errorf("%q: %+v, %v", namespace, v, err)
		}
		namespaces := pods
		namespaces.Resource = "namespaces" // its name is asked about as its namespace
		named.Places = []access.Place{{Name: namespace}}
		if s, _, err := a.Scope(t.Context(), jane, cache.Get, namespaces, named); err != nil || !s.Empty() {
			t.Errorf("Namespace %q: %v, %v", namespace, s, err)
		}
	}
	if asked := api.Asked(); len(asked) != 0 {
		t.Errorf("asked %d times", len(asked))
	}
}
