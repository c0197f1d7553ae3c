package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func figure(v float64) Figure { return newFigure("informerd", []float64{v}) }

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		row  Row
		want Verdict
	}{
		"no bar":                {Row{Ours: figure(9), Peer: figure(1), Bar: noBar}, noClaim},
		"ratio below":           {Row{Ours: figure(1), Peer: figure(16), Bar: ratioAtMost(1.0 / 15)}, held},
		"ratio at the bar":      {Row{Ours: figure(3), Peer: figure(2), Bar: ratioAtMost(1.5)}, held},
		"ratio above":           {Row{Ours: figure(1), Peer: figure(14), Bar: ratioAtMost(1.0 / 15)}, notHeld},
		"throughput above":      {Row{Ours: figure(21), Peer: figure(1), Bar: ratioAtLeast(20)}, held},
		"throughput below":      {Row{Ours: figure(19), Peer: figure(1), Bar: ratioAtLeast(20)}, notHeld},
		"figure below":          {Row{Ours: figure(0.4), Bar: atMost(0.5)}, held},
		"figure above":          {Row{Ours: figure(0.6), Bar: atMost(0.5)}, notHeld},
		"rate above":            {Row{Ours: figure(301e6), Bar: atLeast(300e6)}, held},
		"rate below":            {Row{Ours: figure(299e6), Bar: atLeast(300e6)}, notHeld},
		"none allowed, none":    {Row{Ours: figure(0), Bar: atMost(0)}, held},
		"none allowed, one":     {Row{Ours: figure(1), Bar: atMost(0)}, notHeld},
		"no figure":             {Row{Peer: figure(1), Bar: ratioAtMost(1)}, notHeld},
		"no peer, at most":      {Row{Ours: figure(1), Bar: ratioAtMost(1)}, notHeld},
		"no peer, at least":     {Row{Ours: figure(1), Bar: ratioAtLeast(1)}, notHeld},
		"peer needs nothing":    {Row{Ours: figure(0), Peer: figure(0), Bar: ratioAtMost(1)}, notHeld},
		"figures do not count":  {Row{Ours: figure(0.4), Bar: atMost(0.5), Void: "too slow"}, notHeld},
		"no bar does not count": {Row{Ours: figure(0.4), Bar: noBar, Void: "too slow"}, noClaim},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.row.Verdict(); got != c.want {
				t.Errorf("Verdict() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	if f := newFigure("x", []float64{3, 1, 8}); f.Value != 3 {
		t.Errorf("median of three = %v, want 3", f.Value)
	}
	if f := newFigure("x", []float64{4, 1, 2, 3}); f.Value != 2.5 {
		t.Errorf("median of four = %v, want 2.5", f.Value)
	}
	if f := newFigure("x", nil); f.Value != 0 || f.exists() {
		t.Errorf("a figure of nothing is %v and exists: %v", f.Value, f.exists())
	}
	if f := worst("x", []float64{0, 2, 0}); f.Value != 2 {
		t.Errorf("worst = %v, want 2", f.Value)
	}
	if got := quantile([]float64{5, 1, 2, 3, 4}, 0.99); math.Abs(got-4.96) > 1e-9 {
		t.Errorf("p99 of 1 to 5 = %v, want 4.96", got)
	}
}

func TestTexts(t *testing.T) {
	for _, c := range [][2]string{
		{ratioText(1.0 / 15), "1/15"},
		{ratioText(1.0 / 4.237), "1/4.24"},
		{ratioText(1.5), "1.5 x"},
		{ratioText(1), "1 x"},
		{ratioText(20), "20 x"},
		{ratioText(math.NaN()), ""},
		{formatFigure(0.0382, unitSeconds), "38.2 ms"},
		{formatFigure(0, unitSeconds), "0 ms"},
		{formatFigure(-0.0012, unitSeconds), "-1.2 ms"},
		{formatFigure(10.456, unitSeconds), "10.46 s"},
		{formatFigure(3220, unitBytes), "3.22 KB"},
		{formatFigure(151.6e6, unitBytes), "152 MB"},
		{formatFigure(7106.4, unitPerSecond), "7106/s"},
		{formatFigure(312.4e6, unitRate), "312 MB/s"},
		{formatFigure(2, unitCount), "2"},
		{Row{Bar: ratioAtMost(1.0 / 8)}.barText(), "≤ 1/8"},
		{Row{Bar: ratioAtLeast(20)}.barText(), "≥ 20 x"},
		{Row{Bar: atMost(0.5), Unit: unitSeconds}.barText(), "≤ 500 ms"},
		{Row{Bar: atLeast(300e6), Unit: unitRate}.barText(), "≥ 300 MB/s"},
		{Row{Bar: atMost(0), Unit: unitCount}.barText(), "0"},
		{Row{Bar: noBar}.barText(), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

func testReport() *report {
	return &report{
		Rounds:  3,
		Machine: machine{CPU: "Some CPU", Cores: 2, OS: "linux", Arch: "amd64", Go: "go1.99"},
		Data:    &dataset{Pods: 10, Bytes: 76000, Server: "v1.36.3"},
		Rows: []Row{
			{What: "memory", Unit: unitBytes, Ours: newFigure("informerd", []float64{1e6}), Peer: newFigure("the other", []float64{20e6}), Bar: ratioAtMost(1.0 / 15)},
			{What: "time", Unit: unitSeconds, Ours: newFigure("informerd, snapshot written", []float64{2}), Bar: atMost(0.5)},
			{What: "rate", Unit: unitSeconds, Ours: newFigure("informerd", []float64{0.001}), Bar: atMost(0.005), Void: "it was too slow"},
		},
	}
}

func TestPrint(t *testing.T) {
	const want = `10 pods of 7.6 KB JSON; 2 cores, Some CPU, linux/amd64, go1.99, API server v1.36.3; medians of 3 rounds.

| what                    | informerd | peer      | peer's | ratio | bar      | held |
| ----------------------- | --------- | --------- | ------ | ----- | -------- | ---- |
| memory                  | 1 MB      | the other | 20 MB  | 1/20  | ≤ 1/15   | held |
| time (snapshot written) | 2.00 s    |           |        |       | ≤ 500 ms | NOT  |
| rate                    | 1 ms      |           |        |       | ≤ 5 ms   | NOT  |

1 of 3 bars are held.
rate: does not count, it was too slow.
`
	var got strings.Builder
	testReport().print(&got)
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results", "bench.json")
	if err := testReport().save(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data struct{ Pods int }
		Rows []struct {
			What    string
			Ratio   *float64
			Verdict Verdict
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if got.Data.Pods != 10 || len(got.Rows) != 3 {
		t.Fatalf("saved %s", data)
	}
	if r := got.Rows[0]; r.What != "memory" || r.Ratio == nil || *r.Ratio != 0.05 || r.Verdict != held {
		t.Errorf("first row is %+v", r)
	}
	if r := got.Rows[1]; r.Ratio != nil || r.Verdict != notHeld {
		t.Errorf("second row is %+v", r)
	}
}
