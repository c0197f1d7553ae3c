package terminal

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// grid prints rows in columns, as kubectl does: three spaces between them, and nothing
// after the last. Cells are made safe for a terminal.
type grid struct {
	header []string // none: no line for it
	colour bool

	gridBlock             // of the last rows
	full      []gridBlock // of those before
	widths    []int       // by column
	count     int         // of rows
}

// gridBlock holds rows, whose cells are one after the other in one text: strings of their own
// for each of 20,000 rows take longer to make than to print.
type gridBlock struct {
	text  []byte
	cells []uint32 // where each ends in text
	rows  []uint32 // where each ends in cells
}

// blockBytes is how long the text of a block is at least, but for the last one.
const blockBytes = 64 << 10

// row adds a row.
func (g *grid) row(cells ...string) {
	for _, c := range cells {
		g.cell(c)
	}
	g.endRow()
}

// cell adds a cell to the row that has not ended.
func (g *grid) cell(text string) {
	g.text = append(g.text, text...)
	g.endCell()
}

// value adds a cell that shows a value of JSON.
func (g *grid) value(v client.Value) {
	g.text = v.AppendText(g.text)
	g.endCell()
}

// endCell makes a cell of what was appended to the text since the last one.
func (g *grid) endCell() {
	start := int(end(g.cells, len(g.cells)))
	g.text = oneLineFrom(g.text, start)
	column := len(g.cells) - int(end(g.rows, len(g.rows)))
	g.cells = append(g.cells, uint32(len(g.text)))
	if column == len(g.widths) {
		g.widths = append(g.widths, 0)
	}
	g.widths[column] = max(g.widths[column], utf8.RuneCount(g.text[start:]))
}

func (g *grid) endRow() {
	g.rows = append(g.rows, uint32(len(g.cells)))
	if g.count++; len(g.text) < blockBytes {
		return
	}
	b := g.gridBlock
	g.full = append(g.full, b)
	g.gridBlock = gridBlock{ // the next will be about as large
		make([]byte, 0, len(b.text)+len(b.text)/8), make([]uint32, 0, len(b.cells)+len(b.cells)/8), make([]uint32, 0, len(b.rows)+len(b.rows)/8),
	}
}

// end is where the one before n ends, which is where n begins.
func end[N int | uint32](ends []N, n int) N {
	if n == 0 {
		return 0
	}
	return ends[n-1]
}

// print writes the grid.
func (g *grid) print(out *bufio.Writer) {
	if g.header != nil {
		heading := grid{colour: g.colour, widths: g.widths}
		heading.row(g.header...)
		heading.lines(out)
		g.widths = heading.widths
	}
	g.lines(out)
}

func (g *grid) lines(out *bufio.Writer) {
	for _, b := range append(slices.Clip(g.full), g.gridBlock) {
		for r := range b.rows {
			g.line(out, &b, int(end(b.rows, r)), int(b.rows[r]))
		}
	}
}

// line prints the cells of one row. In a grid with a header some have a colour.
func (g *grid) line(out *bufio.Writer, b *gridBlock, from, to int) {
	for i := from; i < to; i++ {
		column, c := i-from, b.text[end(b.cells, i):b.cells[i]]
		if g.colour && column < len(g.header) {
			out.WriteString(paint(string(c), styleOf(g.header[column], string(c))))
		} else {
			out.Write(c)
		}
		if i < to-1 {
			pad(out, g.widths[column]-utf8.RuneCount(c)+3)
		}
	}
	out.WriteByte('\n')
}

const spaces = "                                                                "

func pad(out *bufio.Writer, n int) {
	for n > len(spaces) {
		out.WriteString(spaces)
		n -= len(spaces)
	}
	out.WriteString(spaces[:n])
}

// width is how many characters are shown, where each takes one place.
func width(text string) int { return utf8.RuneCountInString(text) }

// oneLine takes out what would break a table, or be an order to a terminal: control
// characters, C1 included, and those that change the direction of what follows. Objects
// are written by others.
func oneLine(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.Map(harmless, text)
}

// oneLineFrom is oneLine for what text has from start on.
func oneLineFrom(text []byte, start int) []byte {
	if isPlain(text[start:]) {
		return text
	}
	return append(text[:start], bytes.Map(harmless, text[start:])...)
}

func isPlain[T string | []byte](text T) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func harmless(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
		return ' '
	}
	return r
}
