package terminal

import (
	"bufio"
	"strings"
	"unicode"
	"unicode/utf8"
)

// grid prints rows in columns, as kubectl does: three spaces between them, and nothing
// after the last.
type grid struct {
	header  []string // none: no line for it
	rows    [][]string
	colour  bool
	columns []int // widths
}

func (g *grid) row(cells ...string) { g.rows = append(g.rows, cells) }

// print writes the grid. Cells are made safe for a terminal.
func (g *grid) print(out *bufio.Writer) {
	g.columns = g.columns[:0]
	if g.header != nil {
		g.measure(g.header)
	}
	for _, row := range g.rows {
		g.measure(row)
	}
	if g.header != nil {
		g.line(out, g.header, nil)
	}
	for _, row := range g.rows {
		g.line(out, row, styleOf)
	}
}

func (g *grid) measure(cells []string) {
	for i, c := range cells {
		c = oneLine(c)
		cells[i] = c
		if i == len(g.columns) {
			g.columns = append(g.columns, 0)
		}
		g.columns[i] = max(g.columns[i], width(c))
	}
}

// width is how many characters are shown, where each takes one place.
func width(text string) int { return utf8.RuneCountInString(text) }

// line prints cells; style is the colour of each.
func (g *grid) line(out *bufio.Writer, cells []string, style func(header, cell string) string) {
	for i, c := range cells {
		shown := c
		if style != nil && g.colour && i < len(g.header) {
			shown = paint(c, style(g.header[i], c))
		}
		out.WriteString(shown)
		if i < len(cells)-1 {
			pad(out, g.columns[i]-width(c)+3)
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

// oneLine takes out what would break a table, or be an order to a terminal: control
// characters, C1 included, and those that change the direction of what follows. Objects
// are written by others.
func oneLine(text string) string {
	plain := true
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' || text[i] > '~' {
			plain = false
			break
		}
	}
	if plain {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
}
