package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// watcherCount is how many clients watch the same pods.
	watcherCount = 1000
	// watcherBurst is how long changes are made before all watchers must have
	// them: none falls so far behind that its server gives it up.
	watcherBurst = 50 * time.Millisecond
	watcherRate  = 200 // changes a second within a burst
)

// watchers measures what it costs a server to show a change to a thousand
// clients: informerd and the API server, one after the other, with the same
// clients, through the same API.
func (b *bench) watchers(ctx context.Context) (rows []Row, err error) {
	i, c, err := b.startChanging(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		i.kill()
		err = errors.Join(err, c.close(ctx))
	}()
	subjects := []*watched{
		{name: "API server", url: b.cluster.info.Server, client: b.cluster.http, pid: b.cluster.serverPID()},
		{name: "informerd", url: i.url, client: i.http, pid: i.pid()},
	}
	for round := range b.rounds {
		for _, s := range subjects {
			logf("watchers of %s, round %d of %d", s.name, round+1, b.rounds)
			if err := s.round(ctx, b, c); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if err := c.stop(); err != nil {
		return nil, err
	}
	return watcherRows(subjects[1], subjects[0]), i.stop()
}

func watcherRows(ours, peer *watched) []Row {
	const own = "API server's own watch"
	to := fmt.Sprintf(" to %d watchers", watcherCount)
	return []Row{
		{What: "CPU of showing a change" + to, Unit: unitSeconds, Ours: newFigure("informerd", ours.cost), Peer: newFigure(own, peer.cost), Bar: noBar},
		{What: "events shown" + to, Unit: unitPerSecond, Ours: newFigure("informerd", ours.shown), Peer: newFigure(own, peer.shown), Bar: noBar},
	}
}

// watched is a server with many watches.
type watched struct {
	name   string
	url    string
	client *http.Client
	pid    int

	cost  []float64 // CPU seconds for a change beyond those with one watcher
	shown []float64 // events a second, of all watchers together
}

// round changes pods, first with one watcher and then with all of them: what a
// change costs the server anyway is not the watchers'.
func (s *watched) round(ctx context.Context, b *bench, c *churn) error {
	if s.pid == 0 {
		return errors.New("its process is unknown")
	}
	var perChange [2]float64
	for n, watchers := range []int{1, watcherCount} {
		if err := b.cluster.settle(ctx); err != nil {
			return err
		}
		cpu, changes, seconds, err := s.show(ctx, b, c, watchers)
		if err != nil {
			return err
		}
		perChange[n] = cpu / float64(changes)
		if watchers == watcherCount {
			s.shown = append(s.shown, float64(changes*watchers)/seconds)
		}
	}
	s.cost = append(s.cost, perChange[1]-perChange[0])
	return nil
}

// show makes changes for the duration of a measurement and waits, burst by
// burst, until all watchers have them.
func (s *watched) show(ctx context.Context, b *bench, c *churn, watchers int) (cpu float64, changes int, seconds float64, err error) {
	all, err := s.open(ctx, b, watchers)
	defer func() {
		for _, f := range all {
			f.stop()
		}
	}()
	if err != nil {
		return 0, 0, 0, err
	}
	before, err := settle(ctx, s.pid, 0.2, 15*time.Second)
	if err != nil {
		return 0, 0, 0, err
	}
	start := time.Now()
	for time.Since(start) < b.duration {
		r, err := c.change(watcherRate, watcherBurst)
		if err != nil {
			return 0, 0, 0, err
		}
		changes += r.Changes
		for _, f := range all {
			if err := f.await(ctx, changes); err != nil {
				return 0, 0, 0, err
			}
		}
	}
	seconds = time.Since(start).Seconds()
	after, err := cpuSeconds(s.pid)
	return after - before, changes, seconds, err
}

// open starts watches from the present version on.
func (s *watched) open(ctx context.Context, b *bench, watchers int) ([]*follower, error) {
	version, err := b.cluster.eventsFrom(ctx)
	if err != nil {
		return nil, err
	}
	streaming := *s.client
	streaming.Timeout = 0
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/pods?watch=true&resourceVersion=%s", s.url, eventNamespace, url.QueryEscape(version))
	var all []*follower
	for range watchers {
		f, err := follow(ctx, &streaming, address, nil)
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}
