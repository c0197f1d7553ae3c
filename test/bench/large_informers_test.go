package main

import (
	"math"
	"testing"
)

// TestInformersRows: they are compared pod by pod, whatever the number of pods, and peers that
// were left out have no rows.
func TestInformersRows(t *testing.T) {
	l := &large{bench: &bench{data: &dataset{Pods: 1000}}, coldCPU: 2, settled: 1e6, peaks: []float64{1.5e6, 2e6}}
	f := &clientInformers{pods: 100, samples: map[string][]sample{dynamicInformer: {{CPU: 4, Heap: 3e6, Peak: 5e6}}}}
	rows := f.rows(l)
	want := [][2]float64{{0.002, 0.04}, {1e3, 3e4}, {2e3, 5e4}}
	if len(rows) != len(want) {
		t.Fatalf("got %d rows, want %d: %+v", len(rows), len(want), rows)
	}
	for i, w := range want {
		if r := rows[i]; math.Abs(r.Ours.Value-w[0]) > 1e-9 || math.Abs(r.Peer.Value-w[1]) > 1e-9 || r.Peer.Name != "dynamicinformer, 100 pods" {
			t.Errorf("%s: %v and %v of %q, want %v", r.What, r.Ours.Value, r.Peer.Value, r.Peer.Name, w)
		}
	}
	if got := f.name(typedInformer); got != "typed informer over JSON, 100 pods" {
		t.Errorf("the typed informer is called %q", got)
	}
}
