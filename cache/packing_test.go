package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTrainedAlike: a dictionary is not exchanged for another that was learned from objects of
// the same shape. It holds some of those as they are, which says nothing about the others.
func TestTrainedAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	samples := func(n int) [][]byte {
		all := make([][]byte, n)
		for i := range all {
			all[i] = shaped(rng, 1, fmt.Sprintf("x%d", i), i)
		}
		return all
	}
	for _, n := range []int{trainMinObjects, 40, trainObjects} {
		p := &packing{}
		if !p.train(samples(n)) {
			t.Fatalf("%d objects: no dictionary", n)
		}
		for range 3 {
			if p.train(samples(n)) {
				t.Errorf("%d objects: another dictionary for objects of the same shape", n)
			}
		}
	}
}
