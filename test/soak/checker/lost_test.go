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
		passed, replaced, later bool
		settled                 bool
		rules                   []string
	}{
		"passed and replaced":       {passed: true, replaced: true, settled: true},
		"passed, as is known later": {passed: true, replaced: true, later: true, settled: true},
		"not passed":                {replaced: true, rules: []string{"missed"}},
		"not replaced":              {passed: true, rules: []string{"missed"}},
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
			seen := time.Now()
			if c.later {
				seen = seen.Add(time.Second)
			}
			e.Add(cms, "n/c", history.Change{Object: object(head, "uc", "one"), Seen: seen})
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
			informer.Listed(false)
			w.checker.Step()
			if informer.Unsettled() == "" {
				t.Error("it is not judged any more after a list")
			}
		})
	}
}

// TestLostAtABookmark: a reader that cannot be told from one of the present history is told
// its own version, as which the history that is over has what it holds; and then what has
// become of that in the present one.
func TestLostAtABookmark(t *testing.T) {
	w := newWorld(Options{Relisted: func(string, time.Time, time.Time) bool { return true }})
	watch := w.checker.Watch("r", cms, Selection{})
	watch.List(18, objects{"n/a": a18, "n/b": b16})
	watch.End()
	w.check(t)
	e := w.log.Fork(w.log.Now(), 17) // without a18
	next := object(30, "ua", "other")
	e.Add(cms, "n/a", history.Change{Object: next, Seen: time.Now()})
	e.Progress(60)
	time.Sleep(time.Millisecond)
	watch.Begin(18, false)
	watch.Bookmark(18)
	watch.Event("MODIFIED", "n/a", next)
	w.check(t)
	watch.Bookmark(60)
	watch.Event("MODIFIED", "n/a", object(70, "ua", "never"))
	e.Progress(80)
	w.check(t, "phantom")
}

// TestUntouched: a watch goes on over a restore that took nothing of its resource back, as
// nothing shows that; and over no other.
func TestUntouched(t *testing.T) {
	for name, c := range map[string]struct {
		fork  int64
		made  bool
		rules []string
	}{
		"nothing":           {fork: 18},
		"a change":          {fork: 17, rules: []string{"missed"}},
		"made since":        {fork: 18, made: true, rules: []string{"missed"}},
		"made, and nothing": {fork: 20, made: true, rules: []string{"missed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			watch := w.checker.Watch("r", cms, Selection{})
			watch.List(18, objects{"n/a": a18, "n/b": b16})
			watch.Begin(18, false)
			watch.Bookmark(20)
			w.check(t)
			e := w.log.Fork(w.log.Now(), c.fork)
			if c.made {
				e.Add(cms, "n/c", history.Change{Object: object(c.fork+1, "uc", "one"), Seen: time.Now()})
			}
			e.Progress(50_000)
			watch.Bookmark(50_000)
			w.check(t, c.rules...)
		})
	}
}

// TestCopyOfASnapshot: an informer goes back where it lists a process that has only what
// was saved, and nowhere else.
func TestCopyOfASnapshot(t *testing.T) {
	for saved, rules := range map[bool][]string{true: nil, false: {"back"}} {
		w := newWorld(Options{})
		informer := w.checker.Copy("i", cms)
		informer.Set("n/a", a18)
		informer.Listed(saved)
		informer.Set("n/a", a12)
		w.check(t, rules...)
	}
}

