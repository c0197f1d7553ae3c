package checker

import (
	"slices"
	"testing"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

const cms = "configmaps"

// objects is a state, written as key, version, key, version...
type objects = map[string]history.Object

func object(version int64, uid, hash string) history.Object {
	return history.Object{Version: version, UID: uid, Hash: hash}
}

// world is a history that tests write by hand:
//
//	10 a is created, 11 b is created, 12 a changes, 14 b is deleted, 16 b is
//	created anew, 18 a changes; 20 is the head.
type world struct {
	log     *history.Log
	start   time.Time
	checker *Checker
}

var (
	a10 = object(10, "ua", "one")
	b11 = object(11, "ub", "one")
	a12 = object(12, "ua", "two")
	b16 = object(16, "ub2", "one")
	a18 = object(18, "ua", "three")
)

func newWorld(opts Options) *world {
	w := &world{log: history.NewLog(), start: time.Now().Add(-time.Hour)}
	w.checker = New(w.log, opts)
	e := w.log.Now()
	add := func(key string, o history.Object, deleted bool) {
		// One second of the test's hour for each revision.
		e.Add(cms, key, history.Change{Object: o, Deleted: deleted, Seen: w.time(o.Version)})
	}
	add("n/a", a10, false)
	add("n/b", b11, false)
	add("n/a", a12, false)
	add("n/b", history.Object{Version: 14}, true)
	add("n/b", b16, false)
	add("n/a", a18, false)
	e.Progress(20)
	return w
}

func (w *world) time(revision int64) time.Time {
	return w.start.Add(time.Duration(revision) * time.Second)
}

// check fails the test unless exactly these rules were violated.
func (w *world) check(t *testing.T, rules ...string) {
	t.Helper()
	w.checker.Step()
	shown, _ := w.checker.Violations()
	var got []string
	for _, v := range shown {
		got = append(got, v.Rule)
	}
	slices.Sort(got)
	slices.Sort(rules)
	if !slices.Equal(got, rules) {
		t.Errorf("violated: %v, want %v\n%v", got, rules, shown)
	}
}

func TestAnswer(t *testing.T) {
	at12 := objects{"n/a": a12, "n/b": b11}
	for name, tc := range map[string]struct {
		answer Answer
		rules  []string
	}{
		"the state at a change":       {Answer{Version: 12, Objects: at12}, nil},
		"the state between":           {Answer{Version: 13, Objects: at12}, nil},
		"after a deletion":            {Answer{Version: 14, Objects: objects{"n/a": a12}}, nil},
		"nothing, before anything":    {Answer{Version: 9, Objects: objects{}}, nil},
		"a change is missing":         {Answer{Version: 12, Objects: objects{"n/a": a10, "n/b": b11}}, []string{"state"}},
		"a deleted object is kept":    {Answer{Version: 14, Objects: at12}, []string{"state"}},
		"an object is missing":        {Answer{Version: 12, Objects: objects{"n/a": a12}}, []string{"state"}},
		"an empty list":               {Answer{Version: 12, Objects: objects{}}, []string{"state"}},
		"other content":               {Answer{Version: 12, Objects: objects{"n/a": object(12, "ua", "other"), "n/b": b11}}, []string{"state"}},
		"the wrong version":           {Answer{Version: 11, Objects: at12}, []string{"state"}},
		"older than asked for":        {Answer{Version: 12, AtLeast: 13, Objects: at12}, []string{"reply"}},
		"exactly as asked for":        {Answer{Version: 12, Exactly: 12, Objects: at12}, nil},
		"another than asked for":      {Answer{Version: 13, Exactly: 12, Objects: at12}, []string{"reply"}},
		"of a namespace":              {Answer{Version: 12, Selection: Selection{Namespace: "m"}, Objects: objects{}}, nil},
		"of a namespace, incomplete":  {Answer{Version: 12, Selection: Selection{Namespace: "n"}, Objects: objects{}}, []string{"state"}},
		"of a selection":              {Answer{Version: 12, Selection: Selection{Tier: "red"}, Objects: objects{}}, nil},
		"of a selection, too much":    {Answer{Version: 12, Selection: Selection{Tier: "red"}, Objects: at12}, []string{"state"}},
		"a future that never comes":   {Answer{Version: 99, Objects: at12}, []string{"future"}},
		"live at a great age":         {Answer{Version: 12, Objects: at12, Freshness: Freshness{State: "live", Age: 80 * time.Second}}, []string{"lease"}},
		"stale at a great age":        {Answer{Version: 12, Objects: at12, Freshness: Freshness{State: "stale", Age: time.Hour}}, nil},
		"stale, younger than it says": {Answer{Version: 12, Objects: at12, Freshness: Freshness{State: "stale", Age: 10 * time.Minute}}, []string{"age"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			tc.answer.Reader, tc.answer.Resource = "r", cms
			tc.answer.Received = time.Now().Add(-time.Minute)
			// At this moment the copy of version 12 is all there is, but for the
			// cases whose age is what they test.
			tc.answer.Sent = w.time(13)
			switch name {
			case "stale, younger than it says":
				tc.answer.Sent = w.time(30).Add(10 * time.Minute)
			case "live at a great age":
				tc.answer.Sent = w.time(20)
			}
			w.log.Now().Progress(20)
			w.checker.Answer(tc.answer)
			w.check(t, tc.rules...)
		})
	}
}

func TestAge(t *testing.T) {
	answer := func(w *world, state string, sent int64, age time.Duration) Answer {
		return Answer{
			Reader: "r", Resource: cms, Version: 13, Objects: objects{"n/a": a12, "n/b": b11},
			Freshness: Freshness{State: state, Age: age, Sent: w.time(sent), Received: w.time(sent)},
		}
	}
	// What happened at 14 must be there from 14 and the slack of two on.
	for _, tc := range []struct {
		state string
		sent  int64
		age   time.Duration
		rules []string
	}{
		{"live", 15, 0, nil},
		{"live", 17, 0, []string{"age"}},
		{"live", 17, 2 * time.Second, nil},
		{"stale", 60, 45 * time.Second, nil},
		{"stale", 60, 43 * time.Second, []string{"age"}},
		{"warm", 60, 0, []string{"age"}},
		{"", 60, 0, nil}, // it says nothing
	} {
		w := newWorld(Options{})
		w.checker.Answer(answer(w, tc.state, tc.sent, tc.age))
		w.check(t, tc.rules...)
	}
}

func TestSilence(t *testing.T) {
	for _, tc := range []struct {
		state  string
		silent time.Duration
		age    time.Duration
		rules  []string
	}{
		{"live", 70 * time.Second, 70 * time.Second, nil},
		{"live", 90 * time.Second, 70 * time.Second, []string{"age", "lease"}},
		{"stale", 90 * time.Second, 90 * time.Second, nil},
		{"stale", 90 * time.Second, 80 * time.Second, []string{"age"}},
		{"live", 0, 30 * time.Second, nil},
	} {
		w := newWorld(Options{Silent: func(_ string, at time.Time) time.Time {
			if tc.silent == 0 {
				return time.Time{}
			}
			return at.Add(-tc.silent)
		}})
		w.checker.Lease(Sample{At: time.Now(), Tier: "first", States: map[string]State{cms: {State: tc.state, Age: &tc.age}, "off": {State: "unwatched"}}})
		w.check(t, tc.rules...)
	}
}

func TestBack(t *testing.T) {
	at12, at13 := objects{"n/a": a12, "n/b": b11}, int64(13)
	early := Answer{Reader: "r", Resource: cms, Version: 11, Objects: objects{"n/a": a10, "n/b": b11}}
	late := Answer{Reader: "r", Resource: cms, Version: at13, Objects: at12}
	for name, tc := range map[string]struct {
		second func(*Answer)
		rules  []string
	}{
		"the same process":          {func(a *Answer) { a.State = "stale"; a.Age = 2 * time.Hour }, []string{"back"}},
		"a new process, warm":       {func(a *Answer) { a.State = "warm"; a.Age = 2 * time.Hour; a.Instance = "2" }, nil},
		"a new process, live":       {func(a *Answer) { a.State = "live"; a.Sent = a.Sent.Add(-time.Hour); a.Instance = "2" }, []string{"back"}},
		"an old version asked for":  {func(a *Answer) { a.Exactly = 11 }, nil},
		"another reader":            {func(a *Answer) { a.Reader = "s" }, nil},
		"another resource's object": {func(a *Answer) { a.Resource, a.Objects = "secrets", objects{} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			w.checker.Answer(late)
			second := early
			second.Sent = w.time(12)
			tc.second(&second)
			w.checker.Answer(second)
			w.check(t, tc.rules...)
		})
	}
}

func TestSingle(t *testing.T) {
	for name, tc := range map[string]struct {
		single Single
		rules  []string
	}{
		"as it was":           {Single{Key: "n/a", Found: true, Object: a12, Version: 13}, nil},
		"an older version":    {Single{Key: "n/a", Found: true, Object: a10, Version: 13}, []string{"object"}},
		"absent":              {Single{Key: "n/b", Version: 15}, nil},
		"absent though there": {Single{Key: "n/b", Version: 13}, []string{"object"}},
		"there though gone":   {Single{Key: "n/b", Found: true, Object: b11, Version: 15}, []string{"object"}},
		"true once":           {Single{Key: "n/a", Found: true, Object: a10}, nil},
		"never true":          {Single{Key: "n/a", Found: true, Object: object(10, "ua", "other")}, []string{"phantom"}},
		"of the future":       {Single{Key: "n/a", Found: true, Object: object(99, "ua", "x")}, []string{"future"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			tc.single.Reader, tc.single.Resource, tc.single.Received = "r", cms, w.start
			w.checker.Single(tc.single)
			w.check(t, tc.rules...)
		})
	}
}

func TestWatch(t *testing.T) {
	relisted := func(string, time.Time, time.Time) bool { return true }
	at11 := objects{"n/a": a10, "n/b": b11}
	gone := func(version int64) history.Object { return object(version, "ub", "one") }
	for name, tc := range map[string]struct {
		opts  Options
		do    func(w *Watch)
		rules []string
	}{
		"everything": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("DELETED", "n/b", gone(14))
			w.Event("ADDED", "n/b", b16)
			w.Bookmark(17)
			w.Event("MODIFIED", "n/a", a18)
			w.Bookmark(20)
		}},
		"a change is missing, seen at the next": {do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(14))
		}, rules: []string{"missed"}},
		"a change is missing, seen at a bookmark": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Bookmark(15)
		}, rules: []string{"missed"}},
		"a state between is missing": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("DELETED", "n/b", gone(14))
			w.Event("ADDED", "n/b", b16)
			w.End()
			w.List(11, objects{"n/a": a10, "n/b": b11})
			w.Begin(11, false)
			w.Event("DELETED", "n/b", gone(14))
		}, rules: []string{"missed"}},
		"a state between is missing after a list": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("ADDED", "n/c", object(12, "uc", "x"))
		}, rules: []string{"phantom"}},
		"differences of a list": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(15))
			w.Bookmark(15)
		}, rules: []string{"missed"}},
		"differences of a list, in order": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("DELETED", "n/b", gone(15))
			w.Bookmark(15)
		}},
		"a deletion at the version of a list, without one": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("DELETED", "n/b", gone(15))
		}, rules: []string{"phantom"}},
		"a deletion that a list found, at the version before it": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(11))
			w.Event("MODIFIED", "n/a", a12)
			w.Bookmark(15)
		}},
		"the same without a list": {do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(11))
		}, rules: []string{"phantom"}},
		"a deletion that a list found, of what is there": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/a", object(11, "ua", "one"))
		}, rules: []string{"phantom"}},
		"a deletion that a list found, as it never was": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", object(11, "ub", "other"))
		}, rules: []string{"phantom"}},
		"differences of a list, resumed in the middle": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(11))
			w.Event("MODIFIED", "n/a", a12)
			w.End()
			w.Begin(12, false)
			w.Event("DELETED", "n/b", gone(11))
			w.Event("MODIFIED", "n/a", a12)
			w.Event("ADDED", "n/b", b16)
			w.Bookmark(17)
		}},
		"a deletion that a list found, by a process that began before the reader": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.End()
			w.Begin(12, false)
			w.Event("DELETED", "n/b", gone(11))
			w.Bookmark(15)
		}},
		"a deletion that a list found, and a process that is not as far yet": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(11))
			w.End()
			w.Begin(11, false)
			w.Bookmark(11)
			w.Event("MODIFIED", "n/a", a12)
			w.Bookmark(13)
			w.Event("DELETED", "n/b", gone(14))
			w.Event("ADDED", "n/b", b16)
			w.Bookmark(17)
		}},
		"the same process, and a bookmark from before": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(11))
			w.Bookmark(11)
		}, rules: []string{"missed"}},
		"twice": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("MODIFIED", "n/a", a12)
		}, rules: []string{"repeat"}},
		"twice, where a stream was resumed": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.End()
			w.Begin(12, true)
			w.Event("MODIFIED", "n/a", a12)
			w.Event("DELETED", "n/b", gone(14))
		}},
		"versions fall": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(14))
			w.Event("MODIFIED", "n/a", a12)
		}, rules: []string{"order"}},
		"a bookmark falls": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Bookmark(11)
		}, rules: []string{"order"}},
		"a bookmark of the future": {do: func(w *Watch) {
			w.Bookmark(1_000_000)
		}, rules: []string{"future"}},
		"an added object is there": {do: func(w *Watch) {
			w.Event("ADDED", "n/a", a12)
		}, rules: []string{"repeat"}},
		"a recreated object as a change": {opts: Options{Relisted: relisted}, do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", a12)
			w.Event("MODIFIED", "n/b", b16)
		}, rules: []string{"missed"}},
		"a state that never was": {do: func(w *Watch) {
			w.Event("MODIFIED", "n/a", object(12, "ua", "other"))
		}, rules: []string{"phantom"}},
		"after a violation all is quiet until a list": {do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(14))
			w.Event("DELETED", "n/b", gone(14))
			w.List(13, objects{"n/a": a12, "n/b": b11})
			w.Begin(13, false)
			w.Event("DELETED", "n/b", gone(14))
		}, rules: []string{"missed"}},
		"after a violation, until a bookmark at which all is right": {do: func(w *Watch) {
			w.Event("DELETED", "n/b", gone(14)) // a12 did not come
			w.Event("MODIFIED", "n/a", a12)
			w.Bookmark(15)
			w.Event("MODIFIED", "n/a", a18) // b16 did not come
		}, rules: []string{"missed", "missed"}},
		"a wrong list": {do: func(w *Watch) {
			w.List(13, objects{})
			w.Begin(13, false)
			w.Event("DELETED", "n/b", gone(14))
		}, rules: []string{"state"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.opts)
			watch := w.checker.Watch("r", cms, Selection{})
			watch.List(11, at11)
			watch.Begin(11, false)
			tc.do(watch)
			if slices.Contains(tc.rules, "future") {
				w.checker.opts.Future = -time.Minute
			}
			w.log.Now().Progress(20)
			w.check(t, tc.rules...)
		})
	}
}

