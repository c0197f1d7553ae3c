package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"time"
)

// scan measures questions that no index answers, so that every pod counts: the first time, and
// as they come back again and again. A program without informerd lists all pods from the API
// server's watch cache and looks through them.
func (b *bench) scan(ctx context.Context) ([]Row, error) {
	i, err := b.startInformerd(ctx, "")
	if err != nil {
		return nil, err
	}
	defer i.kill()
	if _, err := i.waitLive(ctx, b.data.Pods); err != nil {
		return nil, err
	}
	lister, err := startPeer(ctx, "list", b.cluster.info.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer lister.kill()
	s := &scans{bench: b, informerd: i, lister: lister, ours: map[string]*costs{}, theirs: map[string]*costs{}, first: map[string][]float64{}}
	for _, q := range questions {
		if err := s.check(ctx, q); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		s.ours[q.name], s.theirs[q.name] = &costs{}, &costs{}
	}
	for round := range b.rounds {
		logf("scans, round %d of %d", round+1, b.rounds)
		if err := s.round(ctx); err != nil {
			return nil, err
		}
	}
	if err := lister.stop(); err != nil {
		return nil, err
	}
	return s.rows(), i.stop()
}

type scans struct {
	*bench
	informerd    *informerd
	lister       *peerProcess
	ours, theirs map[string]*costs    // by question
	first        map[string][]float64 // seconds that it took the first time
}

// costs are what one question took, a value each round.
type costs struct {
	seconds []float64 // the median of the round
	growth  []float64 // bytes of resident memory more than before
}

func (s *scans) url(q question) string {
	values := url.Values{}
	for name, value := range q.query {
		values.Set(name, value)
	}
	return s.informerd.url + "/v1/resources/pods/objects?" + values.Encode()
}

// check makes sure that both sides come to the same answer, and that informerd
// has to look at every pod for it.
func (s *scans) check(ctx context.Context, q question) error {
	want, err := s.lister.order("ask", q.name)
	if err != nil {
		return err
	}
	start := time.Now()
	body, err := fetch(ctx, s.informerd.http, nil, s.url(q))
	if err != nil {
		return err
	}
	s.first[q.name] = []float64{time.Since(start).Seconds()}
	got, err := q.read(body)
	if err != nil {
		return err
	}
	if len(got) == 0 || !maps.Equal(got, want.Answer) {
		return fmt.Errorf("informerd's answer is not that of the API server's list:\n%.500v\n%.500v", got, want.Answer)
	}
	var plan struct{ Items []struct{ Candidates int } }
	if err := s.informerd.get(ctx, s.url(q)[len(s.informerd.url):]+"&explain=true", &plan); err != nil {
		return err
	}
	if len(plan.Items) != 1 || plan.Items[0].Candidates != s.data.Pods {
		return fmt.Errorf("an index left %v of %d pods", plan.Items, s.data.Pods)
	}
	return nil
}

func (s *scans) round(ctx context.Context) error {
	for _, q := range questions {
		if err := s.cluster.settle(ctx); err != nil {
			return err
		}
		if err := s.informerd.peak.note(s.informerd.pid()); err != nil {
			return err // it begins anew
		}
		err := s.ours[q.name].measure(s.informerd.process, func() (float64, error) {
			l, err := runLoadOf(ctx, 1, []string{s.url(q)}, s.duration, func(ctx context.Context, buf []byte, url string) ([]byte, error) {
				return fetch(ctx, s.informerd.http, buf, url)
			})
			return median(l.took), err
		})
		if err != nil {
			return err
		}
		if !s.measures(apiServer) {
			continue
		}
		err = s.theirs[q.name].measure(s.lister.process, func() (float64, error) {
			r, err := s.lister.order("ask", q.name)
			return r.Seconds, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measure adds what do took, in seconds, and how much memory p needed for it.
func (c *costs) measure(p *process, do func() (float64, error)) error {
	before, err := resetPeak(p.pid())
	if err != nil {
		return err
	}
	seconds, err := do()
	if err != nil {
		return err
	}
	peak, err := statusBytes(p.pid(), "VmHWM")
	if err != nil {
		return err
	}
	c.seconds = append(c.seconds, seconds)
	c.growth = append(c.growth, max(0, peak-before)) // the kernel's counts are not exact
	return nil
}

func (s *scans) rows() []Row {
	row := func(what, name string, bar Bar) Row {
		return Row{What: what, Unit: unitSeconds, Bar: bar,
			Ours: newFigure("informerd, over HTTP", s.ours[name].seconds), Peer: newFigure(listed, s.theirs[name].seconds)}
	}
	memory := func(what, name string) Row {
		return Row{What: what, Unit: unitBytes, Bar: noBar, Constant: true,
			Ours: newFigure("informerd, over HTTP", s.ours[name].growth), Peer: newFigure(listed, s.theirs[name].growth)}
	}
	first := func(what, name string, bar Bar) Row {
		return Row{What: what + ", the first time", Unit: unitSeconds, Bar: bar, Ours: newFigure("informerd, over HTTP", s.first[name])}
	}
	const filter, quantities = "CEL filter without an index", "CEL filter without an index, over quantities, counted"
	once, again := s.atMostFor(0.200), s.atMostFor(0.003)
	return []Row{
		first(filter, "filter", once),
		row(filter, "filter", again),
		memory("memory that a CEL filter without an index adds to RSS", "filter"),
		first(quantities, "quantities", once),
		row(quantities, "quantities", again),
		row("group-by of two paths, counted and summed", "group-by", again),
		memory("memory that a group-by adds to RSS", "group-by"),
		row("sum of a quantity over all pods", "aggregate", again),
		first("first pods in the order of a quantity", "sort", noBar),
		row("first pods in the order of a quantity", "sort", again),
		row("facets of two paths", "facets", again),
	}
}

// listed is what the table calls a program without informerd.
const listed = "LIST of all pods and a loop in Go"
