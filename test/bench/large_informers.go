package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// informersShare is which part of the pods client-go's informers are measured with: of all of
// them the dynamic one would need fifty gigabytes.
const informersShare = 10

// clientInformers are what client-go's informers needed of a stand-in of their own.
type clientInformers struct {
	pods    int
	samples map[string][]sample // by peer
}

// measureInformers runs the informers that are asked for, one at a time.
func (l *large) measureInformers(ctx context.Context) (*clientInformers, error) {
	f := &clientInformers{pods: max(1, l.data.Pods/informersShare), samples: map[string][]sample{}}
	if !l.measures(typedInformer) && !l.measures(dynamicInformer) {
		return f, nil
	}
	dir := filepath.Join(l.scratch, "informers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	server, kubeconfig, err := startStandIn(ctx, dir, f.pods)
	if err != nil {
		return nil, err
	}
	defer server.kill()
	b := &bench{options: l.options, cluster: &cluster{info: clusterInfo{Kubeconfig: kubeconfig}}, data: &dataset{Pods: f.pods}}
	for round := range l.rounds {
		for _, peer := range []string{typedInformer, dynamicInformer} {
			if !l.measures(peer) {
				continue
			}
			logf("%s of %d pods, round %d of %d", title(peer), f.pods, round+1, l.rounds)
			s, err := b.coldPeer(ctx, peer)
			if err != nil {
				return nil, fmt.Errorf("%s of %d pods: %w", title(peer), f.pods, err)
			}
			f.samples[peer] = append(f.samples[peer], s)
		}
	}
	return f, nil
}

// name is what the table calls a peer. A stand-in has no protobuf, which is how the typed one
// reads an API server.
func (f *clientInformers) name(peer string) string {
	name := title(peer)
	if peer == typedInformer {
		name += " over JSON"
	}
	return fmt.Sprintf("%s, %d pods", name, f.pods)
}

// rows compare them with informerd, each pod with each pod.
func (f *clientInformers) rows(l *large) []Row {
	pods := float64(l.data.Pods)
	compared := func(what, unit string, ours []float64, theirs func(sample) float64) []Row {
		var rows []Row
		for _, peer := range []string{dynamicInformer, typedInformer} {
			samples := f.samples[peer]
			if len(samples) == 0 {
				continue
			}
			each := of(samples, func(s sample) float64 { return theirs(s) / float64(f.pods) })
			rows = append(rows, Row{What: what, Unit: unit, Ours: newFigure("informerd", ours), Peer: newFigure(f.name(peer), each), Constant: true})
		}
		return rows
	}
	rows := compared("CPU of a cold sync, each pod", unitSeconds, []float64{l.coldCPU / pods}, func(s sample) float64 { return s.CPU })
	rows = append(rows, compared("memory of a pod, at rest; of peers their heap", unitBytes, []float64{l.settled / pods}, func(s sample) float64 { return s.Heap })...)
	highest := worst("informerd", l.peaks).Value / pods
	return append(rows, compared("highest memory of a pod; of peers that of a cold sync", unitBytes, []float64{highest}, func(s sample) float64 { return s.Peak })...)
}
