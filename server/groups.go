package server

import (
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/summary"
	"github.com/informerd/informerd/server/reply"
)

// maxFacetValues is how many values of a facet are shown.
const maxFacetValues = 100

// parseSummary reads groupBy, agg and facets, and sort where it is about groups.
func (q *query) parseSummary(p params) (err error) {
	s := summary.Query{Grouped: p.Has("groupBy") || p.Has("agg")}
	if p.Has("groupBy") {
		if s.GroupBy, err = summary.ParsePaths("groupBy", p.Get("groupBy")); err != nil {
			return err
		}
	}
	if p.Has("facets") {
		if s.Facets, err = summary.ParsePaths("facets", p.Get("facets")); err != nil {
			return err
		}
	}
	if s.Grouped {
		agg := "count()"
		if p.Has("agg") {
			agg = p.Get("agg")
		}
		if s.Aggregates, err = summary.ParseAggregates(agg); err != nil {
			return err
		}
	}
	q.summary = s
	if s.Grouped && p.Has("sort") {
		q.groupOrder, err = s.ParseOrder(p.Get("sort"))
	}
	return err
}

// foundObjects are objects of one resource or of several, one after the other.
type foundObjects struct {
	objects []*cache.Object
	kinds   []*viewed
	ends    []int // up to where objects are of each of kinds
}

// foundOf are objects of one resource.
func foundOf(kind *viewed, objects []*cache.Object) foundObjects {
	return foundObjects{objects, []*viewed{kind}, []int{len(objects)}}
}

// of is the resource of object i.
func (f *foundObjects) of(i int) *viewed {
	return f.kinds[sort.SearchInts(f.ends, i+1)]
}

// summarize unpacks objects only if it has to: how many there are of a kind, or in a
// namespace, is known without.
func (q *query) summarize(ctx context.Context, f foundObjects) (*summary.Summary, error) {
	wanted := q.summary
	wanted.Unique = !slices.ContainsFunc(f.kinds, func(k *viewed) bool { return k.view.Spec.Aggregated })
	switch {
	case wanted.Computed():
		return summary.SummarizeAs(ctx, wanted, f.objects, judgedJSON(f.objects, time.Now()))
	case !wanted.OfIdentity():
		return summary.SummarizeAs(ctx, wanted, f.objects, f.within(wanted.Paths()))
	}
	return summary.SummarizeAs(ctx, wanted, f.objects, func(dst []byte, i int) ([]byte, error) {
		if named, ok := f.of(i).view.Spec.AppendIdentity(dst, f.objects[i], cache.WholeIdentity); ok {
			return named, nil
		}
		return f.objects[i].AppendJSON(dst)
	})
}

// within is how to append as much of object i as paths lead to, for a question that is about
// nothing else.
func (f *foundObjects) within(paths []rawjson.Path) func(dst []byte, i int) ([]byte, error) {
	appends := make([]func([]byte, *cache.Object) ([]byte, error), len(f.kinds))
	start := 0
	for k, end := range f.ends {
		appends[k] = f.kinds[k].view.AppendWithin(paths, end-start)
		start = end
	}
	return func(dst []byte, i int) ([]byte, error) {
		return appends[sort.SearchInts(f.ends, i+1)](dst, f.objects[i])
	}
}

// checkSummary refuses what has no meaning for groups or facets.
func (q *query) checkSummary(p params) error {
	switch {
	case q.summary.Grouped:
		for _, name := range []string{"fields", "view", "continue", "count"} {
			if p.Has(name) {
				return invalid(name, "not possible together with groupBy and agg, which answer with groups instead of objects")
			}
		}
	case len(q.summary.Facets) == 0:
		return nil
	case p.Has("continue"):
		return invalid("facets", "not possible together with continue: facets are of all pages and come with the first")
	}
	if len(q.summary.Facets) > 0 && (q.output.flat() || q.output == outputNDJSON) {
		return invalid("facets", "not possible together with output=%s, which has no place for them", q.output)
	}
	return nil
}

// facet is one of a list.
type facet struct {
	Path      string       `json:"path"`
	Values    []facetValue `json:"values"`
	Truncated bool         `json:"truncated,omitempty"`
}

type facetValue struct {
	Value   any `json:"value"`
	Objects int `json:"objects"`
}

func facetsOf(s *summary.Summary) []facet {
	var out []facet
	for _, f := range s.Facets {
		shown := facet{Path: f.Path.String(), Values: []facetValue{}, Truncated: len(f.Values) > maxFacetValues}
		for _, c := range f.Values[:min(len(f.Values), maxFacetValues)] {
			shown.Values = append(shown.Values, facetValue{c.Value.JSON(), c.Objects})
		}
		out = append(out, shown)
	}
	return out
}

// groupList answers with groups of objects.
func (q *query) groupList(ctx context.Context, found foundObjects, meta listMeta) (*listing, error) {
	s, err := q.summarize(ctx, found)
	if err != nil {
		return nil, err
	}
	q.groupOrder.Sort(s.Groups)
	if q.limit > 0 && q.limit < len(s.Groups) {
		meta.Remaining = len(s.Groups) - q.limit
		meta.Truncated = true
		s.Groups = s.Groups[:q.limit]
	}
	for i, n := range s.Ignored {
		if n > 0 {
			if meta.AggErrors == nil {
				meta.AggErrors = map[string]int{}
			}
			meta.AggErrors[q.summary.Aggregates[i].String()] = n
		}
	}
	return &listing{
		Kind: "GroupList", APIVersion: apiVersion, Metadata: meta, Facets: facetsOf(s),
		count: len(s.Groups),
		item:  func(dst []byte, i int) ([]byte, error) { return q.appendGroup(dst, s.Groups[i]) },
	}, nil
}

// appendGroup writes {"group":{path:value},"values":{aggregate:value}}.
func (q *query) appendGroup(dst []byte, g summary.Group) ([]byte, error) {
	names := q.summary.Columns()
	dst = append(dst, `{"group":{`...)
	var err error
	for i, v := range g.Keys {
		if dst, err = appendMember(dst, i, names[i], v.JSON()); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `},"values":{`...)
	for i, v := range g.Values {
		if dst, err = appendMember(dst, i, names[len(g.Keys)+i], v.JSON()); err != nil {
			return dst, err
		}
	}
	return append(dst, "}}"...), nil
}

func appendMember(dst []byte, i int, name string, value any) ([]byte, error) {
	if i > 0 {
		dst = append(dst, ',')
	}
	key, err := json.Marshal(name)
	if err != nil {
		return dst, err
	}
	text, err := reply.JSON(value, false)
	return append(append(append(dst, key...), ':'), text...), err
}

// groupColumns are the columns of groups as CSV.
func (q *query) groupColumns() []column {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var columns []column
	for i, name := range q.summary.Columns() {
		parent := "group"
		if i >= len(q.summary.GroupBy) {
			parent = "values"
		}
		columns = append(columns, column{name, must(rawjson.ParsePath(parent + "['" + quote.Replace(name) + "']"))})
	}
	return columns
}
