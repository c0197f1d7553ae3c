package harness

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// pageSize is small and divides nothing.
	pageSize = 7
	// mostPages bounds the requests for one resource.
	mostPages = 60
	// mostValues bounds how many values of one index are looked up.
	mostValues = 25
)

// Check is what CheckEqual compares. The zero value compares everything that is
// watched under the built-in rules.
type Check struct {
	// Resources are the only ones to compare, by name.
	Resources []string
	// Namespace restricts the comparison of namespaced resources to what the
	// API server has there; others are left out.
	Namespace string
	// Kept is what informerd must show of an object; default Kept.
	Kept func(Object) Object
	// Timeout is how long equality may take to come; default one minute.
	Timeout time.Duration
	// AnyState accepts resources that are not live.
	AnyState bool
}

// CheckEqual fails the test unless every object informerd shows of every watched
// resource equals the API server's own answer, in full and page by page, and
// every index says what follows from those objects. Both sides are asked again
// until they agree, since neither stands still for the other.
func CheckEqual(tb testing.TB, c *Cluster, i *Informerd, check Check) {
	tb.Helper()
	if check.Timeout == 0 {
		check.Timeout = time.Minute
	}
	if check.Kept == nil {
		check.Kept = Kept
	}
	resources, err := i.Resources()
	if err != nil {
		tb.Fatal(err)
	}
	start, objects, compared := time.Now(), 0, 0
	deadline := start.Add(check.Timeout)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		r := resources[name]
		if r.State == "unwatched" || check.Resources != nil && !slices.Contains(check.Resources, name) {
			continue
		}
		if check.Namespace != "" && !r.Namespaced {
			continue
		}
		compared++
		err := Poll(max(time.Until(deadline), 5*time.Second), func() error {
			n, err := compare(c, i, name, r, check)
			objects += n
			return err
		})
		if err != nil {
			tb.Errorf("%s differs from the API server: %v", name, err)
		}
	}
	if compared == 0 {
		tb.Error("no resource was compared")
	}
	for _, name := range check.Resources {
		if _, ok := resources[name]; !ok {
			tb.Errorf("resource %s is not there", name)
		}
	}
	tb.Logf("compared %d objects of %d resources with the API server in %.1f s", objects, compared, time.Since(start).Seconds())
}

// compare compares one resource and returns how many objects were equal.
func compare(c *Cluster, i *Informerd, name string, r Resource, check Check) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	theirs, err := c.List(ctx, gvr, check.Namespace)
	if err != nil {
		return 0, err
	}
	for n, o := range theirs.Items {
		theirs.Items[n] = check.Kept(o)
	}
	ours, err := i.List(name, "")
	if err != nil {
		return 0, err
	}
	if err := equalLists(ours, theirs); err != nil {
		return 0, err
	}
	if !check.AnyState {
		if a, err := i.Get("/v1/resources/" + name); err != nil {
			return 0, err
		} else if state := a.Header.Get("Informerd-State"); state != "live" {
			return 0, fmt.Errorf("state is %s: %s", state, a.Header.Get("Warning"))
		}
	}
	if err := equalPages(i, name, theirs); err != nil {
		return 0, fmt.Errorf("in pages: %w", err)
	}
	return len(ours.Items), equalIndexes(i, name, theirs)
}

// List asks informerd for the objects of a resource; query is without "?".
func (i *Informerd) List(name, query string) (*ObjectList, error) {
	path := "/v1/resources/" + name + "/objects"
	if query != "" {
		path += "?" + query
	}
	list := &ObjectList{}
	return list, i.Read(path, list)
}

// Pages asks page by page and returns all of them as one list.
func (i *Informerd) Pages(name, query string, limit int) (*ObjectList, error) {
	all := &ObjectList{}
	token := ""
	for {
		q := fmt.Sprintf("limit=%d", limit)
		if query != "" {
			q += "&" + query
		}
		if token != "" {
			q += "&continue=" + url.QueryEscape(token)
		}
		page, err := i.List(name, q)
		if err != nil {
			return nil, err
		}
		if len(page.Items) > limit {
			return nil, fmt.Errorf("a page of %d items has %d", limit, len(page.Items))
		}
		first := all.Metadata.ResourceVersion
		if first != "" && page.Metadata.ResourceVersion != first {
			return nil, fmt.Errorf("a page has resourceVersion %s, the first one had %s", page.Metadata.ResourceVersion, first)
		}
		all.Kind, all.APIVersion = page.Kind, page.APIVersion
		all.Metadata.ResourceVersion = page.Metadata.ResourceVersion
		all.Items = append(all.Items, page.Items...)
		if token = page.Metadata.Continue; token == "" {
			return all, nil
		}
		if len(page.Items) != limit {
			return nil, fmt.Errorf("a page of %d items has %d and is not the last", limit, len(page.Items))
		}
	}
}

