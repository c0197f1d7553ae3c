package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// draw writes the rows that have a bar as a picture: how much of what its bar
// allows each of them needs. The same report always gives the same bytes.
func (r *report) draw(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	if err := os.WriteFile(file, r.picture(), 0o644); err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	logf("picture saved in %s", file)
	return nil
}

// Measures of the picture, in pixels.
const (
	pictureMargin = 16
	pictureHead   = 78 // above the first row
	pictureRow    = 26
	glyph         = 6.7 // width of a letter, on the wide side
	gaugeWidth    = 240
	// gaugeMost is the share of the bar at which a gauge ends.
	gaugeMost = 1.5
)

// pictureStyle has the colours of both schemes; the picture follows the page it
// is on.
const pictureStyle = `
text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #59636e }
.number { text-anchor: end }
.track { fill: #eaeef2 }
.held { fill: #2da44e }
.missed { fill: #cf222e }
.bar { stroke: #1f2328; stroke-width: 1.5 }
.paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .faint { fill: #9198a1 }
  .track { fill: #2a313c }
  .held { fill: #3fb950 }
  .missed { fill: #f85149 }
  .bar { stroke: #e6edf3 }
  .paper { fill: #0d1117 }
}
`

func (r *report) picture() []byte {
	var rows []Row
	for _, row := range r.Rows {
		if row.Verdict() != noClaim {
			rows = append(rows, row)
		}
	}
	p := newPicture(rows)
	height := pictureHead + pictureRow*len(rows) + pictureMargin
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", p.width, height)
	fmt.Fprintf(&p.out, "<title>informerd beside its peers, on %d pods</title>\n<style>%s</style>\n", r.Data.Pods, pictureStyle)
	fmt.Fprintf(&p.out, `<rect class="paper" width="%d" height="%d" rx="6"/>`+"\n", p.width, height)
	p.text(pictureMargin, 28, "title", fmt.Sprintf("informerd on %d pods: how much of what its bars allow it needs", r.Data.Pods))
	p.text(pictureMargin, 46, "faint", r.conditions())
	p.text(p.figure, pictureHead-14, "number faint", "informerd")
	p.text(p.peer, pictureHead-14, "faint", "peer")
	for i, row := range rows {
		p.row(pictureHead+i*pictureRow, row)
	}
	p.limit(pictureHead-10, len(rows))
	p.out.WriteString("</svg>\n")
	return p.out.Bytes()
}

// picture is an SVG that is being written.
type picture struct {
	out bytes.Buffer
	// where columns end: what, informerd's figure, the peer, the bar
	figure, peer, bar, gauge, width int
}

// newPicture makes the columns as wide as their texts.
func newPicture(rows []Row) *picture {
	widest := func(least int, text func([]string) string) int {
		n := least
		for _, row := range rows {
			n = max(n, utf8.RuneCountInString(text(row.cells())))
		}
		return int(math.Ceil(float64(n) * glyph))
	}
	p := &picture{}
	p.figure = pictureMargin + widest(10, func(c []string) string { return c[0] }) + widest(9, func(c []string) string { return c[1] }) + 8
	p.peer = p.figure + 24
	p.bar = p.peer + widest(10, peerText) + widest(8, func(c []string) string { return c[5] }) + 8
	p.gauge = p.bar + 16
	p.width = p.gauge + gaugeWidth + pictureMargin
	return p
}

// peerText is the peer and its figure in one.
func peerText(cells []string) string {
	if cells[2] == "" {
		return ""
	}
	return cells[3] + " " + cells[2]
}

func (p *picture) row(y int, row Row) {
	cells := row.cells()
	base := y + 12
	p.text(pictureMargin, base, "", cells[0])
	p.text(p.figure, base, "number", cells[1])
	p.text(p.peer, base, "faint", peerText(cells))
	p.text(p.bar, base, "number faint", cells[5])
	class := "held"
	if row.Verdict() != held {
		class = "missed"
	}
	fmt.Fprintf(&p.out, `<rect class="track" x="%d" y="%d" width="%d" height="14" rx="2"/>`+"\n", p.gauge, y+1, gaugeWidth)
	fmt.Fprintf(&p.out, `<rect class="%s" x="%d" y="%d" width="%.1f" height="14" rx="2"/>`+"\n", class, p.gauge, y+1, gaugeLength(row.used()))
}

// limit marks the bars of all rows.
func (p *picture) limit(y, rows int) {
	x := float64(p.gauge) + gaugeLength(1)
	fmt.Fprintf(&p.out, `<line class="bar" x1="%.1f" x2="%[1]f" y1="%d" y2="%d"/>`+"\n", x, y, y+10+rows*pictureRow)
	p.text(int(x)-12, y-4, "faint", "bar")
}

func (p *picture) text(x, y int, class, text string) {
	fmt.Fprintf(&p.out, `<text x="%d" y="%d" class="%s">`, x, y, class)
	_ = xml.EscapeText(&p.out, []byte(text)) // a buffer takes everything
	p.out.WriteString("</text>\n")
}

// gaugeLength is the length of a share of the bar, cut where gauges end. What
// needs next to nothing can still be seen.
func gaugeLength(used float64) float64 {
	return gaugeWidth * max(0.01, min(used, gaugeMost)) / gaugeMost
}

// used is the share that the row needs of what its bar allows: at most 1 if the
// bar is held. Where nothing is allowed, nothing is 0 and anything is too much.
func (r Row) used() float64 {
	value, limit := r.claimed(), r.Bar.Limit
	if r.Bar.Least {
		value, limit = limit, value
	}
	switch {
	case value == 0:
		return 0
	case math.IsNaN(value) || math.IsNaN(limit) || limit <= 0:
		return math.Inf(1)
	default:
		return value / limit
	}
}
