package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/informerd/informerd/test/standin"
)

// TestLost: pods that are not counted are lost, and so are those that are not named.
func TestLost(t *testing.T) {
	pods := standin.NewPods(3)
	l := &large{bench: &bench{data: &dataset{Pods: 3}}, pods: pods}
	for name, c := range map[string]struct {
		counted, named int
		lost           float64 // -1: an error
	}{
		"none":        {3, 3, 0},
		"not counted": {1, 3, 2},
		"not named":   {3, 2, 1},
		"too many":    {4, 3, -1},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("agg") != "" {
				fmt.Fprintf(w, `{"items":[{"group":{},"values":{"count()":%d}}]}`, c.counted)
				return
			}
			fmt.Fprint(w, `{"items":[`)
			for i := range c.named {
				fmt.Fprintf(w, `%s{"metadata":{"name":%q}}`, ","[:min(i, 1)], pods.Name(i))
			}
			fmt.Fprint(w, `]}`)
		}))
		got, err := l.lost(t.Context(), &informerd{url: server.URL, http: server.Client()})
		server.Close()
		if (err != nil) != (c.lost < 0) || err == nil && got != c.lost {
			t.Errorf("%s: %v are lost (%v), want %v", name, got, err, c.lost)
		}
	}
}

func TestTwiceRows(t *testing.T) {
	rows := (&twice{pods: 2_000_000, peak: 2.9e9}).rows()
	if r := rows[0]; r.Verdict() != held || r.barText() != "≤ 3000 MB" {
		t.Errorf("%s: %s of %s", r.What, r.Verdict(), r.barText())
	}
	if r := rows[1]; r.Verdict() != held || r.barText() != "0" {
		t.Errorf("%s: %s of %s", r.What, r.Verdict(), r.barText())
	}
	for _, r := range (&twice{pods: 2_000_000, peak: 3.1e9, lost: 1}).rows()[:2] {
		if r.Verdict() != notHeld {
			t.Errorf("%s: %s", r.What, r.Verdict())
		}
	}
}
