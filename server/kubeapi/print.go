package kubeapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// Printed are objects of one resource as the API server prints them for people.
type Printed struct {
	Columns []metav1.TableColumnDefinition
	// Rows are in the order of the objects.
	Rows []Cells
}

// known is the target of questions that no object is read for.
func known(view *cache.View) *target {
	return &target{request: &request{cluster: view.Spec.Cluster}, view: view, reader: view.Reader(cache.Scope{})}
}

// Print prints objects that were found in a View, as in the tables of this API:
// with rows that the API server made, and names and ages alone while it is away.
func (a *API) Print(ctx context.Context, view *cache.View, objs []*cache.Object) (Printed, error) {
	t := known(view)
	out := Printed{Columns: genericColumns, Rows: make([]Cells, len(objs))}
	columns, lines, err := a.printer(t).lines(ctx, objs)
	if err != nil {
		return Printed{}, err
	}
	for i, l := range lines {
		out.Rows[i] = l.cells
	}
	out.Columns = columns
	return out, nil
}
