package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readReport reads the figures of an earlier run.
func readReport(file string) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	r := &report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read figures of %s: %w", file, err)
	}
	if r.Data == nil || r.Data.Pods == 0 {
		return nil, fmt.Errorf("read figures of %s: it does not say of how many pods", file)
	}
	return r, nil
}

// grown is the group of rows that compare with an earlier run.
const grown = "growth"

// growsBy is how much more than linear growth is still called linear.
const growsBy = 1.5

// compare puts rows that compare with an earlier run in the place of those of
// another comparison.
func (r *report) compare(base *report) {
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return row.Group == grown })
	r.Rows = append(r.Rows, growth(base, r.Rows, r.Data.Pods)...)
}

// growth compares informerd's figures with those of a run with fewer pods. Its
// peer is what linear growth would have made of the earlier figure.
func growth(base *report, rows []Row, pods int) []Row {
	factor := float64(pods) / float64(base.Data.Pods)
	var all []Row
	for _, row := range rows {
		then, ok := base.find(row)
		known := slices.ContainsFunc(all, func(r Row) bool { return r.What == "growth: "+row.kind() && r.Ours.Name == row.Ours.Name })
		if !ok || known || then.Value == 0 || row.Constant || row.Unit == unitCount {
			continue
		}
		g := Row{Group: grown, What: "growth: " + row.kind(), Unit: row.Unit, Ours: row.Ours, Bar: ratioAtMost(growsBy)}
		linear := then.Value
		switch {
		case row.Unit == unitPerSecond: // each query returns as many more
			linear, g.Bar = linear/factor, ratioAtLeast(1/growsBy)
		case !strings.Contains(row.What, "per object"):
			linear *= factor
		}
		g.Peer = newFigure(fmt.Sprintf("linear from %d pods", base.Data.Pods), []float64{linear})
		all = append(all, g)
	}
	return all
}

// find is informerd's figure in the same row of r.
func (r *report) find(row Row) (Figure, bool) {
	for _, then := range r.Rows {
		if then.kind() == row.kind() && then.Ours.Name == row.Ours.Name && then.Unit == row.Unit {
			return then.Ours, true
		}
	}
	return Figure{}, false
}

// kind is what the row measures, whatever the number of pods.
func (r Row) kind() string {
	if r.Group == "query" {
		if _, rest, ok := strings.Cut(r.What, " in full"); ok {
			return "index query" + rest
		}
	}
	return r.What
}
