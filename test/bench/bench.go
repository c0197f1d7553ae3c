package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// group is a set of rows that are measured together.
type group struct {
	name    string
	measure func(*bench, context.Context) ([]Row, error)
}

// groups are measured in this order: those that change the cluster come last.
var groups = []group{
	{"cold", (*bench).cold},
	{"warm", (*bench).warm},
	{"snapshot", (*bench).snapshotSize},
	{"query", (*bench).query},
	{"scan", (*bench).scan},
	{"relations", (*bench).relations},
	{"commands", (*bench).commands},
	{"events", (*bench).events},
	{"watchers", (*bench).watchers},
	{"relist", (*bench).relist},
	{"handlers", (*bench).handlers},
}

func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

// bench is one run.
type bench struct {
	options
	cluster *cluster
	data    *dataset
	scratch string // configuration and snapshots, removed at the end
	config  string // configuration of informerd

	// samples of cold syncs by subject; groups share them.
	samples map[string][]sample
	// saved is what the snapshot of a stopped informerd is, once there is one.
	saved *savedSnapshot
	// peak is the most memory that any informerd of the run needed.
	peak *peak
}

// newBench starts the cluster and looks at its data.
func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, samples: map[string][]sample{}, peak: &peak{}}
	var err error
	if b.scratch, err = os.MkdirTemp("", "informerd-bench-"); err != nil {
		return nil, err
	}
	if b.config, err = writeConfig(b.scratch); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.cluster, err = openCluster(ctx, o.devcluster, o.dir, o.pods); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := errors.Join(removeEventPods(ctx, b.cluster), ensureDeployments(ctx, b.cluster)); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.data, err = b.cluster.dataset(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("look at the data: %w", err), b.close())
	}
	if b.data.Pods < o.pods {
		return nil, errors.Join(fmt.Errorf("the cluster holds %d pods instead of %d", b.data.Pods, o.pods), b.close())
	}
	logf("%d pods, %.1f KB of JSON each", b.data.Pods, b.data.bytesPerPod()/1e3)
	return b, nil
}

// barPods is the number of pods that bars on times are about. With more of them
// their growth counts, see growth.go.
const barPods = 20_000

// atMostFor is the bar of a figure that grows with the number of pods.
func (b *bench) atMostFor(limit float64) Bar {
	if b.data.Pods > barPods {
		return noBar
	}
	return atMost(limit)
}

func (b *bench) close() error {
	var err error
	if b.cluster != nil {
		err = b.cluster.close()
	}
	return errors.Join(err, os.RemoveAll(b.scratch))
}

// measure runs the groups that are asked for.
func (b *bench) measure(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, g := range groups {
		if !slices.Contains(b.groups, g.name) {
			continue
		}
		start := time.Now()
		measured, err := g.measure(b, ctx)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", g.name, err)
		}
		for i := range measured {
			measured[i].Group = g.name
		}
		rows = append(rows, measured...)
		logf("%s: measured in %.0f s", g.name, time.Since(start).Seconds())
	}
	if len(b.peers) < len(allPeers) {
		rows = withoutPeers(rows)
	}
	return append(rows, b.peak.row(b.data.Pods)), nil
}

// logf reports progress.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
