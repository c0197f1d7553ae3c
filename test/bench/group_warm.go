package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// savedSnapshot is the snapshot of an informerd that was stopped.
type savedSnapshot struct {
	file     string
	bytes    int64
	rawBytes int64 // JSON of the pods in it
}

// snapshot makes a snapshot of all pods, once.
func (b *bench) snapshot(ctx context.Context) (*savedSnapshot, error) {
	if b.saved != nil {
		return b.saved, nil
	}
	logf("making a snapshot")
	s := &savedSnapshot{file: filepath.Join(b.scratch, "warm.db")}
	i, err := b.startInformerd(ctx, s.file)
	if err != nil {
		return nil, err
	}
	defer i.kill()
	if _, err := i.waitLive(ctx, b.data.Pods); err != nil {
		return nil, err
	}
	status, err := i.status(ctx)
	if err != nil {
		return nil, err
	}
	s.rawBytes = status.RawBytes
	if err := i.stop(); err != nil {
		return nil, err
	}
	info, err := os.Stat(s.file)
	if err != nil {
		return nil, err
	}
	s.bytes = info.Size()
	b.saved = s
	return s, nil
}

// warmStart is one start on a snapshot.
type warmStart struct {
	answer   float64 // seconds until the first correct answer
	live     float64 // seconds until proven caught up
	lists    int     // of replicated resources
	others   int     // of definitions, by discovery
	versions int     // asked for by reading the metadata of one object
	sample   sample
}

// warm measures a restart: from the start of the process to the first correct
// answer from an index, the requests that it took from the API server, and the
// same against what a client without a snapshot has to do, a cold sync.
func (b *bench) warm(ctx context.Context) ([]Row, error) {
	s, err := b.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var starts []warmStart
	for round := range b.rounds {
		logf("warm start, round %d of %d", round+1, b.rounds)
		w, err := b.warmStart(ctx, s.file, b.data.apps[round*7919%len(b.data.apps)])
		if err != nil {
			return nil, err
		}
		starts = append(starts, w)
	}
	if b.measures(dynamicInformer) && len(b.samples[dynamicInformer]) == 0 {
		logf("cold sync of its peer")
		if err := b.coldSync(ctx, dynamicInformer); err != nil {
			return nil, err
		}
	}
	return b.warmRows(starts), nil
}

func (b *bench) warmStart(ctx context.Context, file string, a app) (w warmStart, err error) {
	if err := b.cluster.settle(ctx); err != nil {
		return w, err
	}
	mark, err := b.cluster.auditMark()
	if err != nil {
		return w, err
	}
	i, err := b.startInformerd(ctx, file)
	if err != nil {
		return w, err
	}
	defer i.kill()
	answered, err := i.waitUntil(ctx, 2*time.Millisecond, time.Minute, "answering", func() (bool, error) {
		return i.answers(ctx, a)
	})
	if err != nil {
		return w, err
	}
	live, err := i.waitLive(ctx, b.data.Pods)
	if err != nil {
		return w, err
	}
	w.answer, w.live = answered.Seconds(), live.Seconds()
	if w.sample, err = i.measureSynced(ctx, live); err != nil {
		return w, err
	}
	for _, a := range b.data.apps {
		if _, err := i.answers(ctx, a); err != nil {
			return w, fmt.Errorf("after a warm start: %w", err)
		}
	}
	if err := i.stop(); err != nil {
		return w, err
	}
	err = b.countLists(mark, &w)
	return w, err
}

// countLists counts the lists that informerd made since mark.
func (b *bench) countLists(mark int64, w *warmStart) error {
	requests, err := b.cluster.requests(mark, informerdAgent)
	for _, r := range requests {
		switch {
		case r.isVersion():
			w.versions++
		case !r.isList():
		case r.isDefinitions():
			w.others++
		default:
			w.lists++
			logf("a warm start made a list: %s %s", r.Verb, r.RequestURI)
		}
	}
	return err
}

func (b *bench) warmRows(starts []warmStart) []Row {
	const what = "warm start to first correct index answer"
	var answers, live, lists, versions, others, cpu []float64
	for _, w := range starts {
		answers = append(answers, w.answer)
		live = append(live, w.live)
		lists = append(lists, float64(w.lists))
		versions = append(versions, float64(w.versions))
		others = append(others, float64(w.others))
		cpu = append(cpu, w.sample.CPU)
	}
	ours := newFigure("informerd", answers)
	cold := newFigure("dynamicinformer, cold sync", of(b.samples[dynamicInformer], func(s sample) float64 { return s.Wall }))
	coldCPU := newFigure(cold.Name, of(b.samples[dynamicInformer], func(s sample) float64 { return s.CPU }))
	return []Row{
		{What: what, Unit: unitSeconds, Ours: ours, Bar: b.atMostFor(0.5)},
		{What: what, Unit: unitSeconds, Ours: ours, Peer: cold, Bar: ratioAtMost(1.0 / 15)},
		{What: "LISTs of a warm start", Unit: unitCount, Ours: worst("informerd", lists), Bar: atMost(0)},
		{What: "reads of one object for etcd's version, of a warm start", Unit: unitCount, Ours: worst("informerd", versions), Bar: noBar},
		{What: "streams of CRDs and APIServices, for discovery, of a warm start", Unit: unitCount, Ours: worst("informerd", others), Bar: noBar},
		{What: "warm start to proven caught up", Unit: unitSeconds, Ours: newFigure("informerd", live), Bar: noBar},
		{What: "CPU of a warm start", Unit: unitSeconds, Ours: newFigure("informerd", cpu), Peer: coldCPU, Bar: noBar},
	}
}

// snapshotSize compares the snapshot file with the JSON that it stands for.
func (b *bench) snapshotSize(ctx context.Context) ([]Row, error) {
	s, err := b.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	one := func(name string, bytes int64) Figure { return newFigure(name, []float64{float64(bytes)}) }
	return []Row{
		{What: "snapshot file", Unit: unitBytes, Ours: one("informerd", s.bytes),
			Peer: one("JSON as listed", b.data.Bytes), Bar: ratioAtMost(1.0 / 4)},
		{What: "snapshot file", Unit: unitBytes, Ours: one("informerd", s.bytes),
			Peer: one("JSON less managedFields", s.rawBytes), Bar: noBar},
	}, nil
}
