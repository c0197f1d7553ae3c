//go:build !race

// The race detector empties pools at random.

package cache

import "testing"

// TestAllocationsOfTemplates: who reads the siblings of one after the other leaves no garbage.
func TestAllocationsOfTemplates(t *testing.T) {
	of, _ := inOnePlace(t, 5)
	var p plainTemplates
	read := func() {
		for _, d := range of {
			for range 4 {
				if err := p.use(d, func([]byte) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n > 1 {
		t.Errorf("%.1f allocations for five templates", n)
	}
}
