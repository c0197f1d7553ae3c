package server

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
)

// columnItem is what questions about some paths have left.
type columnItem struct {
	Paths     []string     `json:"paths"`
	Pinned    bool         `json:"pinned,omitempty"`
	Kept      bool         `json:"kept"`
	Reason    string       `json:"reason,omitempty"`
	Objects   int          `json:"objects"`
	Values    int          `json:"values"`
	Bytes     int64        `json:"bytes"`
	Asked     int          `json:"asked"`
	LastAsked *metav1.Time `json:"lastAsked,omitempty"`
}

func columnItemOf(c cache.ColumnInfo) columnItem {
	item := columnItem{
		Paths: c.Paths, Pinned: c.Pinned, Kept: c.Kept, Reason: c.Reason, Objects: c.Objects, Values: c.Values, Bytes: c.Bytes, Asked: c.Asked,
	}
	if !c.LastAsked.IsZero() {
		item.LastAsked = new(metav1.NewTime(c.LastAsked.UTC().Truncate(time.Second)))
	}
	return item
}

// listColumns says what is kept of the objects of a resource for questions that are asked again
// and again. It tells what others ask and what all objects have, so that it is for those who see
// all of them.
func (s *Server) listColumns(w http.ResponseWriter, r *http.Request) error {
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	res, err := s.wantsJSON(w, r)
	if err != nil {
		return err
	}
	if !res.scope.Whole() {
		return access.Forbidden(access.From(r.Context()), attributes(res.view.Spec, cache.List, cache.Key{}), "columns are of all objects")
	}
	setFreshness(w.Header(), res.view, res.reader.Version())
	answer := list[columnItem]{Kind: "ColumnList", APIVersion: apiVersion, Items: []columnItem{}}
	answer.Metadata.ResourceVersion = res.reader.Version()
	for _, c := range res.reader.Columns() {
		answer.Items = append(answer.Items, columnItemOf(c))
	}
	audit.From(r.Context()).Returned(len(answer.Items))
	return writeJSON(w, r, answer, pretty)
}
