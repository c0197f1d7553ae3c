package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// reloading is a reloader that runs on a real file.
type reloading struct {
	file    string
	log     *lines
	applied chan *config.Config
	signals chan os.Signal
}

func startReloader(t *testing.T, file string, change ...func(*reloader)) *reloading {
	t.Helper()
	s := &settings{file: file}
	running := config.Default()
	if file != "" {
		var err error
		if running, err = s.load(); err != nil {
			t.Fatal(err)
		}
	}
	r := &reloading{file: file, log: newLines(), applied: make(chan *config.Config, 10), signals: make(chan os.Signal)}
	watching := make(chan struct{})
	reloads := &reloader{
		settings: s, running: running, log: slog.New(slog.NewTextHandler(r.log, nil)),
		apply:    func(c *config.Config) { r.applied <- c },
		debounce: 10 * time.Millisecond, poll: time.Hour,
		signals:  r.signals,
		watching: func() { close(watching) },
	}
	for _, c := range change {
		c(reloads)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- reloads.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	<-watching
	return r
}

func (r *reloading) next(t *testing.T) *config.Config {
	t.Helper()
	select {
	case c := <-r.applied:
		return c
	case <-time.After(patience):
		t.Fatalf("nothing applied; log:\n%s", r.log)
		return nil
	}
}

func (r *reloading) none(t *testing.T) {
	t.Helper()
	select {
	case c := <-r.applied:
		t.Fatalf("applied %+v", c)
	default:
	}
}

func TestReloadOnWrite(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"))
	writeFile(t, r.file, "log: {level: debug}")
	if got := r.next(t).Log.Level; got != "debug" {
		t.Errorf("applied level %s", got)
	}
}

// Editors write another file and move it over the first.
func TestReloadOnRename(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"))
	for _, level := range []string{"debug", "warn"} {
		other := writeFile(t, r.file+"~", "log: {level: "+level+"}")
		if err := os.Rename(other, r.file); err != nil {
			t.Fatal(err)
		}
		if got := r.next(t).Log.Level; got != level {
			t.Errorf("applied level %s, want %s", got, level)
		}
	}
}

// Kubernetes shows a ConfigMap as file -> ..data/file, ..data -> ..<time>, and
// swaps ..data.
func TestReloadOnConfigMap(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version := func(name, level string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name, "c.yaml"), "log: {level: "+level+"}")
	}
	version("..1", "info")
	link("..1", "..data")
	link("..data/c.yaml", "c.yaml")
	r := startReloader(t, filepath.Join(dir, "c.yaml"))
	for i, level := range []string{"debug", "warn", "error"} {
		name := "..new" + level
		version(name, level)
		link(name, "..tmp")
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if got := r.next(t).Log.Level; got != level {
			t.Errorf("swap %d: applied level %s, want %s", i, got, level)
		}
	}
}

// A file linked to from elsewhere is followed there.
func TestReloadBehindLink(t *testing.T) {
	target := writeFile(t, t.TempDir()+"/real.yaml", "log: {level: info}")
	file := t.TempDir() + "/c.yaml"
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	r := startReloader(t, file)
	writeFile(t, target, "log: {level: debug}")
	if got := r.next(t).Log.Level; got != "debug" {
		t.Errorf("applied level %s", got)
	}
}

// Other files in the folder, such as a log, may change all the time: it need not
// be quiet there.
func TestReloadWithoutQuiet(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"), func(r *reloader) {
		r.debounce, r.longest = time.Hour, 10*time.Millisecond
	})
	for _, level := range []string{"debug", "warn"} {
		other := writeFile(t, r.file+"~", "log: {level: "+level+"}")
		if err := os.Rename(other, r.file); err != nil {
			t.Fatal(err)
		}
		if got := r.next(t).Log.Level; got != level {
			t.Errorf("applied level %s, want %s", got, level)
		}
	}
}

// A file with mistakes changes nothing, and the next good one counts.
func TestReloadRefuses(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"))
	writeFile(t, r.file, "log: {level: debug}\nsyncs: 0\nlisen: x")
	text := r.log.await(t, "lisen")
	for _, want := range []string{"configuration refused, the running one stays", "c.yaml:2:8: syncs: 0 is out of range", "c.yaml:3:1: lisen: unknown key"} {
		if !strings.Contains(text, want) {
			t.Errorf("log does not say %q:\n%s", want, text)
		}
	}
	r.none(t)
	writeFile(t, r.file, "log: {level: warn}")
	if got := r.next(t).Log.Level; got != "warn" {
		t.Errorf("applied level %s", got)
	}
}

// A file that is gone is no new configuration.
func TestReloadWhenMissing(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"))
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.signals <- syscall.SIGHUP
	r.log.await(t, "configuration refused")
	r.none(t)
	writeFile(t, r.file, "log: {level: warn}")
	if got := r.next(t).Log.Level; got != "warn" {
		t.Errorf("applied level %s", got)
	}
}

// SIGHUP applies even what did not change, and says what a restart would.
func TestReloadOnSignal(t *testing.T) {
	r := startReloader(t, writeFile(t, t.TempDir()+"/c.yaml", "log: {level: info}"))
	r.signals <- syscall.SIGHUP
	r.next(t)
	writeFile(t, r.file, "syncs: 3\nlisten: localhost:1")
	r.next(t)
	if text := r.log.await(t, "need a restart"); !strings.Contains(text, "settings=\"[listen syncs]\"") {
		t.Errorf("log does not name the settings:\n%s", text)
	}
}

func TestReloadWithoutFile(t *testing.T) {
	r := startReloader(t, "")
	r.signals <- syscall.SIGHUP
	r.log.await(t, "nothing to reload")
	r.none(t)
}

// TestReloadBeforeItIsWatched: what changes after the file was read for the start, and
// before anybody watches it, is found, too.
func TestReloadBeforeItIsWatched(t *testing.T) {
	file := writeFile(t, t.TempDir()+"/c.yaml", `resources: [{match: [pods]}]`)
	r := startReloader(t, file, func(*reloader) { writeFile(t, file, `resources: [{match: [nodes]}]`) })
	if c := r.next(t); c.Resources[0].Match[0].String() != "nodes" {
		t.Errorf("applied %v", c.Resources[0].Match)
	}
}
