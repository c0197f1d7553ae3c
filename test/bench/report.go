package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// report is a whole run, as it is printed and saved.
type report struct {
	Time    time.Time `json:"time"`
	Machine machine   `json:"machine"`
	Rounds  int       `json:"rounds"`
	Data    *dataset  `json:"data"`
	Rows    []Row     `json:"rows"`
}

// machine is where the figures come from.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Go    string `json:"go"`
}

func newReport(o options, d *dataset, rows []Row) *report {
	return &report{
		Time: time.Now().UTC().Truncate(time.Second), Rounds: o.rounds, Data: d, Rows: rows,
		Machine: machine{CPU: cpuModel(), Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()},
	}
}

// cpuModel is the name of the processor, empty if it is not told.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// missed is how many bars are not held.
func (r *report) missed() int {
	n := 0
	for _, row := range r.Rows {
		if row.Verdict() == notHeld {
			n++
		}
	}
	return n
}

// print writes the table in Markdown, aligned for those who read it as text.
func (r *report) print(out io.Writer) {
	cells := [][]string{{"what", "informerd", "peer", "peer's", "ratio", "bar", "held"}}
	claims := 0
	for _, row := range r.Rows {
		cells = append(cells, row.cells())
		if row.Verdict() != noClaim {
			claims++
		}
	}
	fmt.Fprintln(out, r.conditions())
	fmt.Fprintln(out)
	printTable(out, cells)
	fmt.Fprintf(out, "\n%d of %d bars are held.\n", claims-r.missed(), claims)
	for _, row := range r.Rows {
		if row.Void != "" && row.Verdict() != noClaim {
			fmt.Fprintf(out, "%s: does not count, %s.\n", row.What, row.Void)
		}
	}
}

// conditions say what was measured on what.
func (r *report) conditions() string {
	m := r.Machine
	if m.CPU != "" {
		m.CPU = ", " + m.CPU
	}
	return fmt.Sprintf("%d pods of %.1f KB JSON; %d cores%s, %s/%s, %s, API server %s; medians of %d rounds.",
		r.Data.Pods, r.Data.bytesPerPod()/1e3, m.Cores, m.CPU, m.OS, m.Arch, m.Go, r.Data.Server, r.Rounds)
}

func (r Row) cells() []string {
	what, peer, peers := r.What, r.Peer.Name, ""
	if r.Ours.Name != "informerd" {
		what += " (" + strings.TrimPrefix(r.Ours.Name, "informerd, ") + ")"
	}
	if r.Peer.exists() {
		peers = formatFigure(r.Peer.Value, r.Unit)
	} else {
		peer = ""
	}
	return []string{what, formatFigure(r.Ours.Value, r.Unit), peer, peers, ratioText(r.Ratio()), r.barText(), string(r.Verdict())}
}

// printTable writes a Markdown table with its columns aligned.
func printTable(out io.Writer, cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	for _, row := range slices.Insert(slices.Clone(cells), 1, rule) {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + " ")
		}
		fmt.Fprintln(out, b.String()+"|")
	}
}

// save writes the report as JSON.
func (r *report) save(file string) error {
	type rowWithVerdict struct {
		Row
		Ratio   *float64 `json:"ratio,omitempty"`
		Verdict Verdict  `json:"verdict,omitempty"`
	}
	full := struct {
		*report
		Rows []rowWithVerdict `json:"rows"`
	}{report: r}
	for _, row := range r.Rows {
		v := rowWithVerdict{Row: row, Verdict: row.Verdict()}
		if ratio := row.Ratio(); ratio == ratio { // a NaN is no JSON
			v.Ratio = &ratio
		}
		full.Rows = append(full.Rows, v)
	}
	data, err := json.MarshalIndent(full, "", "  ")
	if err != nil {
		return fmt.Errorf("save figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("save figures: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save figures: %w", err)
	}
	logf("figures saved in %s", file)
	return nil
}
