package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
)

// TestItems: of a list that is cut off nothing is taken for all of it.
func TestItems(t *testing.T) {
	whole := `{"kind":"List","metadata":{"remainingItemCount":3},"items":[{"a":1},{"a":2}]}`
	for cut := range len(whole) + 1 {
		c, _ := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole[:cut]) }))
		var metadata struct{ RemainingItemCount int }
		var found []int
		err := c.Items(t.Context(), "/v1/query", nil, map[string]any{"metadata": &metadata}, func(d *json.Decoder) error {
			var item struct{ A int }
			err := d.Decode(&item)
			found = append(found, item.A)
			return err
		})
		var broken *UnreachableError
		if cut < len(whole) && !errors.As(err, &broken) {
			t.Errorf("%s: %v", whole[:cut], err)
		}
		if cut == len(whole) && (err != nil || metadata.RemainingItemCount != 3 || !slices.Equal(found, []int{1, 2})) {
			t.Errorf("%v, %v, %+v", err, found, metadata)
		}
	}
}
