package main

import (
	"path/filepath"
	"testing"
)

func TestJoinReports(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, pods int, rows ...Row) string {
		file := filepath.Join(dir, name)
		if err := (&report{Rounds: 3, Data: &dataset{Pods: pods}, Rows: rows}).save(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	whole := func(v float64) Row { return Row{Group: wholeRun, What: "memory", Ours: figure(v), Bar: atMost(10)} }
	query := save("query.json", 10, Row{Group: "query", What: "old", Ours: figure(1)}, Row{Group: "query", What: "gone", Ours: figure(1)}, whole(7))
	cold := save("cold.json", 10, Row{Group: "cold", What: "wall", Ours: figure(2)}, whole(9))
	again := save("again.json", 10, Row{Group: "query", What: "old", Ours: figure(3)}, whole(8))
	r, err := joinReports([]string{query, cold, again})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		what  string
		value float64
	}{{"wall", 2}, {"old", 3}, {"memory", 9}}
	if len(r.Rows) != len(want) {
		t.Fatalf("got %d rows, want %d: %+v", len(r.Rows), len(want), r.Rows)
	}
	for i, w := range want {
		if r.Rows[i].What != w.what || r.Rows[i].Ours.Value != w.value {
			t.Errorf("row %d is %s %v, want %+v", i, r.Rows[i].What, r.Rows[i].Ours.Value, w)
		}
	}
	if _, err := joinReports([]string{query, save("other.json", 11)}); err == nil {
		t.Error("runs on different data are joined")
	}
}
