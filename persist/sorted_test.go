package persist

import (
	"cmp"
	"slices"
	"testing"
)

// TestSortOrder: whatever is not in order is found, also between two pieces that are.
func TestSortOrder(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		for at := range max(n, 1) {
			order := make([]int, n)
			for i := range order {
				order[i] = i
			}
			if at > 0 {
				order[at-1], order[at] = order[at], order[at-1]
			}
			sortOrder(order, cmp.Compare[int])
			if !slices.IsSorted(order) {
				t.Fatalf("%d of them, of which %d was too early, are not sorted", n, at)
			}
		}
	}
}