// TestRestore: etcd goes back to 12 and on from there: another b is deleted at 13.
func TestRestore(t *testing.T) {
	restored := func(w *world) {
		e := w.log.Fork(w.log.Now(), 12)
		e.Add(cms, "n/a", history.Change{Object: object(13, "ua", "new"), Seen: w.time(13)})
		e.Progress(15)
	}
	a13 := object(13, "ua", "new")
	old := objects{"n/a": a12, "n/b": b11}
	fresh := objects{"n/a": a13, "n/b": b11}
	for name, tc := range map[string]struct {
		do    func(w *world, watch *Watch)
		rules []string
	}{
		"a watch from before the fork goes on": {do: func(w *world, watch *Watch) {
			watch.List(12, old)
			watch.Begin(12, false)
			watch.Event("MODIFIED", "n/a", a13)
			watch.Bookmark(15)
		}},
		"a watch from after the fork goes on": {do: func(w *world, watch *Watch) {
			watch.List(14, objects{"n/a": a12})
			watch.Begin(14, false)
			watch.Bookmark(15)
			watch.Event("MODIFIED", "n/a", object(19, "ua", "newer"))
			e := w.log.Now()
			e.Add(cms, "n/a", history.Change{Object: object(19, "ua", "newer"), Seen: w.time(19)})
			e.Progress(20)
		}, rules: []string{"history"}},
		"the same after a 410 and a list": {do: func(w *world, watch *Watch) {
			watch.List(14, objects{"n/a": a12})
			watch.Begin(14, false)
			watch.End()
			watch.List(14, fresh)
			watch.Begin(14, false)
			watch.Bookmark(15)
		}},
		"a list of the new history after one of the old": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12}})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: fresh})
		}},
		"a list of the new history, known before one of the old": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 18, Objects: objects{"n/a": a18, "n/b": b16},
				Freshness: Freshness{Received: time.Now().Add(time.Hour)}})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 12, Objects: old})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: fresh})
			w.checker.Step()
			if n := w.checker.Counts().Waiting; n != 3 {
				t.Errorf("%d answers wait for the first of them, want 3", n)
			}
			w.checker.waiting[0].since = time.Time{}
		}},
		"a list of the old history after one of the new": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: fresh})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12}})
		}, rules: []string{"back"}},
		"an object that both have, and a list of the old history": {do: func(w *world, watch *Watch) {
			w.checker.Single(Single{Reader: "r", Resource: cms, Key: "n/b", Found: true, Object: b11, Version: 13})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: old})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: fresh})
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 13, Objects: old})
		}, rules: []string{"back"}},
		"a process that began with what was saved, and that both have": {do: func(w *world, watch *Watch) {
			warm := Freshness{State: "warm", Age: time.Hour, Instance: "second", Sent: time.Now(), Received: time.Now()}
			w.checker.Answer(Answer{Reader: "r", Resource: cms, Version: 18, Objects: objects{"n/a": a18, "n/b": b16}})
			w.checker.Single(Single{Freshness: warm, Reader: "r", Resource: cms, Key: "n/b", Found: true, Object: b11, Version: 13})
			w.checker.Answer(Answer{Freshness: warm, Reader: "r", Resource: cms, Version: 13, Objects: old})
			w.checker.Answer(Answer{Freshness: warm, Reader: "r", Resource: cms, Version: 13, Objects: fresh})
			w.checker.Answer(Answer{Freshness: warm, Reader: "r", Resource: cms, Version: 13, Objects: old})
		}, rules: []string{"back"}},
		"live in a history that is over": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{
				Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12},
				Freshness: Freshness{State: "live", Sent: time.Now().Add(10 * time.Second), Received: time.Now()},
			})
		}, rules: []string{"age"}},
		"proven in a history that is over": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{
				Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12},
				Freshness: Freshness{State: "stale", Age: 5 * time.Second, Sent: time.Now().Add(10 * time.Second), Received: time.Now().Add(10 * time.Second)},
			})
		}, rules: []string{"age"}},
		"the same, by servers that served none": {do: func(w *world, watch *Watch) {
			w.log.Blur()(time.Now().Add(8 * time.Second))
			w.checker.Answer(Answer{
				Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12},
				Freshness: Freshness{State: "stale", Age: 5 * time.Second, Sent: time.Now().Add(10 * time.Second), Received: time.Now().Add(10 * time.Second)},
			})
		}},
		"stale in a history that is over": {do: func(w *world, watch *Watch) {
			w.checker.Answer(Answer{
				Reader: "r", Resource: cms, Version: 14, Objects: objects{"n/a": a12},
				Freshness: Freshness{State: "stale", Age: 3598 * time.Second, Sent: time.Now().Add(12 * time.Second), Received: time.Now()},
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			restored(w)
			watch := w.checker.Watch("r", cms, Selection{})
			tc.do(w, watch)
			w.check(t, tc.rules...)
		})
	}
}

