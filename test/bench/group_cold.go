package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// coldSubjects are measured one after the other in each round.
var coldSubjects = []string{thrownAway, typedInformer, "informerd", "informerd-snapshot", dynamicInformer, controllerRuntime, "cache", "cache-all"}

// cold measures a first sync: from a process that has nothing to one that has
// every pod, indexed.
func (b *bench) cold(ctx context.Context) ([]Row, error) {
	for round := range b.rounds {
		for _, subject := range coldSubjects {
			if !b.measures(subject) {
				continue
			}
			logf("cold sync, round %d of %d: %s", round+1, b.rounds, subject)
			if err := b.coldSync(ctx, subject); err != nil {
				return nil, err
			}
		}
	}
	if pid := b.cluster.serverPID(); pid != 0 && b.measures(apiServer) {
		if err := b.cluster.settle(ctx); err != nil {
			return nil, err
		}
		resident, err := statusBytes(pid, "VmRSS")
		if err != nil {
			return nil, err
		}
		b.samples[apiServer] = []sample{{Resident: resident}}
	}
	return b.coldRows(), nil
}

// coldSync adds one sample of a subject. A list makes so much garbage that the API server
// collects it about once a round, and the order of the subjects would decide whose sync
// pays for that.
func (b *bench) coldSync(ctx context.Context, subject string) error {
	if err := b.cluster.collect(ctx); err != nil {
		return err
	}
	var s sample
	var err error
	switch subject {
	case "informerd":
		s, err = b.coldInformerd(ctx, "")
	case "informerd-snapshot":
		s, err = b.coldInformerd(ctx, filepath.Join(b.scratch, fmt.Sprintf("cold-%d.db", len(b.samples[subject]))))
	default:
		s, err = b.coldPeer(ctx, subject)
	}
	if err != nil {
		return err
	}
	b.samples[subject] = append(b.samples[subject], s)
	return nil
}

func (b *bench) coldPeer(ctx context.Context, name string) (sample, error) {
	p, err := startPeer(ctx, name, b.cluster.info.Kubeconfig)
	if err != nil {
		return sample{}, err
	}
	defer p.kill()
	if err := p.check(b.data); err != nil {
		return sample{}, err
	}
	s, err := p.measureSynced(ctx, p.wall)
	if err != nil {
		return s, err
	}
	if p.first.Objects > 0 {
		r, err := p.order("heap")
		if err != nil {
			return s, err
		}
		s.Heap = r.Heap
	}
	return s, p.stop()
}

func (b *bench) coldInformerd(ctx context.Context, snapshot string) (sample, error) {
	i, err := b.startInformerd(ctx, snapshot)
	if err != nil {
		return sample{}, err
	}
	defer i.kill()
	wall, err := i.waitLive(ctx, b.data.Pods)
	if err != nil {
		return sample{}, err
	}
	s, err := i.measureSynced(ctx, wall)
	if err != nil {
		return s, err
	}
	for _, a := range b.data.apps {
		if _, err := i.answers(ctx, a); err != nil {
			return s, err
		}
	}
	return s, i.stop()
}

func (b *bench) coldRows() []Row {
	pods := float64(b.data.Pods)
	figure := func(subject string, f func(sample) float64) Figure {
		return newFigure(title(subject), of(b.samples[subject], f))
	}
	heap := func(s sample) float64 { return s.Heap / pods }
	peak := func(s sample) float64 { return s.Peak }
	resident := func(s sample) float64 { return s.Resident }
	cpu := func(s sample) float64 { return s.CPU }
	wall := func(s sample) float64 { return s.Wall }
	row := func(what, unit string, f func(sample) float64, ours, peer string, bar Bar) Row {
		return Row{What: what, Unit: unit, Ours: figure(ours, f), Peer: figure(peer, f), Bar: bar}
	}
	return []Row{
		row("retained heap per object", unitBytes, heap, "cache", dynamicInformer, ratioAtMost(1.0/15)),
		row("retained heap per object", unitBytes, heap, "cache", controllerRuntime, noBar),
		row("retained heap per object", unitBytes, heap, "cache", typedInformer, ratioAtMost(1.0/4)),
		row("retained heap per object, nothing dropped", unitBytes, heap, "cache-all", dynamicInformer, noBar),
		row("peak RSS of a cold sync", unitBytes, peak, "informerd", dynamicInformer, ratioAtMost(1.0/8)),
		row("peak RSS of a cold sync", unitBytes, peak, "informerd", controllerRuntime, noBar),
		row("peak RSS of a cold sync", unitBytes, peak, "informerd", typedInformer, noBar),
		row("peak RSS of a cold sync", unitBytes, peak, "informerd-snapshot", dynamicInformer, noBar),
		row("resident memory after a cold sync", unitBytes, resident, "informerd", apiServer, noBar),
		row("CPU of a cold sync", unitSeconds, cpu, "informerd", dynamicInformer, ratioAtMost(1.0/5)),
		row("CPU of a cold sync", unitSeconds, cpu, "informerd", controllerRuntime, noBar),
		row("CPU of a cold sync", unitSeconds, cpu, "informerd", typedInformer, ratioAtMost(1)),
		row("CPU of a cold sync", unitSeconds, cpu, "informerd-snapshot", dynamicInformer, noBar),
		row("CPU of a cold sync", unitSeconds, cpu, "informerd", thrownAway, noBar),
		row("wall time of a cold sync", unitSeconds, wall, "informerd", thrownAway, ratioAtMost(1.5)),
		row("wall time of a cold sync", unitSeconds, wall, "informerd", typedInformer, noBar),
		row("wall time of a cold sync", unitSeconds, wall, "informerd", dynamicInformer, noBar),
		row("wall time of a cold sync", unitSeconds, wall, "informerd", controllerRuntime, noBar),
		row("wall time of a cold sync", unitSeconds, wall, "informerd-snapshot", thrownAway, noBar),
	}
}

// title is what the table calls a subject.
func title(subject string) string {
	switch subject {
	case thrownAway:
		return "GET thrown away"
	case typedInformer:
		return "typed informer"
	case dynamicInformer, "dynamic-app":
		return "dynamicinformer"
	case apiServer:
		return "API server, with its watch cache"
	case controllerRuntime:
		return "controller-runtime, unstructured"
	case "informerd-snapshot":
		return "informerd, snapshot written"
	case "cache", "cache-all":
		return "informerd, its cache in process"
	default:
		return "informerd"
	}
}
