package terminal

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
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

// TestIsPlain: in words as byte by byte, wherever the byte is that makes the difference.
func TestIsPlain(t *testing.T) {
	for length := range 20 {
		for at := range max(length, 1) {
			for c := range 256 {
				text := bytes.Repeat([]byte{' '}, length)
				if length > 0 {
					text[at] = byte(c)
				}
				if got, want := isPlain(text), length == 0 || c >= ' ' && c <= '~'; got != want {
					t.Fatalf("%q: %v", text, got)
				}
			}
		}
	}
}

// TestRowsInAnyOrder: a row is the same whatever order its members come in, which are read as they
// come.
func TestRowsInAnyOrder(t *testing.T) {
	columns := `[{"resource":"pods","namespaced":true,"columns":[{"name":"Name","format":"name","priority":0},{"name":"Node","priority":1},{"name":"Age","priority":0}]}]`
	const resource, object, cells = `"resource":"pods"`, `"object":{"metadata":{"labels":{"b":"2","a":"1"},"namespace":"shop"}}`, `"cells":["web","\u003cnone\u003e","5\u0009m"]`
	for _, row := range [][]string{{resource, object, cells}, {resource, cells, object}, {object, cells, resource}, {cells, resource, object}, {`"more":[{"cells":[]}]`, cells, object, resource}} {
		g := &getCommand{selection: everywhere(), output: output{name: "wide"}, showLabels: true}
		a := tableAnswer{tablePrinter: &tablePrinter{getCommand: g}}
		for name, value := range map[string]string{"metadata": `{"resources":[{"resource":"pods","kind":"Pod"}]}`, "columns": columns} {
			if err := a.member(name, client.NewValue([]byte(value))); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.tables) == 0 { // metadata may have come after columns
			t.Fatal("there are no tables")
		}
		if err := a.item(client.NewValue([]byte("{" + strings.Join(row, ",") + "}"))); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		a.tables[0].rows.print(w)
		w.Flush()
		if got, want := out.String(), "shop   web   <none>   5 m   a=1,b=2\n"; got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
	a := tableAnswer{tablePrinter: &tablePrinter{getCommand: &getCommand{selection: everywhere()}}}
	if err := a.member("columns", client.NewValue([]byte(columns))); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{`{"resource":"pods","object":{}}`: "without cells", `{"resource":"nodes","object":{},"cells":[]}`: "nodes"} {
		if err := a.item(client.NewValue([]byte(row))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", row, err, want)
		}
	}
}
