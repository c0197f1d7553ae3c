package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// explanation is how the question was answered for one resource.
type explanation struct {
	Cluster  string `json:"cluster,omitempty"`
	Resource string `json:"resource"`
	// Objects there are, Candidates that the indexes left of them, Scanned ones
	// whose JSON was read, Matched ones.
	Objects    int      `json:"objects"`
	Indexes    []string `json:"indexes"`
	Candidates int      `json:"candidates"`
	Scanned    int      `json:"scanned"`
	Matched    int      `json:"matched"`
	// Excerpts is of how many of Scanned what is read had been kept.
	Excerpts int `json:"excerpts,omitempty"`
	// Columns are those that were at hand for the question, by their paths.
	Columns []string `json:"columns,omitempty"`
	// SortedBy is the index in whose order the first objects were found.
	SortedBy string `json:"sortedBy,omitempty"`
	// FilterErrors are of objects that did not match for that reason.
	FilterErrors *filterErrors `json:"filterErrors,omitempty"`
	Advice       []advice      `json:"advice,omitempty"`
}

// advice names an index that would have made the question cheaper.
type advice struct {
	Path   string `json:"path"`
	Config string `json:"config"`
}

func explain(res *viewed, r *cache.Result, matched int) explanation {
	e := explanation{
		Cluster: res.view.Spec.Cluster, Resource: res.view.Spec.Name(),
		Objects: res.reader.Len(), Indexes: append([]string{}, r.Plan.Indexes...), Candidates: r.Plan.Candidates,
		Scanned: r.Plan.Scanned, Matched: matched, SortedBy: r.Plan.Sorted, Excerpts: r.Plan.Excerpts, Columns: r.Plan.Columns, FilterErrors: faultsOf(r.Faults),
	}
	paths := slices.Clone(r.Plan.Unsorted)
	if r.Plan.Scanned > 0 {
		paths = append(paths, r.Plan.Unindexed...)
	}
	slices.SortFunc(paths, func(a, b rawjson.Path) int { return strings.Compare(a.String(), b.String()) })
	for _, path := range slices.Compact(paths) {
		e.Advice = append(e.Advice, advice{path.String(), configLine(res.view.Spec, path)})
	}
	return e
}

// configLine is the rule for config.yaml that makes an index.
func configLine(spec cache.Spec, path rawjson.Path) string {
	return fmt.Sprintf("- match: [%s]\n  indexes: {%q: %q}", spec.Name(), path, path)
}

func explainOne(w http.ResponseWriter, r *http.Request, q *query, e explanation) error {
	w.Header().Del("ETag")
	return writeExplanation(w, r, []explanation{e}, nil, q.pretty)
}

func writeExplanation(w http.ResponseWriter, r *http.Request, items []explanation, states []kindState, pretty bool) error {
	answer := list[explanation]{Kind: "Explanation", APIVersion: apiVersion, Items: items}
	answer.Metadata.Resources = states
	return writeJSON(w, r, answer, pretty)
}
