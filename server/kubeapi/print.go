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
	columns, cells, err := a.printer(known(view)).cells(ctx, objs)
	return Printed{Columns: columns, Rows: cells}, err
}
