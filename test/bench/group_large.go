package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	l, err := newLarge(ctx, o, filepath.Join(scratch, "large"), o.pods)
	if err != nil {
		return nil, err
	}
	defer l.server.kill()
	rows, err := l.measure(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure %d pods: %w", o.pods, err)
	}
	for i := range rows {
		rows[i].Group = "large"
	}
	return newReport(o, l.data, rows), nil
}

// newLarge starts a stand-in of so many pods, and has in dir what an informerd of it needs.
func newLarge(ctx context.Context, o options, dir string, count int) (*large, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	pods := standin.NewPods(count)
	each := len(pods.AppendItem(nil, 0, 1000))
	l := &large{
		bench: &bench{options: o, scratch: dir, cluster: &cluster{}, peak: &peak{},
			data: &dataset{Pods: count, Bytes: int64(each) * int64(count), Server: "stand-in"}},
		pods: pods, config: filepath.Join(dir, "large.yaml"), file: filepath.Join(dir, "large.db"),
	}
	if err := os.WriteFile(l.config, []byte(informerdConfig+"prepare: [graph, search]\n"), 0o600); err != nil {
		return nil, err
	}
	var err error
	l.exchanges = largeExchanges()
	l.server, l.cluster.info.Kubeconfig, err = startStandIn(ctx, dir, count)
	return l, err
}

// large is one run.
type large struct {
	*bench
	pods         *standin.Pods
	config, file string
	server       *peerProcess
	questions    []question
	answers      map[string]answer // that are right, by question
	body         []byte            // of the last answer, to be read into again

	coldCPU            float64   // seconds, until all pods are there
	saving, calm       []float64 // seconds, of each event while the first save is under way, and when nothing is
	settled            float64   // anonymous bytes, with everything prepared
	peaks              []float64 // anonymous bytes, of the cold start and of each warm one
	savedSooner        bool      // all was saved and prepared before the events of saving ended
	first, again       map[string][]float64
	warmAnswer, warmed []float64         // seconds, of a warm start to an answer, and to all pods
	proven             []float64         // seconds, from a warm start until they are known to be current
	prepared           []float64         // seconds, from a warm start until graph and search are
	search, graph      []float64         // seconds, the first then
	lists              map[string]*lists // by encoding
	listBytes          int64             // of the JSON of a full list
	exchanges          []*exchange
}

func (l *large) measure(ctx context.Context) ([]Row, error) {
	l.first, l.again = map[string][]float64{}, map[string][]float64{}
	logf("what the answers are to be")
	l.questions = slices.Concat(questions, lookups(l.pods))
	var err error
	if l.answers, err = expected(l.pods, l.questions); err != nil {
		return nil, err
	}
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
	l.server.kill()
	two, err := l.measureTwice(ctx)
	if err != nil {
		return nil, err
	}
	peers, err := l.measureInformers(ctx)
	if err != nil {
		return nil, err
	}
	sql, err := l.measurePostgres(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(l.rows(), l.questionRows(sql), l.listRows(), two.rows(), peers.rows(l), sql.rows()), nil
}

// cold measures a start from nothing: the sync, the first save, graph and search, and then
// questions, relists, and changes of the configuration.
func (l *large) cold(ctx context.Context) error {
	i, err := l.startConfigured(ctx, l.config, l.file)
	if err != nil {
		return err
	}
	defer i.kill()
	stop := watchAnonymous(i.pid())
	defer stop()
	i.http.Timeout = 10 * time.Minute
	if _, err := l.waitLive(ctx, i); err != nil {
		return err
	}
	if l.coldCPU, err = cpuSeconds(i.pid()); err != nil {
		return err
	}
	logf("all pods are there; saving them, and preparing graph and search")
	if err := l.eventsBesideSaving(ctx, i); err != nil {
		return fmt.Errorf("events during the first save: %w", err)
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
	if err := l.fullLists(ctx, i); err != nil {
		return err
	}
	if _, err := settle(ctx, i.pid(), 0.1, time.Minute); err != nil {
		return err
	}
	logf("events")
	for range l.rounds {
		delays, err := l.events(ctx, i)
		if err != nil {
			return fmt.Errorf("events: %w", err)
		}
		l.calm = append(l.calm, delays...)
	}
	if err := l.ask(ctx, i); err != nil {
		return err
	}
	if err := l.exchange(ctx, i); err != nil {
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

// waitLive waits until informerd has all pods and is caught up.
func (l *large) waitLive(ctx context.Context, i *informerd) (time.Duration, error) {
	return l.wait(ctx, i, "live", func() (bool, error) {
		s, err := i.status(ctx)
		return s.State == "live" && s.Objects == l.data.Pods, err
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
	proven, err := l.waitLive(ctx, i)
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
