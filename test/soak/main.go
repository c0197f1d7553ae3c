// Command soak runs informerd under faults, and says what it did wrong: see
// docs/soak.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/clock"
	"github.com/informerd/informerd/test/soak/faults"
	"github.com/informerd/informerd/test/soak/soak"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends it at once
	failed, err := run(ctx, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

// plants are the bugs that an informerd can be built with.
var plants = []string{"", "drop", "old", "ghost"}

func run(ctx context.Context, args []string) (failed bool, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	minutes := f.Float64("minutes", 10, "how long faults are made")
	seed := f.Uint64("seed", 1, "what the order of faults and changes follows from")
	list := f.Bool("list", false, "list the kinds of faults")
	only := f.String("only", "", "make only these `KINDS`, separated by commas; none: none at all")
	gap := f.Duration("gap", 0, "mean time between two faults of one hand (default 4s)")
	longest := f.Duration("longest", 0, "bound of each fault")
	plant := f.String("plant", "", "find a planted bug: drop (an event), old (an old version), ghost (a deleted object is kept)")
	program := f.String("informerd", "", "program under test; its clock does not jump (default: bin/informerd-soak, which is built)")
	dir := f.String("dir", "", "keep everything here")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	if *list {
		printKinds()
		return false, nil
	}
	if !slices.Contains(plants, *plant) {
		return false, fmt.Errorf("--plant %q: want drop, old or ghost", *plant)
	}
	opts := soak.Options{
		Time: time.Duration(*minutes * float64(time.Minute)), Seed: *seed, None: *only == "none", Gap: *gap, Longest: *longest,
		Plant: *plant, UntilFound: *plant != "", Dir: *dir, Out: os.Stdout,
	}
	if *only != "" && !opts.None {
		opts.Only = strings.Split(*only, ",")
	}
	if *program != "" {
		opts.Program, err = filepath.Abs(*program) // it is started elsewhere
	} else {
		opts.Program, opts.Clock, err = informerd(ctx, *plant)
	}
	if err != nil {
		return false, err
	}
	result, err := soak.Run(ctx, opts)
	if err != nil {
		return false, err
	}
	result.Print(os.Stdout)
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	if *plant != "" && result.All == 0 {
		return true, errors.New("the planted bug was not found")
	}
	return result.Failed() && *plant == "", nil
}

// informerd is the program under test, built here with a clock that can be set, and
// with planted bugs if there are to be some.
func informerd(ctx context.Context, plant string) (program string, clocked bool, err error) {
	root, err := harness.Root()
	if err != nil {
		return "", false, err
	}
	program, tags := filepath.Join(root, "bin", "informerd-soak"), ""
	if plant != "" {
		program, tags = filepath.Join(root, "bin", "informerd-planted"), "planted"
	}
	fmt.Println("building informerd with a clock that can be set: all of it the first time, a minute or two")
	if err := clock.Build(ctx, root, "./cmd/informerd", tags, program); err == nil || ctx.Err() != nil {
		return program, true, err
	} else if plant != "" {
		return "", false, err
	} else {
		fmt.Fprintln(os.Stderr, "soak: clocks do not jump:", err)
	}
	program = filepath.Join(root, "bin", "informerd")
	if _, err := os.Stat(program); err != nil {
		return "", false, fmt.Errorf("%w: run make build", err)
	}
	return program, false, nil
}

func printKinds() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tLASTS\tMAY LIST\tSHOWS AT\tWHAT")
	kinds := faults.Kinds()
	for _, k := range kinds {
		at := "all"
		if k.Own != nil {
			at = k.Own[0]
		}
		fmt.Fprintf(w, "%s\t%v to %v\t%t\t%s\t%s\n", k.Name, k.Least, k.Most, k.Lists, at, k.Does)
	}
	_ = w.Flush()
	fmt.Printf("%d kinds\n", len(kinds))
}
