package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Print prints what came of a soak.
func (r *Result) Print(out io.Writer) {
	total := 0
	fmt.Fprintf(out, "\nseed %d, %.0f s\n\nfaults:\n", r.Seed, r.Took.Seconds())
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(out, "  %4d %s\n", r.Faults[kind], kind)
		total += r.Faults[kind]
	}
	fmt.Fprintf(out, "  %4d of %d kinds; not possible here: %v\n\n", total, len(r.Faults), r.Skipped)
	fmt.Fprintf(out, "changes made: %d\nevents checked: %d\nanswers checked: %d\nnever known: %d\ntold while API servers served no history: %d\nreaders that a restore could not be told to: %d\nsecond tier asked amid differences: %d\n410 told to watches: %d\nlists asked of the API server: %d\n",
		r.Changes, r.Counts.Events, r.Counts.Answers, r.Counts.Waiting, r.Counts.Unjudged, r.Counts.Lost, r.Counts.Amid, r.Counts.Expired, r.Lists)
	fmt.Fprintf(out, "\nviolations: %d\n", r.All)
	byRule := map[string]int{}
	for _, v := range r.Violations {
		byRule[v.Rule]++
	}
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		fmt.Fprintf(out, "  %4d shown of %s\n", byRule[rule], rule)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(out, "  seed %d: %v\n", r.Seed, v)
	}
	for _, err := range r.Troubles {
		fmt.Fprintf(out, "trouble: %v\n", err)
	}
}

// Failed says whether it found anything, or could not do what it was to do.
func (r *Result) Failed() bool { return r.All > 0 || len(r.Troubles) > 0 }
