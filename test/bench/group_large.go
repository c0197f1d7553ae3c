package main

import (
	"bytes"
	"context"
	"encoding/json"
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

	corev1 "k8s.io/api/core/v1"

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
	logf("what the answers are to be")
	pods := standin.NewPods(o.pods)
	each := len(pods.AppendItem(nil, 0, 1000))
	l := &large{
		bench: &bench{options: o, scratch: scratch, cluster: &cluster{info: clusterInfo{Kubeconfig: kubeconfig}}, peak: &peak{},
			data: &dataset{Pods: o.pods, Bytes: int64(each) * int64(o.pods), Server: "stand-in"}},
		pods: pods, config: filepath.Join(scratch, "large.yaml"), file: filepath.Join(scratch, "large.db"),
		server: server,
	}
	if l.answers, err = expected(pods); err != nil {
		return nil, err
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
	server       *peerProcess
	answers      map[string]answer // that are right, by question

	coldCPU            float64   // seconds, until all pods are there
	saving, calm       []float64 // seconds, of each event while the first save is under way, and when nothing is
	settled            float64   // anonymous bytes, with everything prepared
	peaks              []float64 // anonymous bytes, of the cold start and of each warm one
	savedSooner        bool      // all was saved and prepared before the events of saving ended
	first, again       map[string][]float64
	warmAnswer, warmed []float64 // seconds, of a warm start to an answer, and to all pods
	proven             []float64 // seconds, from a warm start until they are known to be current
	prepared           []float64 // seconds, from a warm start until graph and search are
	search, graph      []float64 // seconds, the first then
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
	stop := watchAnonymous(i.pid())
	defer stop()
	i.http.Timeout = 10 * time.Minute
	if _, err := l.wait(ctx, i, "live", func() (bool, error) {
		s, err := i.status(ctx)
		return s.State == "live" && s.Objects == l.data.Pods, err
	}); err != nil {
		return err
	}
	if l.coldCPU, err = cpuSeconds(i.pid()); err != nil {
		return err
	}
	logf("all pods are there; saving them, and preparing graph and search")
	if l.saving, err = l.events(ctx, i); err != nil {
		return fmt.Errorf("events during the first save: %w", err)
	}
	if l.savedSooner, err = l.isPrepared(ctx, i); err != nil {
		return err
	}
	if _, err := l.wait(ctx, i, "saved and prepared", func() (bool, error) { return l.isPrepared(ctx, i) }); err != nil {
		return err
	}
	if _, err := settle(ctx, i.pid(), 0.1, 10*time.Minute); err != nil {
		return err
	}
	if l.settled, err = memoryAtRest(ctx, i.pid()); err != nil {
		return err
	}
	logf("events")
	if l.calm, err = l.events(ctx, i); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := l.ask(ctx, i); err != nil {
		return err
	}
	return l.end(i, stop)
}

// end stops informerd and notes the most memory that it had.
func (l *large) end(i *informerd, peak func() float64) error {
	most := peak()
	if most == 0 {
		return errors.New("its memory could not be read")
	}
	l.peaks = append(l.peaks, most)
	return i.stop()
}

// wait is waitUntil for what takes minutes.
func (l *large) wait(ctx context.Context, i *informerd, what string, done func() (bool, error)) (time.Duration, error) {
	return i.waitUntil(ctx, 20*time.Millisecond, time.Hour, what, func() (bool, error) {
		if err := l.server.died(); err != nil {
			i.kill() // there is no use in waiting
			return false, err
		}
		return done()
	})
}

// isPrepared reports whether the pods are saved, and in graph and search.
func (l *large) isPrepared(ctx context.Context, i *informerd) (bool, error) {
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

// watchAnonymous looks at the anonymous memory of a process until stop, which returns the most
// there was.
func watchAnonymous(pid int) (stop func() float64) {
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
const repeated = 5

// expected are the answers to questions. Pods of a set differ in nothing but what the question
// of the filter is about.
func expected(pods *standin.Pods) (map[string]answer, error) {
	all := map[string]answer{}
	for _, q := range questions {
		all[q.name] = answer{}
	}
	for i := range pods.Count {
		if strings.HasSuffix(pods.IP(i), ".77") {
			all["filter"][pods.Namespace(i)+"/"+pods.Name(i)] = 1
		}
	}
	for i := 0; i < pods.Count; i += standin.PodsOfSet {
		var pod corev1.Pod
		if err := json.Unmarshal(pods.Append(nil, i, 1), &pod); err != nil {
			return nil, err
		}
		of := float64(min(standin.PodsOfSet, pods.Count-i))
		for _, q := range questions {
			if q.name == "filter" {
				continue
			}
			one := answer{}
			q.add(one, &pod)
			for what, value := range one {
				all[q.name][what] += of * value
			}
		}
	}
	return all, nil
}

// ask asks each question for the first time, and again.
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
	if want := l.answers[q.name]; len(want) == 0 || !maps.Equal(want, got) {
		return 0, fmt.Errorf("the answer has %d parts and is not right, of %d: %.300s", len(got), len(want), body)
	}
	return took, nil
}

// warm measures a start on the snapshot.
func (l *large) warm(ctx context.Context) error {
	i, err := l.startConfigured(ctx, l.config, l.file)
	if err != nil {
		return err
	}
	defer i.kill()
	stop := watchAnonymous(i.pid())
	defer stop()
	i.http.Timeout = 10 * time.Minute
	const one = 4711
	node := fmt.Sprintf("node-%05d", one%max(1, l.data.Pods/40))
	answered, err := l.wait(ctx, i, "answering", func() (bool, error) {
		body, err := fetch(ctx, i.http, nil, i.url+"/v1/resources/pods/indexes/node/"+node+"?fields=metadata.name")
		return bytes.Contains(body, []byte(l.pods.Name(one%l.data.Pods))), err
	})
	if err != nil {
		return err
	}
	all, err := l.wait(ctx, i, "warm", func() (bool, error) {
		s, err := i.status(ctx)
		return (s.State == "warm" || s.State == "live") && s.Objects == l.data.Pods, err
	})
	if err != nil {
		return err
	}
	proven, err := l.wait(ctx, i, "live", func() (bool, error) {
		s, err := i.status(ctx)
		return s.State == "live" && s.Objects == l.data.Pods, err
	})
	if err != nil {
		return err
	}
	if _, err := l.wait(ctx, i, "prepared", func() (bool, error) { return l.isPrepared(ctx, i) }); err != nil {
		return err
	}
	// The graph counts what pods name, too, so that it seems to have all of them too soon.
	if _, err := settle(ctx, i.pid(), 0.1, 10*time.Minute); err != nil {
		return err
	}
	prepared := time.Since(i.started)
	l.warmAnswer, l.warmed = append(l.warmAnswer, answered.Seconds()), append(l.warmed, all.Seconds())
	l.proven, l.prepared = append(l.proven, proven.Seconds()), append(l.prepared, prepared.Seconds())
	name := l.pods.Name(one % l.data.Pods)
	err = errors.Join(
		i.firstOf(ctx, &l.search, "/v1/search?q="+name, name),
		i.firstOf(ctx, &l.graph, "/v1/graph/pods/"+l.pods.Namespace(one%l.data.Pods)+"/"+name, name))
	if err != nil {
		return err
	}
	return l.end(i, stop)
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
	const saving = 1 // of the rows
	rows := []Row{
		{What: "CPU of a cold sync, each pod", Unit: unitSeconds, Ours: ours(l.coldCPU / pods), Bar: atMost(32e-6), Constant: true},
		{What: fmt.Sprintf("event on a watch after a bare watch, p99 at %d events/s, while first save, graph and search are made", eventRate), Unit: unitSeconds, Ours: ours(quantile(l.saving, 0.99)), Bar: atMost(0.005), Constant: true},
		{What: "anonymous memory with graph and search of everything, at rest", Unit: unitBytes, Ours: ours(l.settled), Bar: atMost(1.2e9 * million)},
		{What: "highest anonymous memory, of sync, first save, questions and warm starts", Unit: unitBytes, Ours: worst("informerd", l.peaks), Bar: atMost(1.3 * 1.2e9 * million)},
		{What: "warm start to the first answer of an index", Unit: unitSeconds, Ours: ours(l.warmAnswer...), Bar: atMost(1 * million)},
		{What: "warm start to all pods", Unit: unitSeconds, Ours: ours(l.warmed...), Bar: atMost(5 * million)},
		{What: "warm start until they are known to be current", Unit: unitSeconds, Ours: ours(l.proven...)},
		{What: "warm start until graph and search are prepared", Unit: unitSeconds, Ours: ours(l.prepared...), Bar: noBar},
		{What: fmt.Sprintf("event on a watch after a bare watch, p99 at %d events/s", eventRate), Unit: unitSeconds, Ours: ours(quantile(l.calm, 0.99)), Bar: atMost(0.005), Constant: true},
		{What: "first search then", Unit: unitSeconds, Ours: ours(l.search...), Bar: atMost(0.1), Constant: true},
		{What: "first graph then", Unit: unitSeconds, Ours: ours(l.graph...), Bar: atMost(0.1), Constant: true},
	}
	if l.savedSooner {
		rows[saving].Void = "they were made before the events ended"
	}
	for _, name := range slices.Sorted(maps.Keys(l.first)) {
		what := strings.ReplaceAll(name, "-", " ")
		rows = append(rows,
			Row{What: "question without an index, first time: " + what, Unit: unitSeconds, Ours: ours(l.first[name]...), Bar: atMost(4 * million / float64(runtime.NumCPU()))},
			Row{What: "the same, asked again and again: " + what, Unit: unitSeconds, Ours: ours(l.again[name]...), Bar: atMost(0.05 * million)})
	}
	return rows
}
