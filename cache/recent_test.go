package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRecent: what is known of the object before is never taken for what another one has.
func TestRecent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var known recent
	value := make([]byte, 0, 16)
	for range 20_000 {
		i, index := r.IntN(2*maxRecent), pick(r, LabelIndex, OwnerIndex, "node")
		value = fmt.Appendf(value[:0], "%d", r.IntN(3)) // whoever calls goes on to use it
		if got, want := known.intern(i, index, value), intern(index, string(value)); got != want {
			t.Fatalf("place %d: %v, want %v", i, got.Value(), want.Value())
		}
	}
	if len(known.terms) > maxRecent {
		t.Errorf("%d terms are remembered", len(known.terms))
	}
}
