package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// relistShares are how many of a thousand pods change before a relist.
var relistShares = []int{1, 10, 50, 200}

// relist measures what it costs to learn what changed while the API server has
// forgotten the version of the copy: by a comparison of metadata, as informerd
// does where it is cheaper, and by a full list.
func (b *bench) relist(ctx context.Context) ([]Row, error) {
	p, err := startPeer(ctx, "relist", b.cluster.info.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if err := p.check(b.data); err != nil {
		return nil, err
	}
	pods, err := b.cluster.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	var names []types.NamespacedName
	for _, pod := range pods.Items {
		names = append(names, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	var rows []Row
	for _, share := range relistShares {
		var ours, full []relistCost
		for round := range b.rounds {
			logf("relist with %.1f %% changed, round %d of %d", float64(share)/10, round+1, b.rounds)
			changed := len(names) * share / 1000
			for how, costs := range map[string]*[]relistCost{"compared": &ours, "full": &full} {
				cost, err := b.relistOnce(ctx, p, how, names[:changed])
				if err != nil {
					return nil, err
				}
				*costs = append(*costs, cost)
			}
		}
		rows = append(rows, relistRows(share, ours, full)...)
	}
	return rows, p.stop()
}

// relistCost is what one relist took.
type relistCost struct{ wall, client, server, bytes float64 }

func (b *bench) relistOnce(ctx context.Context, p *peerProcess, how string, change []types.NamespacedName) (relistCost, error) {
	var c relistCost
	if _, err := p.order("relist", "cut"); err != nil {
		return c, err
	}
	if err := b.touch(ctx, change); err != nil {
		return c, err
	}
	if err := b.cluster.collect(ctx); err != nil {
		return c, err
	}
	before, err := b.relistUsed(p)
	if err != nil {
		return c, err
	}
	r, err := p.order("relist", how)
	if err != nil {
		return c, err
	}
	if _, err := settle(ctx, p.pid(), 0.05, 15e9); err != nil {
		return c, err
	}
	if err := b.cluster.settle(ctx); err != nil {
		return c, err
	}
	after, err := b.relistUsed(p)
	return relistCost{r.Seconds, after.client - before.client, after.server - before.server, after.bytes - before.bytes}, err
}

// touch changes pods, each a little.
func (b *bench) touch(ctx context.Context, pods []types.NamespacedName) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench/relist":%q}}}`, metav1.Now().Format("15:04:05.000000"))
	for _, pod := range pods {
		g.Go(func() error {
			_, err := b.cluster.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return g.Wait()
}

// relistUsed is what both sides have used since they were started.
func (b *bench) relistUsed(p *peerProcess) (c relistCost, err error) {
	if c.client, err = cpuSeconds(p.pid()); err != nil {
		return c, err
	}
	if c.server, err = cpuSeconds(b.cluster.serverPID()); err != nil {
		return c, err
	}
	c.bytes, err = bytesRead(p.pid())
	return c, err
}

// bytesRead is what a process has read from files and the network, as it came.
func bytesRead(pid int) (float64, error) {
	data, err := os.ReadFile(procFile(pid, "io"))
	if err != nil {
		return 0, fmt.Errorf("read bytes (this needs Linux): %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "rchar:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("read bytes: no rchar")
}

func relistRows(share int, ours, full []relistCost) []Row {
	row := func(what, unit string, figure func(relistCost) float64) Row {
		of := func(costs []relistCost) (all []float64) {
			for _, c := range costs {
				all = append(all, figure(c))
			}
			return all
		}
		return Row{
			What: fmt.Sprintf("%s of a relist, %.1f %% changed", what, float64(share)/10), Unit: unit,
			Ours: newFigure(title("cache"), of(ours)), Peer: newFigure("full list", of(full)),
		}
	}
	return []Row{
		row("API server's CPU", unitSeconds, func(c relistCost) float64 { return c.server }),
		row("CPU", unitSeconds, func(c relistCost) float64 { return c.client }),
		row("bytes read", unitBytes, func(c relistCost) float64 { return c.bytes }),
		row("wall time", unitSeconds, func(c relistCost) float64 { return c.wall }),
	}
}