func TestList(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	excuses := []Excuse{
		{Name: "compaction", From: ago(50), To: ago(40), Lists: true},
		{Name: "broken definition", From: ago(30), To: ago(20), Lists: true, Resources: []string{"brittles"}},
		{Name: "reset", From: ago(15)},
	}
	for _, tc := range []struct {
		ago      int
		resource string
		rules    []string
	}{
		{45, cms, nil},
		{35, cms, []string{"relist"}},
		{25, "brittles", nil},
		{25, cms, []string{"relist"}},
		{10, cms, []string{"relist"}},
	} {
		w := newWorld(Options{})
		w.checker.List(ago(tc.ago), tc.resource, "/api/v1/configmaps", excuses)
		w.check(t, tc.rules...)
	}
}

func TestSpread(t *testing.T) {
	now := time.Now()
	well := map[string]State{cms: {State: "live"}, "brittles": {State: "stale"}}
	ill := map[string]State{cms: {State: "stale"}, "brittles": {State: "stale"}}
	own := Excuse{Name: "webhook", From: now.Add(-time.Minute), Own: true, Resources: []string{"brittles"}}
	other := Excuse{Name: "freeze", From: now.Add(-time.Minute)}
	for name, tc := range map[string]struct {
		samples []Sample
		excuses []Excuse
		rules   []string
	}{
		"others stay live":              {[]Sample{{States: well, Ready: true}, {States: well, Ready: true}}, []Excuse{own}, nil},
		"others are ill":                {[]Sample{{States: well, Ready: true}, {States: ill, Ready: true}}, []Excuse{own}, []string{"spread"}},
		"it is not ready":               {[]Sample{{States: well, Ready: true}, {States: well}}, []Excuse{own}, []string{"spread"}},
		"others were ill before":        {[]Sample{{States: ill, Ready: true}, {States: ill, Ready: true}}, []Excuse{own}, nil},
		"another fault is under way":    {[]Sample{{States: well, Ready: true}, {States: ill}}, []Excuse{own, other}, nil},
		"no fault is of one resource":   {[]Sample{{States: well, Ready: true}, {States: ill}}, []Excuse{other}, nil},
		"nothing is under way, not own": {[]Sample{{States: well, Ready: true}, {States: ill}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			s := NewSpread(w.checker)
			for _, sample := range tc.samples {
				sample.At, sample.Tier = now, "first"
				s.Sample(sample, tc.excuses)
			}
			w.check(t, tc.rules...)
		})
	}
}

func TestCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		do    func(*Copy)
		rules []string
	}{
		"states between left out": {func(c *Copy) { c.Set("n/a", a10); c.Set("n/a", a18) }, nil},
		"recreated":               {func(c *Copy) { c.Set("n/b", b11); c.Remove("n/b"); c.Set("n/b", b16) }, nil},
		"back":                    {func(c *Copy) { c.Set("n/a", a18); c.Set("n/a", a12) }, []string{"back"}},
		"never so":                {func(c *Copy) { c.Set("n/a", object(12, "ua", "x")) }, []string{"phantom"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{})
			tc.do(w.checker.Copy("r", cms))
			w.check(t, tc.rules...)
		})
	}
}

func TestUnsettled(t *testing.T) {
	w := newWorld(Options{})
	c := w.checker.Copy("r", cms)
	c.Set("n/a", a18)
	if c.Unsettled() == "" {
		t.Error("a copy that lacks an object is settled")
	}
	c.Set("n/b", b16)
	if d := c.Unsettled(); d != "" {
		t.Errorf("a copy that is as etcd differs: %s", d)
	}
	c.Set("n/x", a10)
	if c.Unsettled() == "" {
		t.Error("a copy with a phantom is settled")
	}
	watch := w.checker.Watch("r", cms, Selection{})
	watch.List(20, objects{"n/a": a18, "n/b": b16})
	w.checker.Step()
	if d := watch.Unsettled(); d != "" {
		t.Errorf("a watch that is as etcd differs: %s", d)
	}
}
