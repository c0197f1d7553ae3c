package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// eventRate is how many changes are made a second.
const eventRate = 500

// events measures how long after a bare watch on the API server a change is seen
// on informerd's watch and in its answers. The same is measured of a relay, which only
// passes on what it reads: that much of it is the machine. A second bare watch, read by
// the same process as the first, shows how exact the measurement is.
func (b *bench) events(ctx context.Context) (rows []Row, err error) {
	i, c, err := b.startChanging(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		i.kill()
		err = errors.Join(err, c.close(ctx))
	}()
	all, err := b.eventRounds(ctx, c, "informerd", eventsOf(i))
	if err != nil {
		return nil, err
	}
	if all.judged, err = b.judgedEvents(ctx, c, i); err != nil {
		return nil, err
	}
	if err := i.stop(); err != nil {
		return nil, err
	}
	relay, err := startPeer(ctx, "relay", b.cluster.info.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer relay.kill()
	relayed, err := b.eventRounds(ctx, c, "a relay", eventSource{base: relay.first.Address + eventsPath, http: b.cluster.http})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(relay.stop(), c.stop()); err != nil {
		return nil, err
	}
	all.relay = relayed.watch
	return all.rows(), nil
}

// judgedEvents are the delays while somebody watches the health of everything, which is kept
// up to date with each change.
func (b *bench) judgedEvents(ctx context.Context, c *churn, i *informerd) ([]float64, error) {
	from := eventsOf(i)
	health, err := follow(ctx, from.http, i.url+"/v1/health?watch=true", nil)
	if err != nil {
		return nil, err
	}
	defer health.stop()
	judged, err := b.eventRounds(ctx, c, "informerd, its health watched", from)
	if err != nil {
		return nil, err
	}
	select {
	case <-health.ended:
		return nil, fmt.Errorf("the watch of health ended: %w", cmp.Or(health.err, io.EOF))
	default:
		return judged.watch, nil
	}
}

// eventsPath is the watch of the pods that change, at the API server.
const eventsPath = "/api/v1/namespaces/" + eventNamespace + "/pods?watch=true"

// eventSource is where changes are watched.
type eventSource struct {
	base string // the URL of the watch, but for the version it begins at
	http *http.Client
	// informerd is asked for some of the changed pods, too; nil: nobody is.
	informerd *informerd
}

func eventsOf(i *informerd) eventSource {
	streaming := *i.http
	streaming.Timeout = 0
	return eventSource{i.url + "/v1/resources/pods/objects?watch=true&namespace=" + eventNamespace, &streaming, i}
}

func (b *bench) eventRounds(ctx context.Context, c *churn, name string, from eventSource) (delays, error) {
	var all delays
	for round := range b.rounds {
		logf("events of %s, round %d of %d", name, round+1, b.rounds)
		// Its collector takes every core that nobody else wants at that moment, here
		// informerd's too: a round with one measures the kernel's scheduler.
		if err := b.cluster.collect(ctx); err != nil {
			return all, err
		}
		d, err := b.eventRound(ctx, c, from)
		if errors.Is(err, errWatchEnded) {
			logf("once more: %v", err)
			d, err = b.eventRound(ctx, c, from)
		}
		if err != nil {
			return all, fmt.Errorf("events of %s: %w", name, err)
		}
		all.add(d)
	}
	return all, nil
}

// eventRound changes pods for a while and looks at them in all ways at once.
func (b *bench) eventRound(ctx context.Context, c *churn, from eventSource) (delays, error) {
	version, err := b.cluster.eventsFrom(ctx)
	if err != nil {
		return delays{}, err
	}
	since := "&resourceVersion=" + url.QueryEscape(version)
	server := b.cluster.info.Server + eventsPath + since

	v := &visits{informerd: from.informerd}
	bare, err := follow(ctx, b.cluster.http, server, func(n int, at time.Time, line []byte) { v.visit(ctx, n, at, line) })
	if err != nil {
		return delays{}, err
	}
	defer bare.stop()
	second, err := follow(ctx, b.cluster.http, server, nil)
	if err != nil {
		return delays{}, err
	}
	defer second.stop()
	watch, err := follow(ctx, from.http, from.base+since, nil)
	if err != nil {
		return delays{}, err
	}
	defer watch.stop()

	made, err := c.change(eventRate, b.duration)
	if err != nil {
		return delays{}, err
	}
	for name, f := range map[string]*follower{"a bare watch": bare, "a second bare watch": second, "the watch behind them": watch} {
		if err := f.await(ctx, made.Changes); err != nil {
			return delays{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	seen, err := v.wait()
	if err != nil {
		return delays{}, err
	}
	return delays{
		watch: behind(watch, bare), second: behind(second, bare), query: seen,
		rate: []float64{float64(made.Changes) / made.Seconds},
	}, nil
}

// errWatchEnded is how the API server treats a watch that does not keep up, on a
// machine with too much else to do.
var errWatchEnded = errors.New("the watch ended before its time")

// await waits until n changes have arrived.
func (f *follower) await(ctx context.Context, n int) error {
	deadline := time.After(30 * time.Second)
	for f.count() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.ended:
			return fmt.Errorf("%w, after %d of %d changes: %w", errWatchEnded, f.count(), n, cmp.Or(f.err, io.EOF))
		case <-deadline:
			return fmt.Errorf("it showed %d of %d changes", f.count(), n)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// behind is how many seconds later a saw each change than b, less than 0 if it
// was earlier.
func behind(a, b *follower) []float64 {
	a.stop()
	b.stop()
	var all []float64
	for n, at := range a.arrived {
		all = append(all, at.Sub(b.arrived[n]).Seconds())
	}
	return all
}

// visitEvery is how many changes there are for each that is asked for.
const visitEvery = 10

// visits ask informerd for changed pods the moment a bare watch has shown them.
type visits struct {
	informerd *informerd // nil: nothing is asked
	running   sync.WaitGroup

	mu   sync.Mutex // guards all below
	took []float64
	err  error
}

// visit asks for the pod of an event at its version or a later one: informerd
// answers as soon as it has that.
func (v *visits) visit(ctx context.Context, n int, at time.Time, line []byte) {
	if v.informerd == nil || n%visitEvery != 0 {
		return
	}
	// Decoding the event would take longer than the question.
	name, named := stringAfter(line, `"metadata":{"name":"`)
	version, versioned := stringAfter(line, `"resourceVersion":"`)
	if !named || !versioned {
		v.done(0, fmt.Errorf("an event without name or version: %.200s", line))
		return
	}
	path := fmt.Sprintf("/v1/resources/pods/objects/%s/%s?resourceVersion=%s&timeout=10s", eventNamespace, name, url.QueryEscape(version))
	v.running.Go(func() {
		_, err := fetch(ctx, v.informerd.http, nil, v.informerd.url+path)
		v.done(time.Since(at).Seconds(), err)
	})
}

func (v *visits) done(seconds float64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.took = append(v.took, seconds); v.err == nil {
		v.err = err
	}
}

func (v *visits) wait() ([]float64, error) {
	v.running.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.took, v.err
}

// delays are seconds after the bare watch, of all changes.
type delays struct {
	watch, second, query []float64
	relay                []float64 // instead of watch
	judged               []float64 // as watch, while health is watched, too
	rate                 []float64 // changes a second
}

func (d *delays) add(o delays) {
	d.watch = append(d.watch, o.watch...)
	d.second = append(d.second, o.second...)
	d.query = append(d.query, o.query...)
	d.rate = append(d.rate, o.rate...)
}

func (d *delays) rows() []Row {
	p99 := func(name string, delays []float64) Figure { return newFigure(name, []float64{quantile(delays, 0.99)}) }
	p50 := func(name string, delays []float64) Figure { return newFigure(name, []float64{median(delays)}) }
	rate := median(d.rate)
	at := fmt.Sprintf(" at %.0f events/s", rate)
	void := ""
	if rate < 0.95*eventRate {
		void = fmt.Sprintf("%.0f of %d changes a second were made", rate, eventRate)
	}
	const relay = "a relay that only copies"
	logf("events: a second bare watch was %s behind the first at the 99th percentile", formatFigure(quantile(d.second, 0.99), unitSeconds))
	rows := []Row{
		{What: "event on a watch after a bare watch, p99" + at, Unit: unitSeconds, Ours: p99("informerd", d.watch), Peer: p99(relay, d.relay), Bar: atMost(0.005)},
		{What: "event in an answer after a bare watch, p99" + at, Unit: unitSeconds, Ours: p99("informerd", d.query), Bar: atMost(0.005)},
		{What: "event on a watch after a bare watch, while health is watched, p99" + at, Unit: unitSeconds, Ours: p99("informerd", d.judged), Bar: atMost(0.005)},
		{What: "event on a watch after a bare watch, median" + at, Unit: unitSeconds, Ours: p50("informerd", d.watch), Peer: p50(relay, d.relay), Bar: noBar},
		{What: "event in an answer after a bare watch, median" + at, Unit: unitSeconds, Ours: p50("informerd", d.query), Bar: noBar},
	}
	for i := range rows {
		rows[i].Constant, rows[i].Void = true, void
	}
	return rows
}
