package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
)

// truth answers questions from the API server's own lists, with nothing but Go:
// what informerd says is compared with it.
type truth struct {
	cluster   *harness.Cluster
	resources map[string]harness.Resource // those informerd watches
	lists     map[string][]harness.Object
}

func newTruth(tb testing.TB, c *harness.Cluster, i *harness.Informerd) *truth {
	tb.Helper()
	all, err := i.Resources()
	if err != nil {
		tb.Fatal(err)
	}
	for name, r := range all {
		if r.State == "unwatched" {
			delete(all, name)
		}
	}
	return &truth{cluster: c, resources: all}
}

// anew forgets what was listed.
func (t *truth) anew() { t.lists = map[string][]harness.Object{} }

func (t *truth) list(name string) ([]harness.Object, error) {
	if items, ok := t.lists[name]; ok {
		return items, nil
	}
	r := t.resources[name]
	list, err := t.cluster.List(context.Background(), schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}, "")
	if err != nil {
		return nil, err
	}
	t.lists[name] = list.Items
	return list.Items, nil
}

// of lists resources, all of them without names, in informerd's order.
func (t *truth) of(names ...string) ([]harness.Object, error) {
	if len(names) == 0 {
		for name := range t.resources {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := t.resources[a], t.resources[b]
		return cmp.Or(strings.Compare(x.Group, y.Group), strings.Compare(x.Resource, y.Resource))
	})
	var all []harness.Object
	for _, name := range names {
		items, err := t.list(name)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// valueAt is the value at a path of names, nil if it leads nowhere.
func valueAt(v any, path ...string) any {
	for _, name := range path {
		switch m := v.(type) {
		case harness.Object:
			v = m[name]
		case map[string]any:
			v = m[name]
		default:
			return nil
		}
	}
	return v
}

// each are the elements of the array at a path.
func each(v any, path ...string) []any {
	list, _ := valueAt(v, path...).([]any)
	return list
}

// str is the text of a scalar at a path, "" if there is none.
func str(v any, path ...string) string {
	switch x := valueAt(v, path...).(type) {
	case nil, map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(x)
	}
}

func containers(o harness.Object) []any { return each(o, "spec", "containers") }

// images of the containers, each once.
func images(o harness.Object) []string {
	var all []string
	for _, c := range containers(o) {
		if image := str(c, "image"); !slices.Contains(all, image) {
			all = append(all, image)
		}
	}
	return all
}

// requested adds up what the containers request; ok if any does.
func requested(o harness.Object, what string) (sum resource.Quantity, ok bool) {
	for _, c := range containers(o) {
		if text := str(c, "resources", "requests", what); text != "" {
			sum.Add(resource.MustParse(text))
			ok = true
		}
	}
	return sum, ok
}

// name is how answers are compared.
func name(o harness.Object) string {
	return fmt.Sprintf("%v %v %s", o["apiVersion"], o["kind"], o.Key())
}

// where are the names of the objects that pass.
func where(pass func(harness.Object) bool, resources ...string) func(*truth) ([]string, error) {
	return func(t *truth) ([]string, error) {
		all, err := t.of(resources...)
		names := []string{}
		for _, o := range all {
			if pass(o) {
				names = append(names, name(o))
			}
		}
		return names, err
	}
}

// ordered is where, in the order of compare, the first n if n is positive.
func ordered(n int, compare func(a, b harness.Object) int, pass func(harness.Object) bool, resources ...string) func(*truth) ([]string, error) {
	return func(t *truth) ([]string, error) {
		all, err := t.of(resources...)
		all = slices.DeleteFunc(slices.Clone(all), func(o harness.Object) bool { return !pass(o) })
		slices.SortStableFunc(all, compare)
		names := []string{}
		for _, o := range all {
			names = append(names, name(o))
		}
		if n > 0 {
			names = names[:min(n, len(names))]
		}
		return names, err
	}
}

func everything(harness.Object) bool { return true }

// groups counts or adds by key; an object may have several keys.
func groups(keys func(harness.Object) []string, value func(harness.Object) (resource.Quantity, bool), resources ...string) func(*truth) ([]string, error) {
	return func(t *truth) ([]string, error) {
		all, err := t.of(resources...)
		sums, found := map[string]*resource.Quantity{}, map[string]bool{}
		for _, o := range all {
			v, ok := value(o)
			for _, k := range keys(o) {
				if sums[k] == nil {
					sums[k] = &resource.Quantity{}
				}
				sums[k].Add(v)
				found[k] = found[k] || ok
			}
		}
		rows := []string{}
		for k, sum := range sums {
			cell := "null"
			if found[k] {
				cell = amountOf(sum.String())
			}
			rows = append(rows, k+" = "+cell)
		}
		slices.Sort(rows)
		return rows, err
	}
}

func one(harness.Object) (resource.Quantity, bool) { return resource.MustParse("1"), true }

func by(paths ...[]string) func(harness.Object) []string {
	return func(o harness.Object) []string {
		var cells []string
		for _, p := range paths {
			text := str(o, p...)
			if valueAt(o, p...) == nil {
				text = "null"
			}
			cells = append(cells, text)
		}
		return []string{strings.Join(cells, "|")}
	}
}

func path(s string) []string { return strings.Split(s, ".") }

// amountOf writes equal quantities alike.
func amountOf(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	return q.AsDec().String()
}

// facets count the objects that have each value of some paths.
func facets(resource string, paths ...string) func(*truth) ([]string, error) {
	return func(t *truth) ([]string, error) {
		var resources []string
		if resource != "" {
			resources = []string{resource}
		}
		all, err := t.of(resources...)
		lines := []string{}
		for _, path := range paths {
			counts := map[string]int{}
			for _, o := range all {
				values := map[string]bool{}
				for _, v := range at(o, strings.ReplaceAll(path, "[*]", ".*")) {
					values[fmt.Sprint(v)] = true
				}
				if len(values) == 0 {
					values["null"] = true
				}
				for v := range values {
					counts[v]++
				}
			}
			for v, n := range counts {
				lines = append(lines, fmt.Sprintf("%s|%s = %d", path, v, n))
			}
		}
		return lines, err
	}
}
