package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// query measures answers to "which pods have this label, in full", one app after
// the other: informerd and the API server over HTTP, a dynamic informer within
// its process. All three and their clients share the machine's cores; two are
// idle while the third answers.
func (b *bench) query(ctx context.Context) ([]Row, error) {
	i, err := b.startInformerd(ctx, "")
	if err != nil {
		return nil, err
	}
	defer i.kill()
	if _, err := i.waitLive(ctx, b.data.Pods); err != nil {
		return nil, err
	}
	q := &queries{bench: b, informerd: i, peers: map[string]*peerProcess{}, loads: map[string][]load{}}
	defer q.close()
	for _, name := range []string{"dynamic-app", "cache"} {
		if name == "dynamic-app" && !b.measures(dynamicInformer) {
			continue
		}
		p, err := startPeer(ctx, name, b.cluster.info.Kubeconfig)
		if err != nil {
			return nil, err
		}
		q.peers[name] = p
		if err := p.check(b.data); err != nil {
			return nil, err
		}
	}
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	for round := range b.rounds {
		logf("queries, round %d of %d", round+1, b.rounds)
		if err := q.round(ctx); err != nil {
			return nil, err
		}
	}
	return q.rows(), i.stop()
}

// queries are the subjects of the group, all running.
type queries struct {
	*bench
	informerd *informerd
	peers     map[string]*peerProcess
	loads     map[string][]load // by subject
}

func (q *queries) close() {
	for _, p := range q.peers {
		p.kill()
	}
}

func (q *queries) informerdURL(app string) string { return q.informerd.url + appPath(app) }

// check makes sure that both servers give the pods in full that they should.
func (q *queries) check(ctx context.Context) error {
	for _, a := range q.data.apps {
		for url, client := range map[string]*http.Client{
			q.informerdURL(a.name):   q.informerd.http,
			q.cluster.appURL(a.name): q.cluster.http,
		} {
			data, err := fetch(ctx, client, nil, url)
			if err != nil {
				return err
			}
			var list struct {
				Items []struct{ Spec, Status json.RawMessage }
			}
			if err := json.Unmarshal(data, &list); err != nil {
				return fmt.Errorf("read %s: %w", url, err)
			}
			if len(list.Items) != len(a.pods) || len(list.Items[0].Spec) == 0 || len(list.Items[0].Status) == 0 {
				return fmt.Errorf("%s has %d pods or parts of them, %d are right", url, len(list.Items), len(a.pods))
			}
		}
	}
	return nil
}

func (q *queries) round(ctx context.Context) error {
	if q.measures(apiServer) {
		if err := q.overHTTP(ctx, apiServer, q.cluster.http, q.cluster.appURL); err != nil {
			return err
		}
	}
	if err := q.overHTTP(ctx, "informerd", q.informerd.http, q.informerdURL); err != nil {
		return err
	}
	for name, p := range q.peers {
		if err := q.cluster.settle(ctx); err != nil {
			return err
		}
		r, err := p.order("query", q.duration.String(), strings.Join(q.data.appNames(), ","))
		if err != nil {
			return err
		}
		q.loads[name] = append(q.loads[name], load{requests: r.Requests, seconds: r.Seconds})
	}
	return nil
}

func (q *queries) overHTTP(ctx context.Context, name string, client *http.Client, url func(app string) string) error {
	if err := q.cluster.settle(ctx); err != nil {
		return err
	}
	l, err := runLoad(ctx, q.data.appNames(), q.duration, func(ctx context.Context, buf []byte, app string) ([]byte, error) {
		return fetch(ctx, client, buf, url(app))
	})
	q.loads[name] = append(q.loads[name], l)
	return err
}

func (q *queries) rows() []Row {
	what := fmt.Sprintf("index query of about %d pods in full", q.data.podsPerApp())
	throughput := func(subject, name string) Figure {
		var all []float64
		for _, l := range q.loads[subject] {
			all = append(all, l.perSecond())
		}
		return newFigure(name, all)
	}
	slowest := func(subject, name string) Figure {
		var all []float64
		for _, l := range q.loads[subject] {
			all = append(all, quantile(l.took, 0.99))
		}
		return newFigure(name, all)
	}
	const marshal = "dynamicinformer ByIndex + json.Marshal"
	return []Row{
		{What: what, Unit: unitPerSecond, Ours: throughput("informerd", "informerd, over HTTP"),
			Peer: throughput(apiServer, "API server, labelSelector"), Bar: ratioAtLeast(20)},
		{What: what, Unit: unitPerSecond, Ours: throughput("informerd", "informerd, over HTTP"),
			Peer: throughput("dynamic-app", marshal), Bar: ratioAtLeast(5)},
		{What: what + ", p99", Unit: unitSeconds, Ours: slowest("informerd", "informerd, over HTTP"),
			Peer: slowest(apiServer, "API server, labelSelector"), Bar: noBar},
		{What: what, Unit: unitPerSecond, Ours: throughput("cache", title("cache")),
			Peer: throughput("dynamic-app", marshal), Bar: noBar},
	}
}

// podsPerApp is how many pods a query returns, about.
func (d *dataset) podsPerApp() int {
	n := 0
	for _, a := range d.apps {
		n += len(a.pods)
	}
	return n / len(d.apps)
}
