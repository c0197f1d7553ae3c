package server

import (
	"net/http"

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
	cluster, err := s.clusterOf(r.Context(), p)
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
	engine, err := s.relations.search(cluster)
	if err != nil {
		return err
	}
	missing, err := s.checkKnown(r.Context(), cluster)
	if err != nil {
		return err
	}
	if q.Sight, err = s.sight(r.Context(), cluster, cache.List); err != nil {
		return err
	}
	found, err := engine.Find(r.Context(), q)
	if err != nil {
		return err
	}
	answer := searchAnswerOf(&q, found)
	answer.Unanswered = append(answer.Unanswered, missing...)
	audit.From(r.Context()).Returned(len(answer.Items))
	return writeTagged(w, r, answer, pretty)
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

func searchAnswerOf(q *search.Query, found *search.Answer) *searchAnswer {
	a := &searchAnswer{
		list:       list[hitItem]{Kind: "SearchResultList", APIVersion: apiVersion, Items: []hitItem{}},
		Total:      found.Total,
		Facets:     facets{Kind: facetItems(found.Kinds), Namespace: facetItems(found.Namespaces)},
		Unanswered: unansweredItems(found.Unanswered),
	}
	a.Metadata.Truncated = found.Total > len(found.Hits)
	a.Metadata.FilterErrors = faultsOf(found.Faults)
	for _, t := range q.Terms {
		a.Terms = append(a.Terms, searchTerm{t.Field.String(), t.Text})
	}
	for _, h := range found.Hits {
		item := hitItem{
			ID: objectID(h.Resource, h.Key), Resource: h.Resource, Kind: h.Kind,
			Namespace: h.Key.Namespace, Name: h.Key.Name, Score: h.Points,
		}
		for _, m := range h.Matches {
			item.Matches = append(item.Matches, matchItem(m))
		}
		a.Items = append(a.Items, item)
	}
	return a
}

func facetItems(found []search.Facet) []facetItem {
	items := []facetItem{}
	for _, f := range found[:min(len(found), maxFacets)] {
		items = append(items, facetItem(f))
	}
	return items
}
