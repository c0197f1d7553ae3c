//go:build !race

// The race detector allocates as well.

package cache

import (
	"testing"
	"time"
)

// TestAllocationsOfSort: a sort by what many objects have in common allocates nothing for each.
func TestAllocationsOfSort(t *testing.T) {
	const pods = 2 * asideFrom
	s := filledStore(t, pods)
	order, err := ParseOrder("spec.containers[*].resources.requests.cpu")
	if err != nil {
		t.Fatal(err)
	}
	s.contents.columns.forgetAll(time.Hour) // and keep none
	n := testing.AllocsPerRun(20, func() {
		if _, err := s.Select(t.Context(), Query{Sort: order}); err != nil {
			t.Error(err)
		}
	}) / pods
	if n > 0.5 {
		t.Errorf("%.2f allocations for each object", n)
	}
}
