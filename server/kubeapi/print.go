package kubeapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// Printed are objects of one resource as the API server prints them for people.
type Printed struct {
	Columns []metav1.TableColumnDefinition
	// Rows are in the order of the objects. One may have fewer cells than there
	// are columns.
	Rows [][]any
}

// Print prints objects of a resource, as in the tables of this API: with rows
// that the API server made, and names and ages alone while it is away.
func (a *API) Print(ctx context.Context, res Resource, objs []*cache.Object) Printed {
	t := &target{request: &request{cluster: res.Spec().Cluster}, Resource: res, status: res.Status(), store: res.Store()}
	out := Printed{Columns: genericColumns, Rows: make([][]any, len(objs))}
	var printed []*row
	if t.store == nil {
		printed = make([]*row, len(objs)) // it was stopped since they were found
	} else {
		out.Columns, printed = (&printer{target: t, api: a}).print(ctx, objs)
	}
	for i, o := range objs {
		out.Rows[i] = cellsOf(out.Columns, printed[i], o)
	}
	return out
}
