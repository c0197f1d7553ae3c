package main

import (
	"runtime"
	"testing"
)

// TestAddProcessors: there are some to spare, but not where somebody said how many there are.
func TestAddProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(runtime.NumCPU())
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for _, c := range []struct {
		set         string
		have, wants int
	}{
		{"", runtime.NumCPU(), runtime.NumCPU() + spareProcessors},
		{"7", runtime.NumCPU(), runtime.NumCPU()},
		{"", runtime.NumCPU() + 7, runtime.NumCPU() + 7}, // a quota, say
	} {
		t.Setenv("GOMAXPROCS", c.set)
		runtime.GOMAXPROCS(c.have)
		if addProcessors(); runtime.GOMAXPROCS(0) != c.wants {
			t.Errorf("%d with GOMAXPROCS=%q are %d, want %d", c.have, c.set, runtime.GOMAXPROCS(0), c.wants)
		}
	}
}
