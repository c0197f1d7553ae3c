package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTrainedInTurns: objects of a few shapes follow one another in turn, as those that every
// namespace has do. A dictionary learns from all shapes, and is judged by all.
func TestTrainedInTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	for _, shapes := range []int{2, 3, 5} {
		samples := make([][]byte, trainObjects)
		for i := range samples {
			samples[i] = shaped(rng, i%shapes, fmt.Sprintf("x%d", i), i)
		}
		p := &packing{}
		if !p.train(samples) {
			t.Fatalf("%d shapes: no dictionary", shapes)
		}
		worst := 0.0
		for first := range shapes {
			var some [][]byte
			for i := first; i < len(samples); i += shapes {
				some = append(some, samples[i])
			}
			worst = max(worst, fitOf(p.dict.Load(), some, p.coding()))
		}
		if worst > 0.5 || p.fit > misfit*worst || worst > 2*p.fit {
			t.Errorf("%d shapes: objects of one come out at %.2f, and are said to come out at %.2f", shapes, worst, p.fit)
		}
	}
}

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