func equalPages(i *Informerd, name string, want *ObjectList) error {
	paged, err := i.Pages(name, "", max(pageSize, len(want.Items)/mostPages))
	if err != nil {
		return err
	}
	return equalLists(paged, want)
}

// equalLists compares objects and their order.
func equalLists(got, want *ObjectList) error {
	if got.Kind != want.Kind || got.APIVersion != want.APIVersion {
		return fmt.Errorf("list is %s %s, want %s %s", got.APIVersion, got.Kind, want.APIVersion, want.Kind)
	}
	if !slices.IsSortedFunc(got.Items, compareKeys) {
		return fmt.Errorf("list is not ordered by namespace and name")
	}
	return EqualObjects(byKey(got.Items), byKey(want.Items), len(got.Items))
}

func byKey(items []Object) map[string]Object {
	all := make(map[string]Object, len(items))
	for _, o := range items {
		all[o.Key()] = o
	}
	return all
}

// EqualObjects compares two sets of objects. items is how many got was made of.
func EqualObjects(got, want map[string]Object, items int) error {
	if items != len(got) {
		return fmt.Errorf("%d items have only %d keys", items, len(got))
	}
	var missing, extra, differ []string
	first := ""
	for _, key := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[key]
		if !ok {
			missing = append(missing, key)
			continue
		}
		if g.Canonical() != want[key].Canonical() {
			differ = append(differ, key)
			if first == "" {
				first = cmp.Diff(map[string]any(want[key]), map[string]any(g))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			extra = append(extra, key)
		}
	}
	if len(missing)+len(extra)+len(differ) == 0 {
		return nil
	}
	return fmt.Errorf("%d missing %v, %d too many %v, %d differ %v\n-API server +informerd:\n%s",
		len(missing), some(missing), len(extra), some(extra), len(differ), some(differ), head(first, 60))
}

func some(keys []string) []string {
	if len(keys) > 5 {
		return append(slices.Clone(keys[:5]), "...")
	}
	return keys
}

// Index is an item of /v1/resources/R/indexes.
type Index struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Values int    `json:"values"`
}

// Indexes are those of a resource.
func (i *Informerd) Indexes(name string) ([]Index, error) {
	var list struct{ Items []Index }
	err := i.Read("/v1/resources/"+name+"/indexes", &list)
	return list.Items, err
}

// IndexValues are the values of an index with how many objects each has.
func (i *Informerd) IndexValues(name, index string) (map[string]int, error) {
	var list struct {
		Items []struct {
			Value   string `json:"value"`
			Objects int    `json:"objects"`
		}
	}
	if err := i.Read("/v1/resources/"+name+"/indexes/"+url.PathEscape(index), &list); err != nil {
		return nil, err
	}
	values := map[string]int{}
	for n, v := range list.Items {
		if n > 0 && list.Items[n-1].Value >= v.Value {
			return nil, fmt.Errorf("values of index %s are not sorted: %q before %q", index, list.Items[n-1].Value, v.Value)
		}
		values[v.Value] = v.Objects
	}
	return values, nil
}

// IndexPath is the path of the objects under one value of an index.
func IndexPath(name, index, value string) string {
	return "/v1/resources/" + name + "/indexes/" + url.PathEscape(index) + "/" + url.PathEscape(value)
}

func equalIndexes(i *Informerd, name string, truth *ObjectList) error {
	indexes, err := i.Indexes(name)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if err := equalIndex(i, name, index, truth); err != nil {
			return fmt.Errorf("index %s: %w", index.Name, err)
		}
	}
	return nil
}

func equalIndex(i *Informerd, name string, index Index, truth *ObjectList) error {
	want := map[string][]Object{}
	for _, o := range truth.Items {
		for value := range o.indexed(index.Name, index.Path) {
			want[value] = append(want[value], o)
		}
	}
	counts := map[string]int{}
	for value, objects := range want {
		counts[value] = len(objects)
	}
	got, err := i.IndexValues(name, index.Name)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(counts, got); diff != "" {
		return fmt.Errorf("values differ, -from the API server's objects +informerd:\n%s", head(diff, 40))
	}
	if index.Values != len(counts) {
		return fmt.Errorf("it is said to have %d values and has %d", index.Values, len(counts))
	}
	values := slices.Sorted(maps.Keys(want))
	step := 1 + len(values)/mostValues
	for n := 0; n < len(values); n += step {
		value := values[n]
		if value == "" || strings.ContainsAny(value, "%") {
			continue // not every client can write these in a path
		}
		list := &ObjectList{}
		if err := i.Read(IndexPath(name, index.Name, value), list); err != nil {
			return err
		}
		if err := equalLists(list, &ObjectList{Kind: truth.Kind, APIVersion: truth.APIVersion, Items: want[value]}); err != nil {
			return fmt.Errorf("value %q: %w", value, err)
		}
	}
	return nil
}
