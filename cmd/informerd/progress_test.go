package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

func status(state cache.State, objects int) cache.Status {
	return cache.Status{View: cache.View{State: state}, Objects: objects}
}

// stages are what the informers say, one refresh after the other.
func runProgress(t *testing.T, terminal bool, stages ...[]cache.Status) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(&out)
		c.terminal = terminal
		asked := 0
		p := &progress{
			console: c, log: slog.New(slog.NewTextHandler(c, withoutTime)), start: time.Now(), url: "http://x",
			clusters:   func() []cache.ClusterStatus { return nil },
			discovered: func() bool { return asked >= len(stages) },
			statuses: func() []cache.Status {
				asked = min(asked+1, len(stages))
				return stages[asked-1]
			},
		}
		if err := p.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return out.String()
}

var withoutTime = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

func TestProgressOnTerminal(t *testing.T) {
	got := runProgress(t, true,
		nil,
		[]cache.Status{status(cache.Syncing, 0), status(cache.Live, 1200), status(cache.Unwatched, 0)},
		[]cache.Status{status(cache.Warm, 5), status(cache.Live, 1200)},
		[]cache.Status{status(cache.Forbidden, 0), status(cache.Live, 1234567), status(cache.Failed, 0)},
	)
	want := []string{
		"",
		"0/0 resources, 0 objects, 0.1 s",
		"1/2 resources, 1,200 objects, 0.2 s",
		"1/2 resources (1 from the snapshot), 1,205 objects, 0.3 s",
		"live: 1 resource (1 forbidden, 1 failed), 1,234,567 objects in 0.4 s; http://x\n",
	}
	if got != strings.Join(want, clearLine) {
		t.Errorf("printed %q, want %q", got, strings.Join(want, clearLine))
	}
}

func TestProgressInLogs(t *testing.T) {
	got := runProgress(t, false,
		[]cache.Status{status(cache.Syncing, 0)},
		[]cache.Status{status(cache.Syncing, 3)},
		[]cache.Status{status(cache.Live, 7)},
	)
	want := `level=INFO msg=syncing settled=0 warm=0 resources=1 objects=0 duration=100ms
level=INFO msg=synced resources=1 live=1 forbidden=0 failed=0 objects=7 duration=300ms
`
	if got != want {
		t.Errorf("logged:\n%swant:\n%s", got, want)
	}
}

// An unreachable cluster is named on a terminal, and does not fill logs.
func TestProgressOfUnreachable(t *testing.T) {
	p := &progress{start: time.Now().Add(-time.Minute), clusters: func() []cache.ClusterStatus {
		return []cache.ClusterStatus{{Name: "east", Reachable: true}, {Name: "west", Err: "connection refused"}}
	}}
	if got := p.line(tally{}); !strings.HasSuffix(got, "; cluster west: connection refused") {
		t.Errorf("line() = %q", got)
	}
}

// Logs go above the status line, which stays the last one and in one line.
func TestConsole(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(&out)
	c.terminal, c.width = true, func() int { return 8 }
	c.status("1234567890")
	_, _ = c.Write([]byte("log\n"))
	c.status("1234567890")
	c.finish("all of the end")
	_, _ = c.Write([]byte("log\n"))
	want := clearLine + "1234567" + clearLine + "log\n1234567" + clearLine + "all of the end\nlog\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
