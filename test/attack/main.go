// Command attack does to informerd all at once what has hurt it once, for minutes, while
// somebody else asks: see docs/security.md.
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

	"github.com/informerd/informerd/test/attack/attack"
	"github.com/informerd/informerd/test/attack/hostile"
	"github.com/informerd/informerd/test/e2e/harness"
)

func main() {
	if os.Getenv(hostile.Env) != "" {
		os.Exit(hostile.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends it at once
	hurt, err := run(ctx, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	case hurt:
		os.Exit(1)
	}
}

// run makes the attack that args ask for, and reports whether it hurt.
func run(ctx context.Context, args []string) (hurt bool, err error) {
	f := flag.NewFlagSet("attack", flag.ContinueOnError)
	minutes := f.Float64("minutes", 10, "how long it is attacked")
	alone := f.Duration("alone", time.Minute, "how long the user asks alone before")
	pods := f.Int("pods", 5000, "how many pods the cluster has")
	only := f.String("only", "", "make only these `ATTACKS`, separated by commas; none: none at all")
	list := f.Bool("list", false, "list the attacks")
	strict := f.Bool("strict", false, "exit with 1 if an answer takes too long under attack, too")
	nice := f.Int("nice", attack.Idle, fmt.Sprintf("by how much the attackers' process is nicer than informerd; %d: it runs when nothing else wants a processor, as if it had a machine of its own", attack.Idle))
	authorization := f.String("authorization", "rbac", "who says what users may: rbac or review")
	pprof := f.String("pprof", "", "`address` on loopback where informerd serves its profiles")
	program := f.String("informerd", filepath.Join("bin", "informerd"), "the informerd `binary`")
	dir := f.String("dir", "", "keep everything here; the cluster is used again")
	running := f.String("cluster", "", "`directory` of a devcluster that runs, to use it and leave it alone")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	if *list {
		printAttacks()
		return false, nil
	}
	opts := attack.Options{Alone: *alone, Time: time.Duration(*minutes * float64(time.Minute)), Patience: 30 * time.Second, Authorization: *authorization, Nice: *nice, Pprof: *pprof, Out: os.Stdout}
	if opts.Program, err = filepath.Abs(*program); err != nil { // it is started elsewhere
		return false, err
	}
	if *only != "" {
		opts.Only = strings.Split(*only, ",")
	}
	for _, name := range opts.Only {
		if name != "none" && !slices.Contains(hostile.Names(), name) {
			return false, fmt.Errorf("there is no attack %q: see --list", name)
		}
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "informerd-attack-"); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(*dir)) }()
	}
	if *running != "" {
		if opts.Cluster, err = harness.AttachCluster(*running); err != nil {
			return false, err
		}
	} else {
		fmt.Printf("starting a cluster with %d pods\n", *pods)
		args := append(slices.Clone(harness.Small), "--pods", fmt.Sprint(*pods))
		if opts.Cluster, err = harness.StartCluster(filepath.Join(*dir, "cluster"), args...); err != nil {
			return false, err
		}
	}
	defer func() { err = errors.Join(err, opts.Cluster.Stop()) }()
	opts.Dir = filepath.Join(*dir, "informerd")
	return attacked(ctx, opts, *strict)
}

// attacked makes the attack, and reports whether it hurt.
func attacked(ctx context.Context, opts attack.Options, strict bool) (hurt bool, err error) {
	result, err := attack.Run(ctx, opts)
	if result != nil {
		result.Print(os.Stdout)
	}
	if err != nil {
		return false, err
	}
	return len(result.Wrong()) > 0 || strict && len(result.Slow()) > 0, nil
}

func printAttacks() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTACK\tWHAT")
	for _, name := range hostile.Names() {
		fmt.Fprintf(w, "%s\t%s\n", name, hostile.Does(name))
	}
	_ = w.Flush()
}
