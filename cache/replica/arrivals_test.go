package replica

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// TestArrivals: what is read after a pause, and before the stream was found empty, may
// have come at the beginning of the pause.
func TestArrivals(t *testing.T) {
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	type span struct{ from, to float64 }
	for name, c := range map[string]struct {
		opened    float64
		unread    []span
		stopped   span // the process was
		waits     []span
		now, want float64
	}{
		"no pause":              {0, nil, span{}, nil, 100, 100},
		"a short one":           {0, []span{{99.6, 100}}, span{}, nil, 100, 100},
		"soon after":            {0, []span{{90, 100}}, span{}, []span{{100, 100.01}}, 101, 90},
		"empty since":           {0, []span{{90, 100}}, span{}, []span{{100, 100.1}}, 100.2, 100.2},
		"long after":            {0, []span{{90, 100}}, span{}, nil, 111, 111},
		"into the next":         {0, []span{{80, 90}, {91, 100}}, span{}, nil, 101, 80},
		"over before the next":  {0, []span{{60, 70}, {93, 100}}, span{}, nil, 101, 93},
		"stopped while waiting": {0, nil, span{70, 100}, []span{{50, 100}}, 100, 70},
		"read on after that":    {0, nil, span{70, 100}, []span{{50, 100}, {100, 100.05}}, 100.1, 70},
		"emptied after that":    {0, nil, span{70, 100}, []span{{50, 100}, {100, 100.2}}, 100.3, 100.3},
		"stopped long ago":      {0, nil, span{70, 80}, []span{{99, 100}}, 100, 100},
		"stopped before":        {95, nil, span{70, 94}, []span{{95, 95.5}}, 95.5, 95},
	} {
		t.Run(name, func(t *testing.T) {
			a := arrivals{opened: at(c.opened), pulse: &pulse{}}
			for _, p := range c.unread {
				a.paused(at(p.from), at(p.to))
			}
			for n, w := range c.waits {
				if n == 0 && c.stopped.to != 0 {
					a.pulse.start(at(c.stopped.from))
					a.pulse.heldUp(at(c.stopped.to))
				}
				a.pulse.start(at(w.to)) // it has run since
				a.waited(at(w.from), at(w.to))
			}
			if got := a.date(at(c.now)); !got.Equal(at(c.want)) {
				t.Errorf("dated %v s after the beginning, want %v", got.Sub(began).Seconds(), c.want)
			}
		})
	}
}

// TestPulse: a process that ran tells of no hold-up, and whoever asks first after one
// learns of it.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		go p.run(t.Context())
		time.Sleep(time.Hour + beatPause/3)
		now := time.Now()
		if from, to := p.heldUp(now); !to.IsZero() {
			t.Errorf("held up from %v to %v, and it ran", from, to)
		}
		from, to := p.heldUp(now.Add(time.Minute))
		if now.Sub(from) < 0 || now.Sub(from) > beatPause || !to.Equal(now.Add(time.Minute)) {
			t.Errorf("held up from %v to %v, want the minute after %v", from, to, now)
		}
	})
	if _, to := (*pulse)(nil).heldUp(time.Now()); !to.IsZero() {
		t.Error("no pulse knows of a hold-up")
	}
}

// TestBookmarkReadLate: the history may be judged, for a long time, while a stream is open
// already. A bookmark that waited there is as old as that.
func TestBookmarkReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSource(t)
		s.cluster.note(s.cluster.presentHistory(), "3", time.Now())
		w := s.watchFrom(t, "3")
		w.timeout = watchTimeout
		re := newReopening(w)
		stream := apiwatch.NewRaceFreeFake()
		defer stream.Stop()
		stream.Action(apiwatch.Bookmark, &item{resourceVersion: "3", age: 5 * time.Second, copied: true})
		opened := time.Now()
		time.Sleep(10 * time.Second)
		done := make(chan struct{})
		go func() { defer close(done); w.forward(stream, re) }()
		_ = sink{s}.Bookmark((<-w.result).Object.(*item).resourceVersion)
		if want := opened.Add(-5 * time.Second); !s.get().proof.Equal(want) {
			t.Errorf("proven %v later than when the bookmark may have been sent", s.get().proof.Sub(want))
		}
		w.cancel()
		<-done
	})
}

// TestVersionNeverFalls: the differences that another informerd tells have versions of
// before. A watch that is cut among them goes on from where it was.
func TestVersionNeverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSource(t)
		w := s.watchFrom(t, "5")
		stream := apiwatch.NewRaceFreeFake()
		defer stream.Stop()
		stream.Modify(s.item(t, "x", 2))
		done := make(chan struct{})
		go func() { defer close(done); w.forward(stream, newReopening(w)) }()
		<-w.result
		w.cancel()
		<-done
		if w.version != "5" {
			t.Errorf("goes on from %s, want 5", w.version)
		}
	})
}

// TestSlowJudgement: what the API server sends no bookmarks of is proven by watches that
// end as they should, also where judging the history takes longer than such a watch.
func TestSlowJudgement(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newMemory()
		l := newLiar(1)
		l.each(func(m *member) { m.mute = true })
		l.putIn("events", "e0", "1")
		d := deceive(t, l, Options{Snapshots: db}, specOf("events"))
		d.becomes(10*time.Second, cache.Live)
		time.Sleep(5 * time.Second)
		d.stop()
		l.each(func(m *member) {
			m.answer = func(verb, resource string) int {
				if verb == "identity" || verb == "metaget" {
					time.Sleep(4 * time.Second)
				}
				return 0
			}
		})
		d = deceive(t, l, Options{Snapshots: db}, specOf("events"))
		d.becomes(3*time.Minute, cache.Live)
		time.Sleep(5 * time.Minute)
		d.becomes(0, cache.Live)
	})
}

// TestDoubtedWhileOpened: a watch of a live copy may be slow to be opened, and an object
// be deleted meanwhile. The watch will tell; that it has told all is known soon.
func TestDoubtedWhileOpened(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("p0", "1")
		l.put("p1", "1")
		d := deceive(t, l, Options{})
		d.becomes(10*time.Second, cache.Live)
		time.Sleep(10 * time.Second)
		opening := make(chan struct{})
		l.each(func(m *member) {
			m.answer = func(verb, resource string) int {
				if verb == "watch" && resource == "pods" {
					opening <- struct{}{}
					time.Sleep(4 * time.Second)
				}
				return 0
			}
		})
		<-opening // the watch before has come to its end
		l.each(func(m *member) { m.answer = nil })
		time.Sleep(time.Second)
		l.delete("p1")
		time.Sleep(11 * time.Second)
		if v := d.pods().View(); v.State != cache.Live {
			t.Errorf("%s: %s, proven %v ago", v.State, v.Reason, time.Since(v.Proof))
		}
		d.equal(time.Second)
	})
}

// TestNamespacesNotListed: bookmarks are believed where the cluster lets nobody know how
// far it is.
func TestNamespacesNotListed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("p0", "1")
		l.each(func(m *member) {
			m.answer = func(verb, resource string) int {
				if resource == "namespaces" && verb == "metadata" {
					return http.StatusMethodNotAllowed
				}
				return 0
			}
		})
		d := deceive(t, l, Options{})
		d.becomes(10*time.Second, cache.Live)
		for range 30 {
			time.Sleep(10 * time.Second)
			if v := d.pods().View(); v.State != cache.Live {
				t.Fatalf("%s: %s, proven %v ago", v.State, v.Reason, time.Since(v.Proof))
			}
		}
	})
}
