package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/test/standin"
)

// measureLarge measures one informerd with more pods than there is room for beside a real API
// server, which a stand-in serves. The bars are those of a million.
func measureLarge(ctx context.Context, o options) (_ *report, err error) {
	scratch, err := os.MkdirTemp("", "informerd-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	server, kubeconfig, err := startStandIn(ctx, scratch, o.pods)
	if err != nil {
		return nil, err
	}
	defer server.kill()
	pods := standin.NewPods(o.pods)
	each := len(pods.AppendItem(nil, 0, 1000))
	l := &large{
		bench: &bench{options: o, scratch: scratch, cluster: &cluster{info: clusterInfo{Kubeconfig: kubeconfig}}, peak: &peak{},
			data: &dataset{Pods: o.pods, Bytes: int64(each) * int64(o.pods), Server: "stand-in"}},
		pods: pods, config: filepath.Join(scratch, "large.yaml"), file: filepath.Join(scratch, "large.db"),
		answers: map[string]answer{},
	}
	if err := os.WriteFile(l.config, []byte(informerdConfig+"prepare: [graph, search]\n"), 0o600); err != nil {
		return nil, err
	}
	rows, err := l.measure(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure %d pods: %w", o.pods, err)
	}
	for i := range rows {
		rows[i].Group = "large"
	}
	return newReport(o, l.data, rows), nil
}

// large is one run.
type large struct {
	*bench
	pods         *standin.Pods
	config, file string
	answers      map[string]answer // to questions, the first time

	coldCPU            float64   // seconds, until all pods are there
	settled            float64   // anonymous bytes, with everything prepared
	peaks              []float64 // anonymous bytes, of the cold start and of each warm one
	first, again       map[string][]float64
	warmAnswer, warmed []float64 // seconds
	search, graph      []float64 // seconds, the first after a start
}

func (l *large) measure(ctx context.Context) ([]Row, error) {
	l.first, l.again = map[string][]float64{}, map[string][]float64{}
	logf("%d pods, %.1f KB of JSON each, of a stand-in: cold start", l.data.Pods, l.data.bytesPerPod()/1e3)
	if err := l.cold(ctx); err != nil {
		return nil, err
	}
	for round := range l.rounds {
		logf("warm start, round %d of %d", round+1, l.rounds)
		if err := l.warm(ctx); err != nil {
			return nil, err
		}
	}
	return l.rows(), nil
}

// cold measures a start from nothing: the sync, the first save, graph and search, and then
// questions.
func (l *large) cold(ctx context.Context) error {
	i, err := l.startConfigured(ctx, l.config, l.file)
	if err != nil {
		return err
	}
	defer i.kill()
	stop := l.watchPeak(i.pid())
	defer stop()
	i.http.Timeout = 10 * time.Minute
	if _, err := i.waitLarge(ctx, "live", func() (bool, error) {
		s, err := i.status(ctx)
		return s.State == "live" && s.Objects == l.data.Pods, err
	}); err != nil {
		return err
	}
	if l.coldCPU, err = cpuSeconds(i.pid()); err != nil {
		return err
	}
	logf("all pods are there; saving them, and preparing graph and search")
	if _, err := i.waitLarge(ctx, "saved and prepared", func() (bool, error) { return l.prepared(ctx, i) }); err != nil {
		return err
	}
	if _, err := settle(ctx, i.pid(), 0.1, time.Minute); err != nil {
		return err
	}
	if l.settled, err = statusBytes(i.pid(), "RssAnon"); err != nil {
		return err
	}
	if err := l.ask(ctx, i); err != nil {
		return err
	}
	l.peaks = append(l.peaks, stop())
	return i.stop()
}

// waitLarge is waitUntil for what takes minutes.
func (i *informerd) waitLarge(ctx context.Context, what string, done func() (bool, error)) (time.Duration, error) {
	return i.waitUntil(ctx, 20*time.Millisecond, time.Hour, what, done)
}

// prepared reports whether the pods are saved, and in graph and search.
func (l *large) prepared(ctx context.Context, i *informerd) (bool, error) {
	text, err := fetch(ctx, i.http, nil, i.url+"/metrics")
	if err != nil {
		return false, err
	}
	saved, err := metric(text, "informerd_snapshot_timestamp_seconds")
	if err != nil || saved == 0 {
		return false, err
	}
	found, err := metric(text, "informerd_search_objects")
	if err != nil || found < float64(l.data.Pods) {
		return false, err
	}
	nodes, err := metric(text, "informerd_graph_nodes")
	return nodes >= float64(l.data.Pods), err
}

// metric is the first value of a metric, 0 if there is none.
func metric(text []byte, name string) (float64, error) {
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// watchPeak looks at the anonymous memory of a process until stop, which returns the most
// there was.
func (l *large) watchPeak(pid int) (stop func() float64) {
	ended := make(chan struct{})
	var most float64
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			if now, err := statusBytes(pid, "RssAnon"); err == nil {
				most = max(most, now)
			}
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return sync.OnceValue(func() float64 {
		close(ended)
		looking.Wait()
		return most
	})
}

// repeated is how often a question is asked before what it takes counts as that of one that is
// asked again and again.
const repeated = 4

// ask asks each question for the first time, and again. Every answer must be the first one.
func (l *large) ask(ctx context.Context, i *informerd) error {
	for _, q := range questions {
		logf("question %s", q.name)
		for n := range repeated + l.rounds {
			took, err := l.askOne(ctx, i, q)
			if err != nil {
				return fmt.Errorf("question %s: %w", q.name, err)
			}
			if n == 0 {
				l.first[q.name] = append(l.first[q.name], took)
			} else if n >= repeated {
				l.again[q.name] = append(l.again[q.name], took)
			}
		}
	}
	return nil
}

func (l *large) askOne(ctx context.Context, i *informerd, q question) (seconds float64, err error) {
	params := url.Values{}
	for name, value := range q.query {
		params.Set(name, value)
	}
	start := time.Now()
	body, err := fetch(ctx, i.http, nil, i.url+"/v1/resources/pods/objects?"+params.Encode())
	took := time.Since(start).Seconds()
	if err != nil {
		return 0, err
	}
	got, err := q.read(body)
	if err != nil {
		return 0, err
	}
	if len(got) == 0 {
		return 0, fmt.Errorf("no answer in %.300s", body)
	}
	if before, ok := l.answers[q.name]; ok && !maps.Equal(before, got) {
		return 0, errors.New("the same question has another answer")
	}
	l.answers[q.name] = got
	return took, nil
}

// warm measures a start on the snapshot.
func (l *large) warm(ctx context.Context) error {
	i, err := l.startConfigured(ctx, l.config, l.file)
	if err != nil {
		return err
	}
	defer i.kill()
	stop := l.watchPeak(i.pid())
	defer stop()
	i.http.Timeout = 10 * time.Minute
	const one = 4711
	node := fmt.Sprintf("node-%05d", one%max(1, l.data.Pods/40))
	answered, err := i.waitLarge(ctx, "answering", func() (bool, error) {
		body, err := fetch(ctx, i.http, nil, i.url+"/v1/resources/pods/indexes/node/"+node+"?fields=metadata.name")
		return bytes.Contains(body, []byte(l.pods.Name(one%l.data.Pods))), err
	})
	if err != nil {
		return err
	}
	all, err := i.waitLarge(ctx, "live", func() (bool, error) {
		s, err := i.status(ctx)
		return s.State == "live" && s.Objects == l.data.Pods, err
	})
	if err != nil {
		return err
	}
	l.warmAnswer, l.warmed = append(l.warmAnswer, answered.Seconds()), append(l.warmed, all.Seconds())
	name := l.pods.Name(one % l.data.Pods)
	err = errors.Join(
		i.firstOf(ctx, &l.search, "/v1/search?q="+name, name),
		i.firstOf(ctx, &l.graph, "/v1/graph/pods/"+l.pods.Namespace(one%l.data.Pods)+"/"+name, name))
	if err != nil {
		return err
	}
	l.peaks = append(l.peaks, stop())
	return i.stop()
}

// firstOf measures how long an answer takes, in which a name must be.
func (i *informerd) firstOf(ctx context.Context, into *[]float64, path, name string) error {
	start := time.Now()
	body, err := fetch(ctx, i.http, nil, i.url+path)
	if err == nil && !bytes.Contains(body, []byte(name)) {
		err = fmt.Errorf("%s is not in %.300s", name, body)
	}
	*into = append(*into, time.Since(start).Seconds())
	return err
}

func (l *large) rows() []Row {
	pods := float64(l.data.Pods)
	million := pods / 1e6
	ours := func(samples ...float64) Figure { return newFigure("informerd", samples) }
	rows := []Row{
		{What: "CPU of a cold sync, each pod", Unit: unitSeconds, Ours: ours(l.coldCPU / pods), Bar: atMost(32e-6), Constant: true},
		{What: "anonymous memory with graph and search of everything", Unit: unitBytes, Ours: ours(l.settled), Bar: atMost(1.2e9 * million)},
		{What: "highest anonymous memory of first save, questions and warm starts", Unit: unitBytes, Ours: worst("informerd", l.peaks),
			Peer: newFigure("after the sync", []float64{l.settled}), Bar: ratioAtMost(1.3)},
		{What: "warm start to the first answer of an index", Unit: unitSeconds, Ours: ours(l.warmAnswer...), Bar: atMost(1 * million)},
		{What: "warm start to all pods", Unit: unitSeconds, Ours: ours(l.warmed...), Bar: atMost(5 * million)},
		{What: "first search after a warm start", Unit: unitSeconds, Ours: ours(l.search...), Bar: atMost(0.1)},
		{What: "first graph after a warm start", Unit: unitSeconds, Ours: ours(l.graph...), Bar: atMost(0.1)},
	}
	for _, name := range slices.Sorted(maps.Keys(l.first)) {
		what := strings.ReplaceAll(name, "-", " ")
		rows = append(rows,
			Row{What: "question without an index, first time: " + what, Unit: unitSeconds, Ours: ours(l.first[name]...), Bar: atMost(4 * million / float64(runtime.NumCPU()))},
			Row{What: "the same, asked again and again: " + what, Unit: unitSeconds, Ours: ours(l.again[name]...), Bar: atMost(0.05 * million)})
	}
	return rows
}
