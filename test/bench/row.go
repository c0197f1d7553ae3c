package main

import (
	"fmt"
	"math"
	"slices"
)

// Row is one line of the table: what informerd needs, what a peer needs, and
// what the bar between them is.
type Row struct {
	Group string `json:"group"`
	What  string `json:"what"`
	Unit  string `json:"unit"` // of Ours and Peer
	Ours  Figure `json:"informerd"`
	Peer  Figure `json:"peer"` // without Samples if there is none
	Bar   Bar    `json:"bar"`
	// Constant says that the figure has nothing to do with the number of pods.
	Constant bool `json:"constant,omitempty"`
	// Void says why the figures are not what the bar is about; empty if they are.
	Void string `json:"void,omitempty"`
}

// Units of figures.
const (
	unitSeconds   = "s"
	unitBytes     = "B"
	unitPerSecond = "1/s"
	unitRate      = "B/s"
	unitCount     = "count"
)

// Figure is what was measured of one subject.
type Figure struct {
	Name    string    `json:"name,omitempty"`
	Value   float64   `json:"value"`
	Samples []float64 `json:"samples,omitempty"` // one each round
}

// newFigure is the median of samples.
func newFigure(name string, samples []float64) Figure {
	return Figure{Name: name, Value: median(samples), Samples: samples}
}

// worst is the highest of samples, for what must never happen.
func worst(name string, samples []float64) Figure {
	return Figure{Name: name, Value: slices.Max(samples), Samples: samples}
}

func (f Figure) exists() bool { return len(f.Samples) > 0 }

// Bar is what a row promises: a limit of informerd's figure, or of its ratio to
// the peer's.
type Bar struct {
	Of    string  `json:"of,omitempty"` // ofRatio, ofFigure, or nothing: there is no bar
	Least bool    `json:"least,omitempty"`
	Limit float64 `json:"limit"`
}

// What a bar is a limit of.
const (
	ofRatio  = "ratio"
	ofFigure = "figure"
)

var noBar = Bar{}

func ratioAtMost(limit float64) Bar  { return Bar{Of: ofRatio, Limit: limit} }
func ratioAtLeast(limit float64) Bar { return Bar{Of: ofRatio, Least: true, Limit: limit} }
func atMost(limit float64) Bar       { return Bar{Of: ofFigure, Limit: limit} }
func atLeast(limit float64) Bar      { return Bar{Of: ofFigure, Least: true, Limit: limit} }

// Ratio is informerd's figure over the peer's; not a number if there is no peer
// or it needs nothing.
func (r Row) Ratio() float64 {
	if !r.Peer.exists() || r.Peer.Value <= 0 {
		return math.NaN()
	}
	return r.Ours.Value / r.Peer.Value
}

// Verdict says whether a bar is held.
type Verdict string

const (
	held    Verdict = "held"
	notHeld Verdict = "NOT"
	noClaim Verdict = "" // there is no bar
)

// claimed is what the bar is a limit of: informerd's figure or its ratio.
func (r Row) claimed() float64 {
	if r.Bar.Of == ofRatio {
		return r.Ratio()
	}
	return r.Ours.Value
}

// Verdict of the row. What could not be measured is not held.
func (r Row) Verdict() Verdict {
	if r.Bar == noBar {
		return noClaim
	}
	value := r.claimed()
	ok := value <= r.Bar.Limit
	if r.Bar.Least {
		ok = value >= r.Bar.Limit
	}
	if ok && r.Ours.exists() && r.Void == "" {
		return held
	}
	return notHeld
}

// barText is the bar in words.
func (r Row) barText() string {
	sign := "≤"
	if r.Bar.Least {
		sign = "≥"
	}
	switch {
	case r.Bar == noBar:
		return ""
	case r.Bar.Limit == 0:
		return "0"
	case r.Bar.Of == ofRatio:
		return sign + " " + ratioText(r.Bar.Limit)
	default:
		return sign + " " + formatFigure(r.Bar.Limit, r.Unit)
	}
}

// ratioText is a ratio as people say it: 1/15, 1.5 x.
func ratioText(ratio float64) string {
	switch {
	case math.IsNaN(ratio):
		return ""
	case ratio < 1 && ratio > 0:
		return "1/" + trimmed(1/ratio)
	default:
		return trimmed(ratio) + " x"
	}
}

// formatFigure is a figure with a unit that suits it.
func formatFigure(v float64, unit string) string {
	switch {
	case unit == unitSeconds && v != 0 && math.Abs(v) < 1e-4:
		return trimmed(v*1e6) + " us"
	case unit == unitSeconds && math.Abs(v) < 1:
		return trimmed(v*1e3) + " ms"
	case unit == unitSeconds:
		return fmt.Sprintf("%.2f s", v)
	case unit == unitBytes && math.Abs(v) >= 1e6:
		return trimmed(v/1e6) + " MB"
	case unit == unitBytes && (math.Abs(v) >= 1e3 || v == 0):
		return trimmed(v/1e3) + " KB"
	case unit == unitBytes:
		return trimmed(v) + " B"
	case unit == unitRate:
		return formatFigure(v, unitBytes) + "/s"
	case unit == unitPerSecond:
		return trimmed(v) + "/s"
	default:
		return trimmed(v)
	}
}

// trimmed has up to two places after the point, fewer for large numbers.
func trimmed(v float64) string {
	places := 2
	switch a := math.Abs(v); {
	case a >= 100:
		places = 0
	case a >= 10:
		places = 1
	}
	text := fmt.Sprintf("%.*f", places, v)
	if places > 0 {
		for text[len(text)-1] == '0' {
			text = text[:len(text)-1]
		}
		if text[len(text)-1] == '.' {
			text = text[:len(text)-1]
		}
	}
	if text == "-0" {
		return "0"
	}
	return text
}
