package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// joinReports reads the figures of runs that each measured some groups of rows
// on the same data, and makes one report of them. What was measured more than
// once is as the last of them has it.
func joinReports(files []string) (*report, error) {
	var all *report
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = r
			continue
		}
		if r.Data.Pods != all.Data.Pods {
			return nil, fmt.Errorf("join figures: %s is about %d pods, the others about %d", file, r.Data.Pods, all.Data.Pods)
		}
		all.join(r)
	}
	slices.SortStableFunc(all.Rows, func(a, b Row) int { return cmp.Compare(groupOrder(a), groupOrder(b)) })
	return all, nil
}

// join adds the rows of a later run.
func (r *report) join(later *report) {
	r.Rounds = min(r.Rounds, later.Rounds)
	measured := func(row Row) bool {
		return slices.ContainsFunc(later.Rows, func(l Row) bool { return l.Group == row.Group })
	}
	before := r.Rows
	r.Rows = nil
	for _, row := range before {
		if row.Group == wholeRun || !measured(row) {
			r.Rows = append(r.Rows, row)
		}
	}
	for _, row := range later.Rows {
		if row.Group != wholeRun {
			r.Rows = append(r.Rows, row)
			continue
		}
		i := slices.IndexFunc(r.Rows, func(b Row) bool { return b.Group == wholeRun && b.What == row.What })
		if i < 0 {
			r.Rows = append(r.Rows, row)
		} else { // the worst of all runs
			r.Rows[i].Ours = worst(row.Ours.Name, slices.Concat(r.Rows[i].Ours.Samples, row.Ours.Samples))
		}
	}
}

// groupOrder is where the rows of a group are in the table.
func groupOrder(row Row) int {
	if i := slices.Index(groupNames(), row.Group); i >= 0 {
		return i
	}
	if row.Group == wholeRun {
		return len(groups)
	}
	return math.MaxInt
}
