package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// reloader applies changes of the configuration file while informerd runs. A
// file with a mistake in it is refused whole, and what runs goes on.
type reloader struct {
	settings *settings
	log      *slog.Logger
	// apply makes it so. One goroutine calls it.
	apply func(*config.Config)
	// running is what informerd was started with: settings that need a restart
	// are compared with it.
	running *config.Config

	// The rest is for tests.

	debounce time.Duration  // quiet time after a change; default 200 ms
	longest  time.Duration  // that other changes hold up a look; default 2 s
	poll     time.Duration  // looks that nothing triggered; default 30 s
	signals  chan os.Signal // SIGHUP, if not given
	watching func()         // called once changes are seen
}

// Run reloads until ctx ends.
//
// The folder is watched, not the file: editors and Kubernetes replace files and
// links rather than write to them. Where the folder cannot be watched, the poll
// finds the change.
func (r *reloader) Run(ctx context.Context) error {
	r.withDefaults()
	if r.signals == nil {
		r.signals = make(chan os.Signal, 1)
		signal.Notify(r.signals, syscall.SIGHUP)
		defer signal.Stop(r.signals)
	}
	w := r.watch()
	if w != nil {
		defer w.Close()
	}
	seen := r.settings.read // it may have changed before it was watched
	tick := time.NewTicker(r.poll)
	defer tick.Stop()
	quiet := newQuietTimer(r.debounce, r.longest)
	quiet.disturb()
	r.watching()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.signals:
			seen = r.content()
			r.reload()
		case <-events(w):
			quiet.disturb()
		case err := <-failures(w):
			r.log.Debug("watching the configuration file", "err", err)
		case <-tick.C:
			quiet.disturb() // the file may be being written at this moment
		case <-quiet.C:
			quiet.ranOut()
			r.follow(w)
			if now := r.content(); now != nil && !bytes.Equal(now, seen) {
				seen = now
				r.reload()
			}
		}
	}
}

func (r *reloader) withDefaults() {
	if r.debounce <= 0 {
		r.debounce = 200 * time.Millisecond
	}
	if r.longest <= 0 {
		r.longest = 2 * time.Second
	}
	if r.poll <= 0 {
		r.poll = 30 * time.Second
	}
	if r.watching == nil {
		r.watching = func() {}
	}
}

// content is what the file holds, nil if it cannot be read: a file being
// replaced is missing for a moment, which is no change.
func (r *reloader) content() []byte {
	if r.settings.file == "" {
		return nil
	}
	data, err := config.Read(r.settings.file)
	if err != nil {
		return nil
	}
	return data
}

// reload reads the file and applies it if it is valid.
func (r *reloader) reload() {
	if r.settings.file == "" {
		r.log.Warn("nothing to reload: informerd was started without a configuration file")
		return
	}
	next, err := r.settings.load()
	if err != nil {
		r.refuse(err)
		return
	}
	if names := r.running.NeedsRestart(next); len(names) > 0 {
		r.log.Warn("some changes need a restart", "path", r.settings.file, "settings", names)
	}
	r.apply(next)
	r.log.Info("configuration reloaded", "path", r.settings.file)
}

// refuse logs each mistake in a line of its own.
func (r *reloader) refuse(err error) {
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		r.log.Error("configuration refused, the running one stays", "err", err)
		return
	}
	for _, m := range mistakes {
		r.log.Error("configuration refused, the running one stays", "err", m)
	}
}

// watch watches the folder of the file; nil if that is not possible.
func (r *reloader) watch() *fsnotify.Watcher {
	if r.settings.file == "" {
		return nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Warn("cannot watch the configuration file, looking at it now and then", "err", err)
		return nil
	}
	r.follow(w)
	return w
}

// follow makes w watch the folders the file is in: the one of its name, and the
// one it is linked to. Folders that were replaced are watched again.
func (r *reloader) follow(w *fsnotify.Watcher) {
	if w == nil {
		return
	}
	folders := []string{filepath.Dir(r.settings.file)}
	if target, err := filepath.EvalSymlinks(r.settings.file); err == nil {
		folders = append(folders, filepath.Dir(target))
	}
	for _, old := range w.WatchList() {
		if !slices.Contains(folders, old) {
			_ = w.Remove(old)
		}
	}
	for _, f := range folders {
		if err := w.Add(f); err != nil {
			r.log.Debug("cannot watch a folder of the configuration file", "path", f, "err", err)
		}
	}
}

func events(w *fsnotify.Watcher) chan fsnotify.Event {
	if w == nil {
		return nil
	}
	return w.Events
}

func failures(w *fsnotify.Watcher) chan error {
	if w == nil {
		return nil
	}
	return w.Errors
}
