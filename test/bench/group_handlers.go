package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// handlers measures what handlers deliver: how long after a change, alone and beside
// troubles of others; what a restart delivers; and what a key that waits costs.
func (b *bench) handlers(ctx context.Context) ([]Row, error) {
	delays, err := b.deliveryDelays(ctx)
	if err != nil {
		return nil, err
	}
	restarts, err := b.restartDeliveries(ctx)
	if err != nil {
		return nil, err
	}
	memory, err := pendingMemory(ctx)
	if err != nil {
		return nil, err
	}
	return append(append(delays, restarts...), memory), nil
}

// deliveryDelays measures how long after a bare watch a change is delivered: in turn with one
// handler, and while one of its keys is always refused and the sink of another handler cannot
// be reached.
func (b *bench) deliveryDelays(ctx context.Context) (rows []Row, err error) {
	c, err := b.startChurn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	var alone, beside deliveryTimes
	for round := range b.rounds {
		for how, all := range map[string]*deliveryTimes{"alone": &alone, "beside trouble": &beside} {
			logf("deliveries %s, round %d of %d", how, round+1, b.rounds)
			err := b.delayRound(ctx, c, all == &beside, all)
			if errors.Is(err, errWatchEnded) {
				logf("once more: %v", err)
				err = b.delayRound(ctx, c, all == &beside, all)
			}
			if err != nil {
				return nil, fmt.Errorf("deliveries %s: %w", how, err)
			}
		}
	}
	logf("deliveries: of %d changes %d were delivered, the others were followed by another before that", alone.made, alone.delivered)
	return delayRows(alone, beside), c.stop()
}

func delayRows(alone, beside deliveryTimes) []Row {
	const trouble = "beside a key that always fails and a dead sink"
	at := fmt.Sprintf(" at %.0f events/s", median(alone.rate))
	ours := func(samples ...float64) Figure { return newFigure("informerd", samples) }
	rows := []Row{
		{What: "event delivered after a bare watch, p99" + at, Unit: unitSeconds, Ours: ours(alone.p99...), Bar: atMost(0.020)},
		{What: "event delivered after a bare watch, median" + at, Unit: unitSeconds, Ours: ours(alone.p50...), Bar: noBar},
		{What: "the same p99, " + trouble, Unit: unitSeconds, Ours: ours(beside.p99...), Bar: noBar},
		{What: "what that p99 moved by, " + trouble, Unit: unitSeconds, Ours: ours(median(beside.p99) - median(alone.p99)), Bar: atMost(0.010)},
	}
	for i := range rows {
		rows[i].Constant = true
		if slowest := min(median(alone.rate), median(beside.rate)); slowest < 0.95*eventRate {
			rows[i].Void = fmt.Sprintf("%.0f of %d changes a second were made", slowest, eventRate)
		}
	}
	return rows
}

// deliveryTimes are those of rounds: seconds after a bare watch, and changes a second.
type deliveryTimes struct {
	p50, p99, rate []float64
	// Of the changes that were made, those that another soon followed need no delivery.
	made, delivered int
}

// delayRound measures one informerd with handlers for the pods that change.
func (b *bench) delayRound(ctx context.Context, c *churn, troubled bool, all *deliveryTimes) error {
	r, err := startReceiver()
	if err != nil {
		return err
	}
	defer r.close()
	i, err := b.startDelaying(ctx, c, r, troubled)
	if err != nil {
		return err
	}
	defer i.kill()
	if err := b.cluster.collect(ctx); err != nil {
		return err
	}
	version, err := b.cluster.eventsFrom(ctx)
	if err != nil {
		return err
	}
	bare, err := follow(ctx, b.cluster.http, b.cluster.info.Server+eventsPath+"&resourceVersion="+version, nil)
	if err != nil {
		return err
	}
	defer bare.stop()
	made, err := c.change(eventRate, b.duration)
	if err != nil {
		return err
	}
	if err := bare.await(ctx, made.Changes); err != nil {
		return fmt.Errorf("a bare watch: %w", err)
	}
	failing := 0
	if troubled {
		failing = 1
	}
	if err := errors.Join(i.waitDelivered(ctx, "bench", failing), i.checkTrouble(ctx, r, troubled)); err != nil {
		return err
	}
	bare.stop()
	all.rate = append(all.rate, float64(made.Changes)/made.Seconds)
	all.made += made.Changes
	return errors.Join(all.add(r, bare), i.stop())
}

