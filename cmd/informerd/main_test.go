package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far more than anything here takes.
const patience = 30 * time.Second

func TestExitCodes(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	bad := writeFile(t, t.TempDir()+"/bad.yaml", "syncs: 0\nlisen: x\n")
	two := writeFile(t, t.TempDir()+"/two.yaml", "clusters: [{name: a}, {name: b}]\n")
	for _, test := range []struct {
		args, stderr string
		code         int
	}{
		{"", "", 0},
		{"version", "", 0},
		{"help serve", "", 0},
		{"check --offline", "", 0},
		{"check --offline ../../config.yaml", "", 0},
		{"srve", "informerd: unknown command \"srve\", did you mean \"serve\"?\nRun 'informerd --help' for usage.\n", 2},
		{"zzz", "informerd: unknown command \"zzz\"\nRun 'informerd --help' for usage.\n", 2},
		{"serve x", "informerd: unexpected argument \"x\"\nRun 'informerd serve --help' for usage.\n", 2},
		{"serve --bogus", "informerd: unknown flag: --bogus\nRun 'informerd serve --help' for usage.\n", 2},
		{"serve --log-level loud", "informerd: --log-level: bad value \"loud\": known are debug, info, warn, error\nRun 'informerd serve --help' for usage.\n", 2},
		{"serve --config " + bad, bad + ":1:8: syncs: 0 is out of range: from 1 to 256\n" + bad + ":2:1: lisen: unknown key, did you mean \"listen\"?\n", 2},
		{"check " + bad, bad + ":1:8: syncs: 0 is out of range: from 1 to 256\n" + bad + ":2:1: lisen: unknown key, did you mean \"listen\"?\n", 2},
		{"check " + two + " --context x", "informerd: --context: the configuration has 2 clusters: set it there, for each\nRun 'informerd check --help' for usage.\n", 2},
		{"check /does/not/exist", "informerd: read configuration: open /does/not/exist: no such file or directory\n", 1},
		{"check ../../config.yaml", "cluster default not asked what it serves: read kubeconfig: KUBECONFIG is /does/not/exist, which does not exist\n", 0},
		{"resources", "informerd: cluster default: read kubeconfig: KUBECONFIG is /does/not/exist, which does not exist\n", 1},
	} {
		t.Run(test.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
			if code != test.code || stderr.String() != test.stderr {
				t.Errorf("exit code %d, want %d; stderr:\n%swant:\n%s", code, test.code, &stderr, test.stderr)
			}
		})
	}
}

// Flags win over the file; those that were not given leave it alone.
func TestFlagsWin(t *testing.T) {
	file := writeFile(t, t.TempDir()+"/c.yaml", "listen: localhost:1\nsnapshot: {path: a}\nlog: {format: json}\n")
	var got settings
	cmd := &cobra.Command{}
	got.configFlag(cmd)
	got.clusterFlags(cmd)
	got.serveFlags(cmd)
	if err := cmd.ParseFlags([]string{"--config", file, "--listen", "localhost:2", "--snapshot", "", "--context", "x"}); err != nil {
		t.Fatal(err)
	}
	c, err := got.load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "localhost:2" || c.Snapshot.Path != "" || c.Clusters[0].Context != "x" || c.Log.Format != "json" {
		t.Errorf("load() = %+v", c)
	}
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines is a log that a test can wait for.
type lines struct {
	mu      sync.Mutex // guards all below
	text    strings.Builder
	changed chan struct{}
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await returns the log once it contains part.
func (l *lines) await(t *testing.T, part string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		l.mu.Lock()
		text, changed := l.text.String(), l.changed
		l.mu.Unlock()
		if strings.Contains(text, part) {
			return text
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("log does not say %q:\n%s", part, text)
		}
	}
}
