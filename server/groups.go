package server

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
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
	ends    []int           // up to where objects are of each of kinds
	results []*cache.Result // of those of kinds that have any
	found   []int           // which of kinds each result is of
}

// foundOf are objects of one resource.
func foundOf(kind *viewed, found *cache.Result) foundObjects {
	return foundObjects{found.Objects, []*viewed{kind}, []int{len(found.Objects)}, []*cache.Result{found}, []int{0}}
}

// of is the resource of object i.
func (f *foundObjects) of(i int) *viewed {
	return f.kinds[sort.SearchInts(f.ends, i+1)]
}

// clusterPath is what objects of several clusters have beside their fields: the name of
// the cluster that they are of.
var clusterPath = must(rawjson.ParsePath("cluster"))

// byCluster reports whether groups or facets are about clusters. That is so of questions
// to several clusters; of one, the path is a field as any other.
func (q *query) byCluster() bool {
	return q.severalClusters && slices.Contains(slices.Concat(q.summary.GroupBy, q.summary.Facets), clusterPath)
}

// fieldSets are what is read of the objects themselves, by set.
func (q *query) fieldSets() [][]rawjson.Path {
	sets := q.summary.Sets()
	if q.byCluster() {
		for i := range sets {
			sets[i] = slices.DeleteFunc(sets[i], func(p rawjson.Path) bool { return p == clusterPath })
		}
	}
	return sets
}

// summarize unpacks objects only if it has to: how many there are of a kind, or in a
// namespace, is known without.
func (q *query) summarize(ctx context.Context, f foundObjects) (*summary.Summary, error) {
	wanted, sets := q.summary, q.fieldSets()
	paths := slices.Concat(sets...)
	wanted.Unique = !slices.ContainsFunc(f.kinds, func(k *viewed) bool { return k.view.Spec.Aggregated })
	switch {
	case wanted.Computed():
		return summary.SummarizeAs(ctx, wanted, f.objects, q.withClusters(&f, judgedJSON(f.objects, time.Now())))
	case len(paths) == 0 || cache.IdentityOf(paths) == 0:
		return summary.SummarizeTallies(ctx, wanted, q.parts(&f, sets))
	}
	return summary.SummarizeAs(ctx, wanted, f.objects, q.withClusters(&f, func(dst []byte, i int) ([]byte, error) {
		if named, ok := f.of(i).view.Spec.AppendIdentity(dst, f.objects[i], cache.WholeIdentity); ok {
			return named, nil
		}
		return f.objects[i].AppendJSON(dst)
	}))
}

// parts are the objects of each resource.
func (q *query) parts(f *foundObjects, sets [][]rawjson.Path) []summary.Part {
	parts := make([]summary.Part, len(f.results))
	for i, found := range f.results {
		parts[i].Tally = found.Tally(sets...)
		if q.byCluster() {
			parts[i].Members = clusterMember(f.kinds[f.found[i]].view.Spec.Cluster)
		}
	}
	return parts
}

// withClusters has what write appends say which cluster it is of, if that is asked for.
func (q *query) withClusters(f *foundObjects, write func(dst []byte, i int) ([]byte, error)) func(dst []byte, i int) ([]byte, error) {
	if !q.byCluster() {
		return write
	}
	return func(dst []byte, i int) ([]byte, error) {
		at := len(dst)
		dst, err := write(dst, i)
		if err != nil {
			return dst, err
		}
		return insertCluster(dst, at, f.of(i).view.Spec.Cluster), nil
	}
}

// reads are what is read of all objects that are found.
func (q *query) reads() [][]rawjson.Path {
	switch {
	case !q.needsAll() && (q.limit > 0 || q.watch || q.named != 0):
		return nil // a page is few objects, and a stream tells each by itself
	case !q.needsAll():
		return [][]rawjson.Path{q.paths}
	case q.summary.Computed() || cache.IdentityOf(slices.Concat(q.fieldSets()...)) != 0:
		return nil
	default:
		return q.fieldSets()
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
	names := q.groupNames()
	return &listing{
		Kind: "GroupList", APIVersion: apiVersion, Metadata: meta, Facets: facetsOf(s),
		count: len(s.Groups),
		item:  func(dst []byte, i int) ([]byte, error) { return appendGroup(dst, names, s.Groups[i]) },
	}, nil
}

// groupNames are the columns of groups as the names of members.
func (q *query) groupNames() [][]byte {
	var names [][]byte
	for _, name := range q.summary.Columns() {
		names = append(names, append(reply.AppendText(nil, name), ':'))
	}
	return names
}

// appendGroup writes {"group":{path:value},"values":{aggregate:value}}.
func appendGroup(dst []byte, names [][]byte, g summary.Group) ([]byte, error) {
	dst, err := appendMembers(append(dst, `{"group":`...), names, g.Keys)
	if err != nil {
		return dst, err
	}
	dst, err = appendMembers(append(dst, `,"values":`...), names[len(g.Keys):], g.Values)
	return append(dst, '}'), err
}

func appendMembers(dst []byte, names [][]byte, values []scalar.Value) (_ []byte, err error) {
	dst = append(dst, '{')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, names[i]...)
		if v.Kind == rawjson.Number {
			dst = append(dst, v.Text...)
		} else if dst, err = reply.AppendValue(dst, v.JSON()); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
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
