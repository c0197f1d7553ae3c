package replica

import (
	"testing"
	"testing/synctest"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// TestArrivals: what is read soon after a pause may have come at its beginning.
func TestArrivals(t *testing.T) {
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	type pause struct{ from, to float64 }
	for name, c := range map[string]struct {
		opened    float64
		unread    []pause
		heldUp    pause
		now, want float64
	}{
		"no pause":                    {0, nil, pause{}, 100, 100},
		"a short one":                 {0, []pause{{99.6, 100}}, pause{}, 100, 100},
		"soon after":                  {0, []pause{{90, 100}}, pause{}, 101, 90},
		"long after":                  {0, []pause{{90, 100}}, pause{}, 103, 103},
		"one runs into the next":      {0, []pause{{80, 90}, {91, 100}}, pause{}, 101, 80},
		"one is over before the next": {0, []pause{{80, 90}, {93, 100}}, pause{}, 101, 93},
		"held up":                     {0, nil, pause{70, 100}, 100, 70},
		"held up, long ago":           {0, nil, pause{70, 90}, 100, 100},
		"held up before":              {95, nil, pause{70, 94}, 95.5, 95},
		"busy, then held up":          {0, []pause{{60, 70}}, pause{71, 100}, 101, 60},
	} {
		t.Run(name, func(t *testing.T) {
			a := arrivals{opened: at(c.opened), pulse: &pulse{}}
			if c.heldUp.to != 0 {
				a.pulse.start(at(c.heldUp.from))
				a.pulse.heldUp(at(c.heldUp.to))
				a.pulse.start(at(c.now)) // it has run since
			}
			for _, p := range c.unread {
				a.paused(at(p.from), at(p.to))
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
