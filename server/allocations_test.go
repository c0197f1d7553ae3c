//go:build !race

// The race detector allocates as well.

package server

import "testing"

// TestAllocations holds how often memory is allocated for an answer with many
// objects in full: for the request, not for each object. What is exceeded for a
// good reason is raised here, with that reason in the commit.
func TestAllocations(t *testing.T) {
	const most = 190
	w := filledWorld(t)
	n := testing.AllocsPerRun(100, func() { w.listApp(t) })
	t.Logf("%.0f allocations for an answer of %d objects, at most %d", n, benchApp, most)
	if n > most {
		t.Errorf("%.0f allocations for an answer of %d objects, want at most %d", n, benchApp, most)
	}
}