// add takes over what a receiver was told in a round.
func (d *deliveryTimes) add(r *receiver, bare *follower) error {
	_, arrived, err := r.take()
	if err != nil {
		return err
	}
	var took []float64
	for n, at := range arrived {
		took = append(took, at.Sub(bare.arrived[n]).Seconds())
	}
	if len(took) == 0 {
		return errors.New("nothing was delivered")
	}
	d.delivered += len(took)
	d.p50, d.p99 = append(d.p50, median(took)), append(d.p99, quantile(took, 0.99))
	return nil
}

// startDelaying starts an informerd whose handlers begin now, and returns when it has all
// pods.
func (b *bench) startDelaying(ctx context.Context, c *churn, r *receiver, troubled bool) (*informerd, error) {
	const changing = "namespaces: [" + eventNamespace + "], from: now"
	handlers := handlerConfig("bench", r.url, changing)
	if troubled {
		dead, err := freeAddress() // nobody listens there
		if err != nil {
			return nil, err
		}
		handlers += handlerConfig("dead", "http://"+dead, changing)
		if r.refused, err = b.cluster.anEventPod(ctx); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(filepath.Join(b.scratch, "delays.db")); err != nil {
		return nil, err
	}
	i, err := b.startWithHandlers(ctx, "delays", handlers)
	if err != nil {
		return nil, err
	}
	if _, err = i.waitLive(ctx, b.data.Pods+c.first.Objects); err == nil {
		err = i.waitDelivered(ctx, "bench", 0)
	}
	if err != nil {
		i.kill()
		return nil, err
	}
	return i, nil
}

// checkTrouble makes sure that there was some, where there was to be.
func (i *informerd) checkTrouble(ctx context.Context, r *receiver, troubled bool) error {
	if !troubled {
		return nil
	}
	var dead handlerStatus
	err := i.get(ctx, "/v1/handlers/dead", &dead)
	if refused := r.refusals(); err == nil && (dead.State != "down" || dead.Pending == 0 || refused == 0) {
		err = fmt.Errorf("there was no trouble: the handler with a dead sink is %+v, %d deliveries were refused", dead, refused)
	}
	return err
}

// startWithHandlers starts an informerd whose configuration and snapshot are called name.
func (b *bench) startWithHandlers(ctx context.Context, name, handlers string) (*informerd, error) {
	config := filepath.Join(b.scratch, name+".yaml")
	if err := os.WriteFile(config, []byte(informerdConfig+"handlers:\n"+handlers), 0o600); err != nil {
		return nil, err
	}
	return b.startConfigured(ctx, config, filepath.Join(b.scratch, name+".db"))
}

// handlerConfig is a handler for pods with a webhook of this machine.
func handlerConfig(name, url, more string) string {
	return fmt.Sprintf("  - {name: %s, resources: [pods], as: informerd, %s, webhook: {url: %q, mode: binary, allowPrivate: [127.0.0.1]}}\n", name, more, url)
}

// handlerStatus is what /v1/handlers/NAME says.
type handlerStatus struct {
	State, Reason  string
	Pending, Known int
	Lines          []struct{ State, Reason string }
}

// waitDelivered waits until a handler follows its resource and has no more than some keys
// pending.
func (i *informerd) waitDelivered(ctx context.Context, handler string, pending int) error {
	_, err := i.waitUntil(ctx, 10*time.Millisecond, 30*time.Minute, "done with its deliveries", func() (bool, error) {
		var s handlerStatus
		err := i.get(ctx, "/v1/handlers/"+handler, &s)
		if err == nil && (s.State != "active" || s.Pending > pending || len(s.Lines) != 1 || s.Lines[0].State != "following") {
			err = fmt.Errorf("handler %+v", s)
		}
		return err == nil, err
	})
	return err
}

var bytesPerKey = regexp.MustCompile(`(?m)^BenchmarkPendingMemory\S*\s.*\s([0-9.]+) B/key`)

// pendingMemory is what a pending key takes, which is measured where its memory can be told
// from that of the copy: by the benchmark of server/handlers.
func pendingMemory(ctx context.Context) (Row, error) {
	logf("memory of pending keys")
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkPendingMemory$", "-benchtime", "1x", "./server/handlers").CombinedOutput()
	if err != nil {
		return Row{}, fmt.Errorf("measure pending keys: %w\n%s", err, out)
	}
	found := bytesPerKey.FindSubmatch(out)
	if found == nil {
		return Row{}, fmt.Errorf("measure pending keys: no figure in %s", out)
	}
	bytes, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return Row{}, err
	}
	return Row{
		What: "memory of each of 1,000,000 pending keys of a handler (in process)", Unit: unitBytes,
		Ours: newFigure("informerd", []float64{bytes}), Bar: atMost(150), Constant: true,
	}, nil
}
