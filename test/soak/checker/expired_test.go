package checker

import (
	"testing"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// TestExpired: a watch may be told 410 where its version is forgotten, and nowhere else.
func TestExpired(t *testing.T) {
	for name, c := range map[string]struct {
		listed, other, restored, silent bool
		rules                           []string
	}{
		"nothing happened": {rules: []string{"expired"}},
		"listed anew":      {listed: true},
		"another process":  {other: true},
		"restored":         {restored: true},
		"silent for long":  {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{Relisted: func(string, time.Time, time.Time) bool { return c.listed }})
			watch := w.checker.Watch("r", cms, Selection{})
			watch.List(18, objects{"n/a": a18, "n/b": b16})
			watch.Begin(18, false)
			watch.End()
			w.check(t)
			if c.restored {
				w.log.Fork(w.log.Now(), 19).Progress(40)
			}
			if c.silent {
				watch.last = watch.last.Add(-2 * remembered)
			}
			watch.Expired(c.other)
			w.check(t, c.rules...)
			if n := w.checker.Counts().Expired; n != 1 {
				t.Errorf("counted %d", n)
			}
		})
	}
}

// TestUnseen: a watch of a second tier that was told a restore as differences, must be
// as etcd has it before long.
func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration // the differences were told
		rules []string
	}{
		"in time":  {settles / 2, nil},
		"too long": {2 * settles, []string{"missed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{
				Relisted:   func(string, time.Time, time.Time) bool { return true },
				SecondTier: func(string) bool { return true },
			})
			watch := w.checker.Watch("r", cms, Selection{})
			watch.List(18, objects{"n/a": a18, "n/b": b16})
			watch.Begin(18, false)
			w.check(t)
			e := w.log.Fork(w.log.Now(), 12)
			e.Add(cms, "n/c", history.Change{Object: object(30, "uc", "one"), Seen: time.Now()})
			e.Progress(60)
			watch.Event("ADDED", "n/c", object(30, "uc", "one"))
			w.check(t)
			if watch.unseen.IsZero() {
				t.Fatal("the difference was not excused")
			}
			// n/a and n/b stay as they were before the restore, and time passes.
			w.checker.opts.Delay = -c.since
			watch.Bookmark(60)
			watch.queue[0].at = watch.queue[0].at.Add(c.since)
			w.check(t, c.rules...)
		})
	}
}

// TestGoneEarly: a deletion that a list found is told at the version before, and a second
// tier may be there still when it says how far it is. It must not be when it says more.
func TestGoneEarly(t *testing.T) {
	for name, c := range map[string]struct {
		second bool
		at     int64 // the bookmark
		gone   string
		rules  []string
	}{
		"second tier":              {true, 12, "n/b", nil},
		"first tier":               {false, 12, "n/b", []string{"missed"}},
		"there again by then":      {true, 16, "n/b", []string{"missed"}},
		"told, and complete since": {true, 14, "n/b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{
				Relisted:   func(string, time.Time, time.Time) bool { return true },
				SecondTier: func(string) bool { return c.second },
			})
			watch := w.checker.Watch("r", cms, Selection{})
			held := objects{"n/a": a12, "n/b": b11}
			watch.List(12, held)
			watch.Begin(12, false)
			watch.Event("DELETED", c.gone, history.Object{Version: 12, UID: held[c.gone].UID, Hash: held[c.gone].Hash, Tier: held[c.gone].Tier})
			watch.Bookmark(c.at)
			w.check(t, c.rules...)
		})
	}
}
