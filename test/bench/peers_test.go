package main

import "testing"

func TestParsePeers(t *testing.T) {
	if peers, err := parsePeers("none"); err != nil || len(peers) != 0 {
		t.Errorf("none is %v, %v", peers, err)
	}
	peers, err := parsePeers("typed,get")
	if err != nil || len(peers) != 2 {
		t.Fatalf("got %v, %v", peers, err)
	}
	o := options{peers: peers}
	for subject, want := range map[string]bool{"typed": true, "get": true, "dynamic": false, "informerd": true, "cache": true} {
		if o.measures(subject) != want {
			t.Errorf("%s measured: %v, want %v", subject, !want, want)
		}
	}
	for _, text := range []string{"", "informerd", "typed,none"} {
		if _, err := parsePeers(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestWithoutPeers(t *testing.T) {
	rows := withoutPeers([]Row{
		{What: "a", Ours: figure(1), Bar: ratioAtMost(1)},
		{What: "a", Ours: figure(1), Bar: ratioAtLeast(5)},
		{What: "b", Ours: figure(1), Bar: atMost(0)},
		{What: "b", Ours: figure(1), Bar: ratioAtMost(1)},
		{What: "c", Ours: figure(1), Bar: ratioAtMost(1)},
		{What: "c", Ours: figure(1), Peer: figure(2), Bar: ratioAtMost(1)},
	})
	want := []struct {
		what string
		bar  Bar
	}{{"a", noBar}, {"b", atMost(0)}, {"c", ratioAtMost(1)}}
	if len(rows) != len(want) {
		t.Fatalf("got %d rows, want %d: %+v", len(rows), len(want), rows)
	}
	for i, w := range want {
		if rows[i].What != w.what || rows[i].Bar != w.bar {
			t.Errorf("row %d is %s with bar %+v, want %+v", i, rows[i].What, rows[i].Bar, w)
		}
	}
}
