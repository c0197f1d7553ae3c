package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// relations measures questions over all kinds of objects: what is around a
// Deployment, and what is called like this, letter by letter. The same is done
// with lists of the API server, filtered here.
func (b *bench) relations(ctx context.Context) ([]Row, error) {
	i, err := b.startWatchingAll(ctx)
	if err != nil {
		return nil, err
	}
	defer i.kill()
	r := &relations{bench: b, informerd: i}
	deployments, err := b.cluster.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		r.roots = append(r.roots, d.Namespace+"/"+d.Name)
		for n := range d.Name {
			r.words = append(r.words, d.Name[:n+1])
		}
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	for round := range b.rounds {
		logf("relations, round %d of %d", round+1, b.rounds)
		if err := r.round(ctx); err != nil {
			return nil, err
		}
	}
	return r.rows(), i.stop()
}

// startWatchingAll starts an informerd that watches every resource, and waits until it has
// the pods.
func (b *bench) startWatchingAll(ctx context.Context) (*informerd, error) {
	all := *b
	all.config = filepath.Join(b.scratch, "all.yaml")
	if err := os.WriteFile(all.config, []byte("resources:\n  - match: [\"*\"]\n"), 0o600); err != nil {
		return nil, err
	}
	i, err := all.startInformerd(ctx, "")
	if err != nil {
		return nil, err
	}
	if _, err := i.waitLive(ctx, b.data.Pods); err != nil {
		i.kill()
		return nil, err
	}
	return i, nil
}

type relations struct {
	*bench
	informerd *informerd
	roots     []string // namespace/name of Deployments
	words     []string // what is typed, after each letter

	firstGraph, firstSearch float64   // seconds of the first questions
	graph, search           []load    // one each round
	list, scan              []float64 // seconds with the API server
}

// begin asks the first questions, which read everything, and checks them.
func (r *relations) begin(ctx context.Context) error {
	start := time.Now()
	var graph struct{ Nodes []struct{ Resource string } }
	if err := r.informerd.get(ctx, r.graphPath(r.roots[0]), &graph); err != nil {
		return err
	}
	r.firstGraph = time.Since(start).Seconds()
	pods := 0
	for _, n := range graph.Nodes {
		if n.Resource == "pods" {
			pods++
		}
	}
	if pods == 0 {
		return fmt.Errorf("there are no pods around Deployment %s", r.roots[0])
	}
	_, name, _ := strings.Cut(r.roots[0], "/")
	start = time.Now()
	var found struct{ Items []struct{ Name string } }
	if err := r.informerd.get(ctx, searchPath(name), &found); err != nil {
		return err
	}
	r.firstSearch = time.Since(start).Seconds()
	if len(found.Items) == 0 || found.Items[0].Name != name {
		return fmt.Errorf("Deployment %s is not found by its name: %v", name, found.Items)
	}
	return nil
}

func (r *relations) graphPath(root string) string {
	return "/v1/graph/deployments.apps/" + root + "?depth=3"
}

func searchPath(word string) string { return "/v1/search?q=" + url.QueryEscape(word) }

func (r *relations) round(ctx context.Context) error {
	for _, m := range []struct {
		loads *[]load
		asked []string
		path  func(string) string
	}{{&r.graph, r.roots, r.graphPath}, {&r.search, r.words, searchPath}} {
		if err := r.cluster.settle(ctx); err != nil {
			return err
		}
		l, err := runLoadOf(ctx, 1, m.asked, r.duration, func(ctx context.Context, buf []byte, what string) ([]byte, error) {
			return fetch(ctx, r.informerd.http, buf, r.informerd.url+m.path(what))
		})
		if err != nil {
			return err
		}
		*m.loads = append(*m.loads, l)
	}
	if !r.measures(apiServer) {
		return nil
	}
	return r.withLists(ctx)
}

// withLists answers the same questions, as far as pods go, without informerd.
func (r *relations) withLists(ctx context.Context) error {
	if err := r.cluster.settle(ctx); err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(r.roots[0], "/")
	start := time.Now()
	n, err := r.countPods(ctx, namespace, func(p *corev1.Pod) bool { return p.Labels["app"] == name })
	r.list = append(r.list, time.Since(start).Seconds())
	if err == nil && n == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return fmt.Errorf("list the pods of Deployment %s: %w", name, err)
	}
	start = time.Now()
	_, err = r.countPods(ctx, "", func(p *corev1.Pod) bool { return strings.Contains(p.Name, name) })
	r.scan = append(r.scan, time.Since(start).Seconds())
	return err
}

// countPods lists pods from the API server's watch cache and counts those wanted.
func (r *relations) countPods(ctx context.Context, namespace string, want func(*corev1.Pod) bool) (n int, err error) {
	pods, err := r.cluster.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	for i := range pods.Items {
		if want(&pods.Items[i]) {
			n++
		}
	}
	return n, nil
}

func (r *relations) rows() []Row {
	slowest := func(loads []load) Figure {
		var all []float64
		for _, l := range loads {
			all = append(all, quantile(l.took, 0.99))
		}
		return newFigure("informerd, over HTTP", all)
	}
	first := func(seconds float64) Figure { return newFigure("informerd, over HTTP", []float64{seconds}) }
	return []Row{
		{What: "graph of depth 3 around a Deployment, p99", Unit: unitSeconds, Ours: slowest(r.graph),
			Peer: newFigure("LIST of the namespace's pods, filtered", r.list), Bar: r.atMostFor(0.010)},
		{What: "search after each letter of a name, p99", Unit: unitSeconds, Ours: slowest(r.search),
			Peer: newFigure("LIST of all pods, filtered", r.scan), Bar: r.atMostFor(0.020)},
		{What: "first graph, which reads all objects", Unit: unitSeconds, Ours: first(r.firstGraph), Bar: noBar},
		{What: "first search, which reads all objects", Unit: unitSeconds, Ours: first(r.firstSearch), Bar: noBar},
	}
}
