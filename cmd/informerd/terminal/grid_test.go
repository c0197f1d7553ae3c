package terminal

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestGrid: however many rows there are, each is printed as one by itself would be, under the
// widest cells of all.
func TestGrid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "a", "web", "\u00e9\u00e9", "a\tb\x1b[31m", "\u202eevil", "\xff", strings.Repeat("long ", 40), "日本語"}
	for _, rows := range []int{0, 1, 7, 5000} {
		g := grid{header: []string{"NAME", "A LONGER TITLE", "é"}}
		all := [][]string{g.header}
		for range rows {
			cells := make([]string, 1+r.IntN(4))
			for i := range cells {
				cells[i] = words[r.IntN(len(words))]
			}
			g.row(cells...)
			all = append(all, cells)
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		g.print(w)
		w.Flush()
		if want := plainGrid(all); out.String() != want {
			t.Errorf("%d rows: %d bytes, want %d; it begins with\n%.300s", rows, out.Len(), len(want), out.String())
		}
		if g.count != rows || rows == 5000 && len(g.full) < 2 {
			t.Errorf("%d of %d rows in %d blocks", g.count, rows, len(g.full))
		}
	}
}

// plainGrid is what a grid has to print.
func plainGrid(rows [][]string) string {
	var widths [4]int
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(c)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		for i, c := range row {
			out.WriteString(oneLine(c))
			if i < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(oneLine(c))+3))
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}
