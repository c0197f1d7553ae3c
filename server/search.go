package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/search"
	"github.com/informerd/informerd/server/audit"
)

const (
	maxHits = 1000
	// maxFacets is how many values a facet has at most, the most frequent ones.
	maxFacets = 100
)

// searchAnswer is what was found. docs/search.md says what the fields mean.
type searchAnswer struct {
	list[hitItem]
	Total      int              `json:"total"`
	Terms      []searchTerm     `json:"terms"`
	Facets     facets           `json:"facets"`
	Unanswered []unansweredItem `json:"unanswered"`
}

type hitItem struct {
	// Cluster is told where several were searched.
	Cluster   string      `json:"cluster,omitempty"`
	ID        string      `json:"id"`
	Resource  string      `json:"resource"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Score     int         `json:"score"`
	Matches   []matchItem `json:"matches,omitempty"`
}

type matchItem struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// searchTerm is one word of the question as it was understood.
type searchTerm matchItem

type facets struct {
	// Cluster is told where several were searched.
	Cluster   []facetItem `json:"cluster,omitempty"`
	Kind      []facetItem `json:"kind"`
	Namespace []facetItem `json:"namespace"`
}

type facetItem struct {
	Value   string `json:"value"`
	Objects int    `json:"objects"`
}

func (s *Server) find(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	clusters, err := s.clustersAsked(r.Context(), p)
	if err != nil {
		return err
	}
	var q search.Query
	var errs [5]error
	q.Terms, errs[0] = search.Parse(p.Get("q"))
	q.Within, errs[4] = parseWithin(p)
	q.Limit, errs[1] = p.between("limit", search.DefaultLimit, 1, maxHits)
	q.Highlights, errs[2] = p.flag("highlights")
	pretty, err := p.flag("pretty")
	if errs[3] = err; firstError(errs[:]) != nil {
		return firstError(errs[:])
	}
	found := newFoundBySearch(&q, len(clusters) > 1)
	err = askEach(r.Context(), clusters, found.unanswered, func(cluster string) error {
		some, missing, err := s.findIn(r.Context(), cluster, q)
		if err == nil {
			found.add(cluster, some, missing)
		}
		return err
	})
	if err != nil {
		return err
	}
	answer := found.answer()
	audit.From(r.Context()).Returned(len(answer.Items))
	return writeTagged(w, r, answer, pretty)
}

// findIn searches one cluster.
func (s *Server) findIn(ctx context.Context, cluster string, q search.Query) (*search.Answer, []unansweredItem, error) {
	engine, err := s.relations.search(cluster)
	if err != nil {
		return nil, nil, err
	}
	missing, err := s.checkKnown(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	if q.Sight, err = s.sight(ctx, cluster, cache.List); err != nil {
		return nil, nil, err
	}
	found, err := engine.Find(ctx, q)
	return found, missing, err
}

// parseWithin reads which objects are searched; nil is all.
func parseWithin(p params) (*cache.Query, error) {
	var q query
	if err := q.parseSelection(p); err != nil {
		return nil, err
	}
	for _, name := range []string{"namespace", "labelSelector", "fieldSelector", "filter"} {
		if p.Has(name) {
			return &q.Query, nil
		}
	}
	return nil, nil
}

// foundBySearch is what was found in one cluster or several.
type foundBySearch struct {
	query                      *search.Query
	several                    bool
	all                        *searchAnswer
	clusters, kinds, namespace map[string]int
}

func newFoundBySearch(q *search.Query, several bool) *foundBySearch {
	a := &searchAnswer{
		list:       list[hitItem]{Kind: "SearchResultList", APIVersion: apiVersion, Items: []hitItem{}},
		Unanswered: []unansweredItem{},
	}
	for _, t := range q.Terms {
		a.Terms = append(a.Terms, searchTerm{t.Field.String(), t.Text})
	}
	return &foundBySearch{q, several, a, map[string]int{}, map[string]int{}, map[string]int{}}
}

func (f *foundBySearch) add(cluster string, found *search.Answer, missing []unansweredItem) {
	f.all.Total += found.Total
	if found.Total > 0 {
		f.clusters[cluster] += found.Total
	}
	for _, facet := range found.Kinds {
		f.kinds[facet.Value] += facet.Objects
	}
	for _, facet := range found.Namespaces {
		f.namespace[facet.Value] += facet.Objects
	}
	if faults := faultsOf(found.Faults); faults != nil {
		if f.all.Metadata.FilterErrors == nil {
			f.all.Metadata.FilterErrors = faults
		} else {
			f.all.Metadata.FilterErrors.Count += faults.Count
		}
	}
	for _, h := range found.Hits {
		item := hitItem{
			ID: objectID(h.Resource, h.Key), Resource: h.Resource, Kind: h.Kind,
			Namespace: h.Key.Namespace, Name: h.Key.Name, Score: h.Points,
		}
		if f.several {
			item.Cluster = cluster
		}
		for _, m := range h.Matches {
			item.Matches = append(item.Matches, matchItem(m))
		}
		f.all.Items = append(f.all.Items, item)
	}
	for _, u := range append(unansweredItems(found.Unanswered), missing...) {
		if f.several {
			u.Cluster = cluster
		}
		f.all.Unanswered = append(f.all.Unanswered, u)
	}
}

// unanswered notes a cluster that could not be searched.
func (f *foundBySearch) unanswered(u unansweredItem) {
	f.all.Unanswered = append(f.all.Unanswered, u)
}

// answer is in the order of search.Answer, and of clusters where that leaves equals.
func (f *foundBySearch) answer() *searchAnswer {
	a := f.all
	if f.several {
		slices.SortStableFunc(a.Items, func(x, y hitItem) int {
			return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(len(x.Name), len(y.Name)), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Resource, y.Resource),
				cmp.Compare(x.Namespace, y.Namespace))
		})
		a.Items = a.Items[:min(len(a.Items), f.query.Limit)]
		a.Facets.Cluster = facetItems(f.clusters)
	}
	a.Facets.Kind, a.Facets.Namespace = facetItems(f.kinds), facetItems(f.namespace)
	a.Metadata.Truncated = a.Total > len(a.Items)
	return a
}

// facetItems are the most frequent values first.
func facetItems(found map[string]int) []facetItem {
	items := make([]facetItem, 0, len(found))
	for value, objects := range found {
		items = append(items, facetItem{value, objects})
	}
	slices.SortFunc(items, func(a, b facetItem) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Value, b.Value))
	})
	return items[:min(len(items), maxFacets)]
}
