package cache

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPosting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &posting{}
	model := map[uint32]bool{}
	limit := 2 * maxFew
	for i := range 20000 {
		if i%500 == 0 {
			limit = 1 + r.IntN(4*maxFew) // cross the border between the forms often
		}
		row := r.Uint32N(200)
		if len(model) < limit {
			p.add(row)
			model[row] = true
		} else {
			row = slices.Collect(maps.Keys(model))[r.IntN(len(model))]
			p.remove(row)
			delete(model, row)
		}
		p.remove(1000) // was never in
		if p.len() != len(model) || p.has(row) != model[row] {
			t.Fatalf("step %d: %d rows, want %d; has(%d) = %v", i, p.len(), len(model), row, p.has(row))
		}
		if !slices.Equal(p.bitmap().ToArray(), slices.Sorted(maps.Keys(model))) {
			t.Fatalf("step %d: rows %v", i, p.bitmap())
		}
	}
}
