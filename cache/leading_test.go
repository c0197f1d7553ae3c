package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
)

func mustLabels(tb testing.TB, s string) labels.Selector {
	tb.Helper()
	selector, err := labels.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return selector
}

func mustFieldSelector(tb testing.TB, s string) cache.FieldSelector {
	tb.Helper()
	f, err := cache.ParseFieldSelector(s)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// sortThing has values of one class at spec.v mostly, and several at
// spec.parts[*].v.
func sortThing(r *rand.Rand, pool []string, i, version int) string {
	value := func() string { return pick(r, pool...) }
	parts := make([]string, r.IntN(3))
	for n := range parts {
		parts[n] = `{"v":` + value() + `}`
	}
	v := ""
	if r.IntN(20) > 0 {
		v = `"v":` + value() + `,`
	}
	return fmt.Sprintf(`{"metadata":{"name":"t-%d","namespace":"%s","uid":"u%d","resourceVersion":"%d","creationTimestamp":"2026-10-31T23:00:%02dZ","labels":{"app":"%s"}},"spec":{%s"w":"%s","parts":[%s]}}`,
		i, pick(r, "x", "y"), i, version, r.IntN(30), pick(r, "a", "b"), v, pick(r, "1", "2"), strings.Join(parts, ","))
}

var sortPools = map[string][]string{
	"amounts":  {`1`, `1.0`, `2`, `10`, `-3.5`, `9007199254740992`, `9007199254740993`, `"1500m"`, `"1Ki"`, `"1.5"`, `"2"`},
	"numbers":  {`1`, `1.0`, `2`, `10`, `-3.5`, `0.1`},
	"times":    {`"2026-10-31T23:00:00Z"`, `"2026-11-01T00:00:00+01:00"`, `"2026-10-31T23:00:00.5Z"`, `"2025-01-01T00:00:00Z"`},
	"texts":    {`"a"`, `"b"`, `true`, `""`, `"10.0.0.1"`, `"ab"`},
	"mixed":    {`1`, `"a"`, `"2026-10-31T23:00:00Z"`, `"10"`, `"9"`},
	"unsure":   {`1e3`, `"P"`, `2`, `"0.5n"`, `0.10000000000000001`},
	"too long": {`1`, `2`, `"` + strings.Repeat("0", 1100) + `3"`, `"` + strings.Repeat("x", 1100) + `"`},
}

// TestSortedPages: the pages of a sorted list have the order that a store
// without indexes gives it, and are of one version.
func TestSortedPages(t *testing.T) {
	for name, pool := range sortPools {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, uint64(len(name))))
			var things []string
			for i := range 120 {
				things = append(things, sortThing(r, pool, i, i+1))
			}
			indexed, plain := oddStores(t, things)
			sorted := map[string]int{}
			for i := range 120 {
				order, err := cache.ParseOrder(pick(r, "", "-") + pick(r, "spec.v", "spec.v", "spec.parts[*].v", "spec.w", "metadata.creationTimestamp", "spec.v,-spec.w", "metadata.name"))
				if err != nil {
					t.Fatal(err)
				}
				q := cache.Query{Sort: order}
				switch r.IntN(6) {
				case 0:
					q.Namespaces = []string{"x"}
				case 1:
					q.Labels = mustLabels(t, pick(r, "app=a", "app!=a", "app in (a,b)", "app", "!app", "app>0"))
				case 2:
					q.Fields = mustFieldSelector(t, pick(r, "spec.w=1", "spec.w!=1", "spec.none=1", "metadata.name!=t-1", "metadata.namespace=y"))
				case 3:
					q.Terms = []cache.Term{{Index: "w", Value: "2"}}
				case 4:
					q.Filter = mustFilter(t, `object.spec.w == "1"`)
				}
				same := q // without an index
				if len(q.Terms) > 0 {
					same.Terms, same.Fields = nil, mustFieldSelector(t, "spec.w=2")
				}
				want, err := plain.Select(context.Background(), same)
				if err != nil {
					t.Fatal(err)
				}
				first, err := indexed.Page(context.Background(), q, 1+r.IntN(10), "")
				if err != nil {
					t.Fatal(err)
				}
				sorted[first.Plan.Sorted]++
				if i%3 == 0 { // the pages stay of the version of the first
					o, err := indexed.Decode([]byte(sortThing(r, pool, r.IntN(120), 1000+i)), "example.com/v1", "Thing")
					if err != nil {
						t.Fatal(err)
					}
					kind := pick(r, cache.Modified, cache.Deleted)
					indexed.Apply("", kind, o)
					plain.Apply("", kind, o)
				}
				got := pagesFrom(t, indexed, q, first, 1+r.IntN(50))
				if !slices.Equal(names(got), names(want.Objects)) || len(got) != len(first.Objects)+first.Remaining {
					t.Fatalf("%v sorted by %s, first page by %q: %v (%d remaining of the first %d), want %v", q, order, first.Plan.Sorted, names(got), first.Remaining, len(first.Objects), names(want.Objects))
				}
			}
			byIndex := name != "mixed" && name != "unsure" && name != "too long"
			if sorted["metadata.creationTimestamp"] == 0 || sorted["w"] == 0 || (sorted["v"] > 0) != byIndex || (sorted["part"] > 0) != byIndex {
				t.Errorf("sorted by %v", sorted)
			}
		})
	}
}

// pagesFrom reads the rest of a list.
func pagesFrom(t *testing.T, s *cache.Store, q cache.Query, p *cache.Page, limit int) []*cache.Object {
	t.Helper()
	objects := slices.Clone(p.Objects)
	for p.Continue != "" {
		next, err := s.Page(context.Background(), q, limit, p.Continue)
		if err != nil {
			t.Fatal(err)
		}
		if next.Version != p.Version || next.Remaining != p.Remaining-len(next.Objects) {
			t.Fatalf("page of %d at version %s with %d remaining after one at %s with %d", len(next.Objects), next.Version, next.Remaining, p.Version, p.Remaining)
		}
		objects, p = append(objects, next.Objects...), next
	}
	return objects
}

// TestUnsorted: a plan names the paths whose values were read from the JSON.
func TestUnsorted(t *testing.T) {
	indexed, plain := oddStores(t, []string{
		`{"metadata":{"name":"a","namespace":"x","resourceVersion":"1"},"spec":{"v":2,"other":1}}`,
		`{"metadata":{"name":"b","namespace":"x","resourceVersion":"1"},"spec":{"v":1,"other":2}}`,
	})
	order, err := cache.ParseOrder("spec.v,-spec.other,metadata.name,metadata.creationTimestamp")
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]*cache.Store{"[spec.other]": indexed, "[spec.v spec.other]": plain} {
		r, err := s.Select(context.Background(), cache.Query{Sort: order})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Plan.Unsorted); got != want || !slices.Equal(names(r.Objects), []string{"x/b", "x/a"}) {
			t.Errorf("%s read to sort %v, want %s", got, names(r.Objects), want)
		}
	}
}
