package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

// progress tells how far the first sync is, until it is done.
type progress struct {
	console  *console
	log      *slog.Logger
	start    time.Time
	url      string
	statuses func() []cache.Status
	clusters func() []cache.ClusterStatus
	// discovered tells whether all resources are known.
	discovered func() bool
}

const (
	refresh     = 100 * time.Millisecond // of the status line
	logProgress = 5 * time.Second        // elsewhere than on a terminal
)

// tally counts watched resources and what they hold.
type tally struct {
	watched, live, warm, forbidden, failed, objects int
}

func count(statuses []cache.Status) tally {
	var t tally
	for _, s := range statuses {
		switch s.State {
		case cache.Unwatched:
			continue
		case cache.Live:
			t.live++
		case cache.Warm:
			t.warm++
		case cache.Forbidden:
			t.forbidden++
		case cache.Failed:
			t.failed++
		}
		t.watched++
		t.objects += s.Objects
	}
	return t
}

// settled is how many resources there is nothing to wait for.
func (t tally) settled() int { return t.live + t.forbidden + t.failed }

// Run reports until everything is settled or ctx ends. It never fails.
func (p *progress) Run(ctx context.Context) error {
	defer p.console.status("")
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var last tally
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		t := count(p.statuses())
		if p.discovered() && t.settled() == t.watched {
			p.done(t)
			return nil
		}
		p.console.status(p.line(t))
		if !p.console.terminal && t != last && time.Since(logged) >= logProgress {
			p.log.Info("syncing", "settled", t.settled(), "warm", t.warm, "resources", t.watched, "objects", t.objects, "duration", p.elapsed())
			last, logged = t, time.Now()
		}
	}
}

func (p *progress) done(t tally) {
	if !p.console.terminal {
		p.log.Info("synced", "resources", t.watched, "live", t.live, "forbidden", t.forbidden, "failed", t.failed,
			"objects", t.objects, "duration", p.elapsed())
		return
	}
	p.console.finish(fmt.Sprintf("live: %s%s, %s objects in %s; %s",
		plural(t.live, "resource"), t.others(), thousands(t.objects), seconds(p.elapsed()), p.url))
}

// others names the resources that are settled without being live.
func (t tally) others() string {
	var parts []string
	if t.forbidden > 0 {
		parts = append(parts, fmt.Sprintf("%d forbidden", t.forbidden))
	}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.failed))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// line is the status line: how far it is, or who does not answer.
func (p *progress) line(t tally) string {
	warm := ""
	if t.warm > 0 {
		warm = fmt.Sprintf(" (%d from the snapshot)", t.warm)
	}
	line := fmt.Sprintf("%d/%d resources%s, %s objects, %s", t.settled(), t.watched, warm, thousands(t.objects), seconds(p.elapsed()))
	for _, c := range p.clusters() {
		if !c.Reachable && c.Err != "" && p.elapsed() > time.Second {
			return line + "; cluster " + c.Name + ": " + c.Err
		}
	}
	return line
}

func (p *progress) elapsed() time.Duration { return time.Since(p.start).Round(time.Millisecond) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// thousands writes 20431 as 20,431.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
