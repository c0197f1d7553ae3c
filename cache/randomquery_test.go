package cache

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// randomQuery draws a query over the model's labels, fields and indexes.
func randomQuery(t testing.TB, r *rand.Rand, definitions map[string]string) Query {
	var q Query
	if r.IntN(3) == 0 {
		q.Namespaces = pick(r, []string{"a"}, []string{"a", "b"}, []string{"a*"}, []string{"*"}, []string{"?", "ab"}, []string{"none"})
	}
	if r.IntN(2) == 0 {
		q.Labels = randomSelector(t, r)
	}
	var fields []string
	for range r.IntN(3) {
		fields = append(fields, randomField(r))
	}
	var err error
	if q.Fields, err = ParseFieldSelector(strings.Join(fields, ",")); err != nil {
		t.Fatal(err)
	}
	if r.IntN(3) == 0 {
		q.Terms = append(q.Terms, pick(r, Term{"label", "app=a"}, Term{"owner", "o1"}, Term{"namespace", "a"}, Term{"label", "nope=1"}))
	}
	if names := slices.Sorted(maps.Keys(definitions)); len(names) > 0 && r.IntN(3) == 0 {
		q.Terms = append(q.Terms, Term{pick(r, names...), pick(r, "n1", "n2", "x", "", "0", "1", "true")})
	}
	return q
}

func randomField(r *rand.Rand) string {
	p := pick(r, fieldPaths...)
	v := func() string { return pick(r, "n1", "n2", "x", "y", "", "0", "1", "7", "true", "a", "k3") }
	switch r.IntN(7) {
	case 0:
		return p + "=" + v()
	case 1:
		return p + "!=" + v()
	case 2:
		return p + " in (" + v() + "," + v() + ")"
	case 3:
		return p + " notin (" + v() + ", " + v() + ")"
	case 4:
		return "!" + p
	case 5:
		return p
	default:
		return pick(r, "spec.node="+v(), "metadata.name=k3", "metadata.namespace=a", "metadata.name=k3,metadata.namespace=b")
	}
}

func randomSelector(t testing.TB, r *rand.Rand) labels.Selector {
	s := labels.NewSelector()
	for range r.IntN(3) {
		op := pick(r, selection.In, selection.NotIn, selection.Equals, selection.NotEquals, selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan)
		var values []string
		switch op {
		case selection.In, selection.NotIn:
			values = []string{pick(r, "a", "b", ""), pick(r, "1", "c")}
		case selection.Equals, selection.NotEquals:
			values = []string{pick(r, "a", "b", "", "2")}
		case selection.GreaterThan, selection.LessThan:
			values = []string{pick(r, "0", "1", "2")}
		}
		req, err := labels.NewRequirement(pick(r, "app", "tier", "level", "nope"), op, values)
		if err != nil {
			t.Fatal(err)
		}
		s = s.Add(*req)
	}
	return s
}
