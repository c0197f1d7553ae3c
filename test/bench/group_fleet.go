package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/informerd/informerd/test/standin"
)

// measureFleet measures one informerd with many clusters beside one with a single cluster that
// has as many pods as all of them together: what it needs, and what those who ask of a cluster
// notice of others that hang, flap, go and come. The clusters are stand-ins.
func measureFleet(ctx context.Context, o options) (_ *report, err error) {
	if o.clusters < fleetLeast {
		return nil, fmt.Errorf("--clusters: at least %d, of which some are to be in trouble", fleetLeast)
	}
	scratch, err := os.MkdirTemp("", "informerd-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	each := len(standin.NewPods(o.pods).AppendItem(nil, 0, 1000))
	b := &bench{options: o, scratch: scratch, cluster: &cluster{}, peak: &peak{},
		data: &dataset{Pods: o.pods, Bytes: int64(each) * int64(o.pods), Server: "stand-in"}}
	one, err := b.fleetOf(ctx, 1)
	if err == nil {
		err = one.starts(ctx)
		one.server.kill()
	}
	if err != nil {
		return nil, fmt.Errorf("measure one cluster: %w", err)
	}
	many, err := b.fleetOf(ctx, o.clusters)
	if err == nil {
		defer many.server.kill()
		err = errors.Join(many.starts(ctx), many.trouble(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("measure %d clusters: %w", o.clusters, err)
	}
	return newReport(o, b.data, fleetRows(one, many)), nil
}

// fleet is one informerd and its clusters.
type fleet struct {
	*bench
	clusters             int
	server               *peerProcess // of one cluster more, which is not known at first
	folder, config, file string

	cpu, memory, highest, cold, warm []float64 // of each round
	calm, troubled                   []float64 // seconds of each answer
}

// fleetLeast is the number of clusters of which one can hang, flap and go, and enough be left.
const fleetLeast = 5

// Those in trouble, by number.
const (
	fleetHangs = iota
	fleetFlaps
	fleetGoes
	fleetSteady // the first that is in none
)

func fleetName(k int) string { return fmt.Sprintf("cluster-%03d", k) }

func (b *bench) fleetOf(ctx context.Context, clusters int) (*fleet, error) {
	dir := filepath.Join(b.scratch, fmt.Sprintf("of-%d", clusters))
	f := &fleet{bench: b, clusters: clusters, folder: filepath.Join(dir, "clusters"), config: filepath.Join(dir, "config.yaml"), file: filepath.Join(dir, "informerd.db")}
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return nil, err
	}
	text := informerdConfig + fmt.Sprintf("clusters: [{folder: %q}]\n", f.folder)
	if err := os.WriteFile(f.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var err error
	if f.server, err = startStandIns(ctx, b.data.Pods/clusters, clusters+1); err != nil {
		return nil, err
	}
	for k := range clusters {
		err = errors.Join(err, f.add(k))
	}
	return f, err
}

func (f *fleet) add(k int) error {
	return writeStandInKubeconfig(f.kubeconfig(k), f.server.first.Addresses[k])
}

func (f *fleet) kubeconfig(k int) string { return filepath.Join(f.folder, fleetName(k)+".yaml") }

// starts measures cold and warm starts.
func (f *fleet) starts(ctx context.Context) error {
	for round := range f.rounds {
		logf("%d clusters of %d pods, round %d of %d", f.clusters, f.data.Pods/f.clusters, round+1, f.rounds)
		if err := os.RemoveAll(f.file); err != nil {
			return err
		}
		if err := errors.Join(f.start(ctx, true), f.start(ctx, false)); err != nil {
			return err
		}
	}
	return nil
}

// start measures a cold or a warm start.
func (f *fleet) start(ctx context.Context, cold bool) error {
	i, err := f.startConfigured(ctx, f.config, f.file)
	if err != nil {
		return err
	}
	defer i.kill()
	stop := watchAnonymous(i.pid())
	defer stop()
	took, err := f.waitLive(ctx, i)
	if err != nil {
		return err
	}
	if !cold {
		f.warm = append(f.warm, took.Seconds())
		return i.stop()
	}
	f.cold = append(f.cold, took.Seconds())
	if _, err := i.waitUntil(ctx, f.look(), time.Hour, "saved", func() (bool, error) {
		text, err := fetch(ctx, i.http, nil, i.url+"/metrics")
		return len(savedPods.FindAll(text, -1)) == f.clusters, err
	}); err != nil {
		return err
	}
	cpu, err := settle(ctx, i.pid(), 0.1, 10*time.Minute)
	if err != nil {
		return err
	}
	highest := stop()
	memory, err := memoryAtRest(ctx, i.pid())
	if err != nil {
		return err
	}
	f.cpu, f.memory, f.highest = append(f.cpu, cpu), append(f.memory, memory), append(f.highest, highest)
	return i.stop()
}

// restFor is how long a process that does nothing has until what it does not need is given back:
// Go's runtime collects garbage at the latest two minutes after it did so last.
const restFor = 150 * time.Second

// memoryAtRest is the anonymous memory of a process that has been left alone.
func memoryAtRest(ctx context.Context, pid int) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(restFor):
	}
	return statusBytes(pid, "RssAnon")
}

var (
	savedPods = regexp.MustCompile(`(?m)^informerd_snapshot_timestamp_seconds\{[^}]*resource="pods"[^}]*\} [1-9]`)
	livePods  = regexp.MustCompile(`(?m)^informerd_resource_state\{[^}]*resource="pods"[^}]*state="live"[^}]*\} 1$`)
)

// waitLive waits until informerd has every pod of every cluster.
func (f *fleet) waitLive(ctx context.Context, i *informerd) (time.Duration, error) {
	each := f.data.Pods / f.clusters
	held := regexp.MustCompile(fmt.Sprintf(`(?m)^informerd_objects\{[^}]*resource="pods"[^}]*\} %s$`, regexp.QuoteMeta(metricNumber(each))))
	return i.waitUntil(ctx, f.look(), time.Hour, "live", func() (bool, error) {
		if err := f.server.died(); err != nil {
			i.kill() // there is no use in waiting
			return false, err
		}
		text, err := fetch(ctx, i.http, nil, i.url+"/metrics")
		if err != nil {
			return false, err
		}
		live, whole := len(livePods.FindAll(text, -1)), len(held.FindAll(text, -1))
		if live != f.clusters || whole != f.clusters {
			err = fmt.Errorf("%d clusters are live, and %d have all their pods", live, whole)
		}
		return err == nil, err
	})
}

// look is the time between looks at metrics: each takes a millisecond and more where there are a
// hundred clusters, which is not what is measured.
func (f *fleet) look() time.Duration {
	return max(20*time.Millisecond, time.Duration(f.data.Pods)*time.Second/2_000_000)
}

// metricNumber is a number as metrics have it.
func metricNumber(n int) string {
	if n >= 1e6 {
		return fmt.Sprintf("%ge+06", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}

// Questions come at a pace, as those of people do, so that what a question takes tells of
// others and not of the questions themselves.
const (
	fleetPace   = 200 // questions a second
	fleetChurn  = 200 // changes a second, of all clusters
	fleetFor    = 40 * time.Second
	fleetSettle = time.Minute // after a start no cluster is forgotten for as long
)

// trouble measures questions of steady clusters while nothing is wrong, and while others hang,
// flap, go and come; after which all that are to be there have all their pods.
func (f *fleet) trouble(ctx context.Context) error {
	i, err := f.startConfigured(ctx, f.config, f.file)
	if err != nil {
		return err
	}
	defer i.kill()
	if _, err := f.waitLive(ctx, i); err != nil {
		return err
	}
	if _, err := f.server.order("churn", fmt.Sprint(fleetChurn)); err != nil {
		return err
	}
	logf("questions while nothing is wrong, and then with one that hangs, one that flaps, one that goes and one that comes")
	time.Sleep(max(0, fleetSettle-time.Since(i.started)))
	if f.calm, err = f.ask(ctx, i, fleetFor); err != nil {
		return err
	}
	var wrong sync.WaitGroup
	var happened error
	wrong.Go(func() { happened = f.happen(ctx, i) })
	f.troubled, err = f.ask(ctx, i, fleetFor)
	wrong.Wait()
	if err := errors.Join(err, happened); err != nil {
		return err
	}
	_, calmed := f.server.order("calm", fmt.Sprint(fleetHangs))
	_, calm := f.server.order("calm", fmt.Sprint(fleetFlaps))
	_, whole := f.waitLive(ctx, i)
	return errors.Join(calmed, calm, whole, i.stop())
}

// happen is what goes wrong.
func (f *fleet) happen(ctx context.Context, i *informerd) error {
	_, hang := f.server.order("hang", fmt.Sprint(fleetHangs))
	_, flap := f.server.order("flap", fmt.Sprint(fleetFlaps))
	goes := os.Remove(f.kubeconfig(fleetGoes))
	comes := f.add(f.clusters)
	if err := errors.Join(hang, flap, goes, comes); err != nil {
		return err
	}
	for name, there := range map[string]bool{fleetName(fleetGoes): false, fleetName(f.clusters): true} {
		label := fmt.Appendf(nil, "cluster=%q", name)
		if _, err := i.waitUntil(ctx, 500*time.Millisecond, 2*time.Minute, "without "+fleetName(fleetGoes)+", and with "+fleetName(f.clusters), func() (bool, error) {
			text, err := fetch(ctx, i.http, nil, i.url+"/metrics")
			return bytes.Contains(text, label) == there, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for the pods of a node, of one steady cluster after the other, and returns what each
// answer took since the moment at which it was to be asked for.
func (f *fleet) ask(ctx context.Context, i *informerd, duration time.Duration) ([]float64, error) {
	var mu sync.Mutex
	var all []float64
	var wrong error
	var asked sync.WaitGroup
	tick := time.NewTicker(time.Second / fleetPace)
	defer tick.Stop()
	for n, start := 0, time.Now(); time.Since(start) < duration; n++ {
		due := <-tick.C
		k := fleetSteady + n%(f.clusters-fleetSteady)
		asked.Go(func() {
			err := f.askOne(ctx, i, k, n)
			mu.Lock()
			defer mu.Unlock()
			wrong = errors.Join(wrong, err)
			all = append(all, time.Since(due).Seconds())
		})
	}
	asked.Wait()
	return all, wrong
}

func (f *fleet) askOne(ctx context.Context, i *informerd, k, n int) error {
	each := f.data.Pods / f.clusters
	of := n * 7919 % max(1, each/standin.PodsOfNode) // which node
	q := url.Values{"cluster": {fleetName(k)}, "fields": {"metadata.name"}}
	body, err := fetch(ctx, i.http, nil, fmt.Sprintf("%s/v1/resources/pods/indexes/node/node-%05d?%s", i.url, of, q.Encode()))
	if name := standin.PodsOf(k, each).Name(of); err == nil && !bytes.Contains(body, []byte(name)) {
		err = fmt.Errorf("pod %s is not in %.300s", name, body)
	}
	return err
}

func fleetRows(one, many *fleet) []Row {
	compared := func(what, unit string, figure func(*fleet) []float64, bar Bar) Row {
		return Row{Group: "fleet", What: what, Unit: unit, Bar: bar,
			Ours: newFigure(fmt.Sprintf("informerd, %d clusters", many.clusters), figure(many)), Peer: newFigure("informerd, one cluster", figure(one))}
	}
	p99 := func(name string, took []float64) Figure {
		return Figure{Name: name, Value: quantile(took, 0.99), Samples: []float64{quantile(took, 0.99)}}
	}
	return []Row{
		compared("anonymous memory at rest", unitBytes, func(f *fleet) []float64 { return f.memory }, ratioAtMost(1.1)),
		compared("highest anonymous memory of a cold start", unitBytes, func(f *fleet) []float64 { return f.highest }, ratioAtMost(1.1)),
		compared("cold start to all pods", unitSeconds, func(f *fleet) []float64 { return f.cold }, ratioAtMost(1.1)),
		compared("CPU of it, with the first save", unitSeconds, func(f *fleet) []float64 { return f.cpu }, ratioAtMost(1.1)),
		compared("warm start to all pods", unitSeconds, func(f *fleet) []float64 { return f.warm }, ratioAtMost(1.1)),
		{Group: "fleet", What: "index query of a steady cluster, p99, while others hang, flap, go and come", Unit: unitSeconds,
			Ours: p99("informerd", many.troubled), Peer: p99("while nothing is wrong", many.calm), Bar: ratioAtMost(1.5)},
	}
}
