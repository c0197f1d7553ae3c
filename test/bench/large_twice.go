package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"
)

// twice is what was measured of an informerd with twice as many pods.
type twice struct {
	pods   int
	live   float64   // seconds, of a cold start to all pods
	events []float64 // seconds, of each event after a bare watch
	lost   float64   // pods
	peak   float64   // anonymous bytes
}

// measureTwice starts an informerd on a stand-in with twice as many pods. It begins when the
// others have ended, and looks for each pod after pods have changed.
func (l *large) measureTwice(ctx context.Context) (*twice, error) {
	logf("twice as many pods")
	two, err := newLarge(ctx, l.options, filepath.Join(l.scratch, "twice"), 2*l.data.Pods)
	if err != nil {
		return nil, err
	}
	defer two.server.kill()
	t := &twice{pods: two.data.Pods}
	if err := two.twice(ctx, t); err != nil {
		return nil, fmt.Errorf("%d pods: %w", t.pods, err)
	}
	return t, nil
}

func (l *large) twice(ctx context.Context, t *twice) error {
	i, err := l.startConfigured(ctx, l.config, l.file)
	if err != nil {
		return err
	}
	defer i.kill()
	most := watchAnonymous(i.pid())
	defer most()
	i.http.Timeout = 10 * time.Minute
	live, err := l.waitLive(ctx, i)
	if err != nil {
		return err
	}
	t.live = live.Seconds()
	logf("all %d pods are there; saving them, and preparing graph and search", t.pods)
	if _, err := l.wait(ctx, i, "saved and prepared", func() (bool, error) { return l.isPrepared(ctx, i) }); err != nil {
		return err
	}
	if _, err := settle(ctx, i.pid(), 0.1, 10*time.Minute); err != nil {
		return err
	}
	if t.events, err = l.events(ctx, i); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if t.lost, err = l.lost(ctx, i); err != nil {
		return err
	}
	if err := l.end(i, most); err != nil {
		return err
	}
	t.peak = l.peaks[0]
	return nil
}

// lost is how many pods informerd does not count or does not name, whichever are more.
func (l *large) lost(ctx context.Context, i *informerd) (float64, error) {
	body, err := fetch(ctx, i.http, nil, i.url+"/v1/resources/pods/objects?agg="+url.QueryEscape("count()"))
	if err != nil {
		return 0, err
	}
	counted, err := readGroups(body)
	if err != nil {
		return 0, fmt.Errorf("count of all pods: %w", err)
	}
	if counted["count()"] > float64(l.data.Pods) {
		return 0, fmt.Errorf("informerd counts %.0f pods, and there are %d", counted["count()"], l.data.Pods)
	}
	names, err := openList(ctx, i.http, i.url+"/v1/resources/pods/objects?fields=metadata.name", plainList)
	if err != nil {
		return 0, err
	}
	defer names.Close()
	pods := newRoster(l.pods)
	if err := pods.readList(names); err != nil {
		return 0, err
	}
	return max(float64(l.data.Pods)-counted["count()"], float64(pods.left)), nil
}

// rows of twice as many pods. The bar on memory is of two million.
func (t *twice) rows() []Row {
	ours := func(sample float64) Figure { return newFigure("informerd", []float64{sample}) }
	of := fmt.Sprintf("%d pods: ", t.pods)
	return []Row{
		{What: of + "highest anonymous memory, of sync, first save, graph, search and events", Unit: unitBytes, Ours: ours(t.peak), Bar: atMost(3e9 * float64(t.pods) / 2e6)},
		{What: of + "lost, after changes", Unit: unitCount, Ours: ours(t.lost), Bar: atMost(0), Constant: true},
		{What: of + "cold start to all pods", Unit: unitSeconds, Ours: ours(t.live)},
		{What: of + fmt.Sprintf("event on a watch after a bare watch, p99 at %d events/s", eventRate), Unit: unitSeconds, Ours: ours(quantile(t.events, 0.99)), Constant: true},
	}
}
