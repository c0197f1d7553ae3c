// Command bench measures informerd beside its peers: client-go's informers and
// the API server itself, on one machine, one cluster and the same data. Each
// subject runs in a process of its own, one at a time, and is measured from
// outside in the same way. It prints a table of figures, ratios and bars; see
// docs/performance.md.
//
//	go run ./test/bench --pods 20000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == peerCommand {
		os.Exit(runPeer(ctx, os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == standInCommand {
		os.Exit(runStandIn(os.Args[2:], os.Stdin, os.Stdout))
	}
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	pods       int
	clusters   int
	rounds     int
	groups     []string
	peers      []string
	dir        string
	json       string
	svg        string
	doc        string
	from       []string
	save       bool // the figures
	base       string
	strict     bool
	noServer   bool // a stand-in takes the place of the API server whatever the number of pods
	duration   time.Duration
	informerd  string
	devcluster string
}

func parseFlags(args []string) (options, error) {
	var o options
	var rows, peers, from string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.pods, "pods", 20000, "how many `pods` the cluster holds")
	f.IntVar(&o.clusters, "clusters", 1, "with how many `clusters` of stand-ins the pods are, each with the same number of them; more than one compares them with one that has all pods")
	f.BoolVar(&o.noServer, "stand-in", false, fmt.Sprintf("measure with a stand-in for the API server, as with %d pods and more, to see with few whether that works", standInPods))
	f.IntVar(&o.rounds, "rounds", 3, "how often each subject is measured; the table has medians")
	f.StringVar(&rows, "rows", strings.Join(groupNames(), ","), "`groups` of rows to measure")
	f.StringVar(&peers, "peers", strings.Join(allPeers, ","), "`peers` to measure beside informerd, or none")
	f.StringVar(&o.dir, "dir", "", "directory of the cluster, kept for the next run; one that runs there is used and left running (default data/bench-PODS)")
	f.StringVar(&o.json, "json", "", "`file` for the figures (default test/results/bench-PODS.json, with the groups in its name if they are not all)")
	f.StringVar(&o.svg, "svg", "", "`file` for the picture (default beside the figures)")
	f.StringVar(&o.doc, "doc", "", "Markdown `file` to write the table into, between its bench marks")
	f.StringVar(&from, "from", "", "`files` of figures to write the table and the picture of, without measuring")
	f.StringVar(&o.base, "base", "", "`file` of figures of a run with fewer pods: adds rows that show the growth since")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 if a bar is not held")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long each measurement of queries and events takes")
	f.StringVar(&o.informerd, "informerd", filepath.Join("bin", "informerd"), "the informerd `binary` to measure")
	f.StringVar(&o.devcluster, "devcluster", filepath.Join("bin", "devcluster"), "the devcluster `binary`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.pods < 1 || o.rounds < 1 || o.duration < time.Second {
		return o, errors.New("--pods and --rounds must be at least 1, --duration at least 1s")
	}
	if o.clusters < 1 || o.pods%o.clusters != 0 {
		return o, fmt.Errorf("--clusters: %d pods cannot be in %d clusters with the same number each", o.pods, o.clusters)
	}
	if o.standIn() && from == "" && (rows != strings.Join(groupNames(), ",") || o.base != "" || o.dir != "") {
		return o, fmt.Errorf("--rows, --base and --dir: with %d pods and more, and with several clusters, there is one group, of a stand-in for the API server, and nothing to compare with", standInPods)
	}
	if o.clusters > 1 && from == "" && peers != strings.Join(allPeers, ",") {
		return o, errors.New("--peers: several clusters have none")
	}
	var err, perr error
	o.groups, err = parseGroups(rows)
	o.peers, perr = parsePeers(peers)
	if from != "" {
		o.from = strings.Split(from, ",")
	}
	o.save = o.from == nil || o.json != ""
	o.setFiles()
	return o, errors.Join(err, perr)
}

// standIn says that a stand-in takes the place of the API server.
func (o options) standIn() bool { return o.noServer || o.pods >= standInPods || o.clusters > 1 }

// setFiles fills in the files that follow from others. Figures of some groups of
// rows do not replace those of all.
func (o *options) setFiles() {
	name := fmt.Sprintf("bench-%d", o.pods)
	if o.clusters > 1 {
		name += fmt.Sprintf("-%d-clusters", o.clusters)
	} else if o.standIn() && o.pods < standInPods {
		name += "-stand-in"
	}
	if o.dir == "" {
		o.dir = filepath.Join("data", name)
	}
	if len(o.groups) < len(groups) {
		name += "-" + strings.Join(o.groups, "-")
	}
	if o.json == "" && o.from != nil {
		o.json = o.from[0] // which is not written, but names the picture
	}
	if o.json == "" {
		o.json = filepath.Join("test", "results", name+".json")
	}
	if o.svg == "" {
		o.svg = strings.TrimSuffix(o.json, ".json") + ".svg"
	}
}

func parseGroups(rows string) ([]string, error) {
	groups := strings.Split(rows, ",")
	for _, g := range groups {
		if !slices.Contains(groupNames(), g) {
			return nil, fmt.Errorf("--rows: there is no group %q: known are %s", g, strings.Join(groupNames(), ", "))
		}
	}
	return groups, nil
}

// run writes the report of a run, of one now or of an earlier one.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	r, err := obtain(ctx, o)
	if err != nil {
		return err
	}
	r.print(out)
	if err := r.draw(o.svg); err != nil {
		return err
	}
	if o.doc != "" {
		if err := r.insert(o.doc); err != nil {
			return err
		}
	}
	if missed := r.missed(); o.strict && missed > 0 {
		return fmt.Errorf("%d bars are not held", missed)
	}
	return nil
}

// obtain makes the report: of earlier runs if it is told which, otherwise of one
// that it makes now, whose figures it saves.
func obtain(ctx context.Context, o options) (*report, error) {
	var base *report
	var err error
	if o.base != "" {
		if base, err = readReport(o.base); err != nil {
			return nil, err
		}
	}
	var r *report
	if o.from != nil {
		r, err = joinReports(o.from)
	} else {
		r, err = measureAll(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	if base != nil {
		r.compare(base)
	}
	if !o.save {
		return r, nil
	}
	return r, r.save(o.json)
}

// measureAll measures all that is asked for.
func measureAll(ctx context.Context, o options) (*report, error) {
	programs := []string{o.informerd, o.devcluster}
	if o.standIn() {
		programs = programs[:1]
	}
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("%w: run make build devcluster", err)
		}
	}
	if o.clusters > 1 {
		return measureFleet(ctx, o)
	}
	if o.standIn() {
		return measureLarge(ctx, o)
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return nil, err
	}
	rows, err := b.measure(ctx)
	if err := errors.Join(err, b.close()); err != nil {
		return nil, err
	}
	return newReport(o, b.data, rows), nil
}
