package checker

import (
	"testing"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// TestLost: a reader that comes back after a restore with a version that the new
// history has passed is not wrong, where the copy was replaced meanwhile; in any other
// case it is.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		passed, replaced bool
		settled          bool
		rules            []string
	}{
		"passed and replaced": {true, true, true, nil},
		"not passed":          {false, true, false, []string{"missed"}},
		"not replaced":        {true, false, false, []string{"missed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{Relisted: func(string, time.Time, time.Time) bool { return c.replaced }})
			watch, informer := w.checker.Watch("r", cms, Selection{}), w.checker.Copy("i", cms)
			watch.List(18, objects{"n/a": a18, "n/b": b16})
			watch.End()
			informer.Set("n/a", a18)
			informer.Set("n/b", b16)
			w.check(t)
			e := w.log.Fork(w.log.Now(), 12)
			head := int64(17)
			if c.passed {
				head = 30
			}
			e.Add(cms, "n/c", history.Change{Object: object(head, "uc", "one"), Seen: time.Now()})
			e.Progress(head)
			time.Sleep(time.Millisecond)
			watch.Begin(18, false)
			informer.Resume(18)
			e.Progress(60)
			w.checker.Step()
			watch.Bookmark(60)
			w.check(t, c.rules...)
			if got := informer.Unsettled() == ""; got != c.settled {
				t.Errorf("the informer is settled: %t", got)
			}
			if got := watch.Unsettled() == ""; got != c.settled {
				t.Errorf("the watch is settled: %t", got)
			}
			informer.Listed()
			w.checker.Step()
			if informer.Unsettled() == "" {
				t.Error("it is not judged any more after a list")
			}
		})
	}
}

// TestBlur: what is told while API servers serve no history is not judged, and what
// comes later is.
func TestBlur(t *testing.T) {
	w := newWorld(Options{})
	watch := w.checker.Watch("r", cms, Selection{})
	over := w.log.Blur()
	watch.List(18, objects{"n/x": a18})
	w.checker.Answer(Answer{Freshness: Freshness{Received: time.Now()}, Reader: "r", Resource: cms, Version: 18, Objects: objects{"n/x": a18}})
	w.check(t)
	over(time.Now())
	time.Sleep(time.Millisecond)
	watch.Bookmark(19)
	w.check(t) // it is not as etcd yet
	w.checker.Answer(Answer{Freshness: Freshness{Received: time.Now()}, Reader: "r", Resource: cms, Version: 18, Objects: objects{"n/x": a18}})
	watch.List(18, objects{"n/x": a18})
	w.check(t, "state", "state")
}

// TestAmid: a second tier that is asked amid the differences that a list of the first one
// found, lacks what will be told as it was later, and nothing else.
func TestAmid(t *testing.T) {
	for name, c := range map[string]struct {
		version              int64
		objects              objects
		secondTier, relisted bool
		rules                []string
	}{
		"changed again later":   {12, objects{"n/a": a10, "n/b": b11}, true, true, nil},
		"deleted later":         {12, objects{"n/a": a12}, true, true, nil},
		"not changed again":     {18, objects{"n/a": a12, "n/b": b16}, true, true, []string{"state"}},
		"was never so":          {12, objects{"n/a": object(10, "ua", "other"), "n/b": b11}, true, true, []string{"state"}},
		"too much for good":     {18, objects{"n/a": a18, "n/b": b16, "n/c": a10}, true, true, []string{"state"}},
		"of a first tier":       {12, objects{"n/a": a10, "n/b": b11}, false, true, []string{"state"}},
		"nothing was listed":    {12, objects{"n/a": a10, "n/b": b11}, true, false, []string{"state"}},
		"all is as it was then": {12, objects{"n/a": a12, "n/b": b11}, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{
				Relisted:   func(string, time.Time, time.Time) bool { return c.relisted },
				SecondTier: func(string) bool { return c.secondTier },
			})
			w.checker.Answer(Answer{Freshness: Freshness{Sent: w.time(20), Received: w.time(21)}, Reader: "r", Resource: cms, Version: c.version, Objects: c.objects})
			w.check(t, c.rules...)
		})
	}
}
