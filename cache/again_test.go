package cache

import (
	"fmt"
	"strings"
	"testing"
)

// TestAgain: what it remembers is what was put, and it gives up where nothing comes twice.
func TestAgain(t *testing.T) {
	var a Again[int]
	kept := 0
	for round := range 3 {
		for i := range 40_000 {
			json := []byte(fmt.Sprint(i))
			v, ok := a.Get(json)
			if ok != (round > 0 && i < kept) || ok && v != i {
				t.Fatalf("round %d: %s is %d, %v", round, json, v, ok)
			}
			a.hits = a.asked // so that it does not give up
			if !ok {
				a.Put(json, i)
			}
			clear(json) // it is the caller's
		}
		kept = len(a.known)
	}
	if kept < againBytes/100 || kept > againBytes/againEntry {
		t.Errorf("%d are kept", kept)
	}
	long := []byte(strings.Repeat("x", againLongest+1))
	if a.Put(long, 1); a.Wants(long) {
		t.Error("what is long is remembered")
	}
	if _, ok := a.Get(long); ok {
		t.Error("what is long is remembered")
	}

	var once Again[int]
	for i := range 2 * againTried {
		json := []byte(fmt.Sprint(i))
		if _, ok := once.Get(json); ok {
			t.Fatalf("%s was never put", json)
		}
		once.Put(json, i)
	}
	if !once.off || once.known != nil || once.Wants([]byte("x")) {
		t.Error("what never comes twice is remembered")
	}
}
