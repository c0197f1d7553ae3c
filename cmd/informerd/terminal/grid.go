package terminal

import (
	"bufio"
	"bytes"
	"encoding/binary"
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
	wide  bool     // not all of the text is of characters of one byte
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
	places := len(g.text) - start
	if !isPlain(g.text[start:]) {
		g.text = append(g.text[:start], bytes.Map(harmless, g.text[start:])...)
		places, g.wide = utf8.RuneCount(g.text[start:]), true
	}
	column := len(g.cells) - int(end(g.rows, len(g.rows)))
	g.cells = append(g.cells, uint32(len(g.text)))
	if column == len(g.widths) {
		g.widths = append(g.widths, 0)
	}
	g.widths[column] = max(g.widths[column], places)
}

func (g *grid) endRow() {
	g.rows = append(g.rows, uint32(len(g.cells)))
	if g.count++; len(g.text) < blockBytes {
		return
	}
	b := g.gridBlock
	g.full = append(g.full, b)
	g.gridBlock = gridBlock{ // the next will be about as large
		text: make([]byte, 0, len(b.text)+len(b.text)/8), cells: make([]uint32, 0, len(b.cells)+len(b.cells)/8), rows: make([]uint32, 0, len(b.rows)+len(b.rows)/8),
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
	line := out.AvailableBuffer()
	for i := from; i < to; i++ {
		column, c := i-from, b.text[end(b.cells, i):b.cells[i]]
		if g.colour && column < len(g.header) {
			line = append(line, paint(string(c), styleOf(g.header[column], string(c)))...)
		} else {
			line = append(line, c...)
		}
		if i < to-1 {
			places := len(c)
			if b.wide {
				places = utf8.RuneCount(c)
			}
			line = appendSpaces(line, g.widths[column]-places+3)
		}
	}
	out.Write(append(line, '\n'))
}

const spaces = "                                                                "

func appendSpaces(dst []byte, n int) []byte {
	for n > len(spaces) {
		dst = append(dst, spaces...)
		n -= len(spaces)
	}
	return append(dst, spaces[:n]...)
}

// width is how many characters are shown, where each takes one place.
func width(text string) int { return utf8.RuneCountInString(text) }

// oneLine takes out what would break a table, or be an order to a terminal: control
// characters, C1 included, and those that change the direction of what follows. Objects
// are written by others.
func oneLine(text string) string {
	return strings.Map(harmless, text)
}

// isPlain reports whether a text is of printable ASCII alone. It is read in words of eight
// bytes: in one of them, taking a space from each byte borrows where one is less, and adding one
// to each sets the high bit of what is more than a tilde.
func isPlain(text []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		w := binary.LittleEndian.Uint64(text)
		if ((w-ones*' ')|(w+ones)|w)&highs != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c > '~' {
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