// TestEnded: what a copy of a history before had is told as deleted where the resource is
// gone with its definition, and nowhere else.
func TestEnded(t *testing.T) {
	for ended, rules := range map[bool][]string{true: nil, false: {"history"}} {
		w := newWorld(Options{Future: time.Nanosecond, Ended: func(string, time.Time) bool { return ended }})
		watch := w.checker.Watch("r", cms, Selection{})
		watch.List(18, objects{"n/a": a18, "n/b": b16})
		watch.Begin(18, false)
		w.check(t)
		w.log.Fork(w.log.Now(), 9).Progress(40)
		watch.Event("DELETED", "n/a", a18)
		time.Sleep(time.Millisecond)
		w.log.Now().Progress(50) // etcd has nothing to tell of it
		w.check(t, rules...)
		if n := w.checker.Counts().Lost; ended && n != 1 {
			t.Errorf("counted %d", n)
		}
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

// TestBlurredProof: what was proven by servers of no history, and not since, is told later
// as it was then.
func TestBlurredProof(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		age   time.Duration
		rules []string
	}{
		"not proven since": {"stale", time.Minute, nil},
		"proven since":     {"stale", time.Second, []string{"state", "object", "phantom"}},
		"proven before":    {"stale", time.Hour, []string{"state", "object", "phantom"}},
		"nothing is said":  {"", time.Minute, []string{"state", "object", "phantom"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			now := time.Now()
			w.log.Blur()(now.Add(10 * time.Second))
			sent := now.Add(65 * time.Second)
			f := Freshness{Sent: sent, Received: sent, State: c.state, Age: c.age}
			w.checker.Answer(Answer{Freshness: f, Reader: "r", Resource: cms, Version: 18, Objects: objects{"n/x": a18}})
			w.checker.Single(Single{Freshness: f, Reader: "r", Resource: cms, Key: "n/x", Found: true, Object: a18, Version: 18})
			w.checker.Single(Single{Freshness: f, Reader: "r", Resource: cms, Key: "n/x", Found: true, Object: a18})
			w.check(t, c.rules...)
		})
	}
}

// TestAmid: a second tier that is asked amid the differences that a list of the first one
// found, lacks what will be told as it was later, and nothing else.
func TestAmid(t *testing.T) {
	for name, c := range map[string]struct {
		version              int64
		objects              objects
		secondTier, relisted bool
		rules                []string
		age                  time.Duration
	}{
		"changed again later":   {12, objects{"n/a": a10, "n/b": b11}, true, true, nil, 0},
		"deleted later":         {12, objects{"n/a": a12}, true, true, nil, 0},
		"not changed again":     {18, objects{"n/a": a12, "n/b": b16}, true, true, []string{"state"}, 0},
		"was never so":          {12, objects{"n/a": object(10, "ua", "other"), "n/b": b11}, true, true, []string{"state"}, 0},
		"too much for good":     {18, objects{"n/a": a18, "n/b": b16, "n/c": a10}, true, true, []string{"state"}, 0},
		"of a first tier":       {12, objects{"n/a": a10, "n/b": b11}, false, true, []string{"state"}, 0},
		"nothing was listed":    {12, objects{"n/a": a10, "n/b": b11}, true, false, []string{"state"}, 0},
		"listed before":         {12, objects{"n/a": a10, "n/b": b11}, true, true, nil, time.Minute},
		"proven since":          {12, objects{"n/a": a10, "n/b": b11}, true, true, []string{"state"}, 10 * time.Second},
		"all is as it was then": {12, objects{"n/a": a12, "n/b": b11}, true, true, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newWorld(Options{
				Relisted: func(_ string, from, _ time.Time) bool {
					return c.relisted && (c.age == 0 || from.Before(w.time(20).Add(-30*time.Second)))
				},
				SecondTier: func(string) bool { return c.secondTier },
			})
			w.checker.Answer(Answer{Freshness: Freshness{Sent: w.time(20), Received: w.time(21), Age: c.age}, Reader: "r", Resource: cms, Version: c.version, Objects: c.objects})
			w.check(t, c.rules...)
		})
	}
}

// TestAmidKnownLater: a second tier may be told of a change before the history is.
func TestAmidKnownLater(t *testing.T) {
	for early, rules := range map[time.Duration][]string{time.Second: nil, 3 * time.Second: {"state"}} {
		w := newWorld(Options{Relisted: func(string, time.Time, time.Time) bool { return true }, SecondTier: func(string) bool { return true }})
		at := w.time(18).Add(-early) // a18 has not been heard of then
		w.checker.Answer(Answer{Freshness: Freshness{Sent: at, Received: at}, Reader: "r", Resource: cms, Version: 12, Objects: objects{"n/a": a10, "n/b": b11}})
		w.check(t, rules...)
	}
}
