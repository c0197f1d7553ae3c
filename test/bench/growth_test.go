package main

import "testing"

func TestGrowth(t *testing.T) {
	base := &report{Data: &dataset{Pods: 100}, Rows: []Row{
		{Group: "cold", What: "wall time", Unit: unitSeconds, Ours: figure(1)},
		{Group: "cold", What: "heap per object", Unit: unitBytes, Ours: figure(1000)},
		{Group: "warm", What: "LISTs", Unit: unitCount, Ours: figure(0)},
		{Group: "query", What: "index query of about 6 pods in full", Unit: unitPerSecond, Ours: figure(900)},
		{Group: "events", What: "delay", Unit: unitSeconds, Ours: figure(1), Constant: true},
	}}
	rows := growth(base, []Row{
		{Group: "cold", What: "wall time", Unit: unitSeconds, Ours: figure(9), Peer: figure(1)},
		{Group: "cold", What: "wall time", Unit: unitSeconds, Ours: figure(9), Peer: figure(2)},
		{Group: "cold", What: "heap per object", Unit: unitBytes, Ours: figure(1600)},
		{Group: "warm", What: "LISTs", Unit: unitCount, Ours: figure(0)},
		{Group: "query", What: "index query of about 60 pods in full", Unit: unitPerSecond, Ours: figure(80)},
		{Group: "cold", What: "new", Unit: unitSeconds, Ours: figure(1)},
		{Group: "events", What: "delay", Unit: unitSeconds, Ours: figure(1), Constant: true},
	}, 1000)
	want := []struct {
		what    string
		linear  float64
		verdict Verdict
	}{
		{"growth: wall time", 10, held},
		{"growth: heap per object", 1000, notHeld},
		{"growth: index query", 90, held},
	}
	if len(rows) != len(want) {
		t.Fatalf("got %d rows, want %d: %+v", len(rows), len(want), rows)
	}
	for i, w := range want {
		if r := rows[i]; r.What != w.what || r.Peer.Value != w.linear || r.Verdict() != w.verdict {
			t.Errorf("row %d is %s, linear %v, %s; want %+v", i, r.What, r.Peer.Value, r.Verdict(), w)
		}
	}
}
