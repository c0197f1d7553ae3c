package replica

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// bareSource is a source of a server that is away, whose watches are driven by hand.
func bareSource(t *testing.T) *source {
	store := newStore(t, thingSpec)
	store.Replace("", []*cache.Object{decodeThing(t, store, "a", "x", 1)}, "1")
	log, r := slog.New(slog.DiscardHandler), retry{first: time.Millisecond, last: time.Second}
	c := newCluster("c", "", r, log)
	away := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("away") }
	if err := c.connect(ClusterConfig{REST: &rest.Config{Host: "http://away", Dial: away}}); err != nil {
		t.Fatal(err)
	}
	return &source{
		spec: thingSpec, store: store, cluster: c, count: &counters{}, changed: func() {},
		relist: make(chan relistDemand, 1), renew: make(chan struct{}, 1), retry: r, lease: Lease, grace: verifyGrace, log: log,
		standing: standing{held: true, here: true, proof: time.Now().Add(-time.Hour)},
	}
}

func (s *source) watchFrom(t *testing.T, version string) *resumeWatch {
	w := s.newResumeWatch(t.Context(), metav1.ListOptions{})
	w.version = version
	return w
}

func (s *source) item(t *testing.T, name string, version int) *item {
	o := decodeThing(t, s.store, "a", name, version)
	return &item{obj: o, resourceVersion: o.ResourceVersion()}
}

// TestProvenByWhatIsHeld: a bookmark that was read proves nothing as long as what
// came before it is not in the store. The end of a watch at its timeout proves
// nothing, but for what the API server sends no bookmarks of: a server that has
// stalled ends its watches, too.
func TestProvenByWhatIsHeld(t *testing.T) {
	ended := func(f *apiwatch.RaceFreeFakeWatcher) {
		time.Sleep(time.Duration(provingTimeout) * time.Second)
		f.Stop()
	}
	for name, c := range map[string]struct {
		resource string
		prove    func(*apiwatch.RaceFreeFakeWatcher)
		proven   bool
	}{
		"bookmark": {"things", func(f *apiwatch.RaceFreeFakeWatcher) {
			f.Action(apiwatch.Bookmark, &item{resourceVersion: "3"})
		}, true},
		"end":                   {"things", ended, false},
		"end without bookmarks": {"events", ended, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSource(t)
				s.cluster.away = make(chan struct{}) // the watch is not reopened
				s.spec.GVR.Resource, s.spec.GVR.Group = c.resource, map[string]string{"things": "example.com"}[c.resource]
				s.cluster.note(s.cluster.presentHistory(), "3", time.Now())
				w := s.watchFrom(t, "1")
				w.timeout = provingTimeout
				stream := apiwatch.NewRaceFreeFake()
				go w.run(stream)
				defer w.Stop()
				stream.Modify(s.item(t, "x", 2))
				event := <-w.ResultChan() // on its way to the store
				c.prove(stream)
				synctest.Wait()
				if s.live() {
					t.Fatal("live before the store has the event")
				}
				_ = sink{s}.Update(event.Object)
				if c.proven {
					_ = sink{s}.Bookmark((<-w.ResultChan()).Object.(*item).resourceVersion)
				}
				synctest.Wait()
				if s.live() != c.proven {
					t.Errorf("live %v with all events in the store, want %v", s.live(), c.proven)
				}
			})
		})
	}
}

// TestErrorsBackOff: neither a watch that is accepted and then brings an error is
// good for something, nor one that brings a bookmark and ends. The next one waits,
// longer each time.
func TestErrorsBackOff(t *testing.T) {
	status := apierrors.NewInternalError(http.ErrAbortHandler).Status()
	for name, stream := range map[string]func(*apiwatch.RaceFreeFakeWatcher){
		"error": func(f *apiwatch.RaceFreeFakeWatcher) { f.Error(&status) },
		"end":   func(f *apiwatch.RaceFreeFakeWatcher) { f.Stop() },
		"bookmark and end": func(f *apiwatch.RaceFreeFakeWatcher) {
			f.Action(apiwatch.Bookmark, &item{resourceVersion: "1"})
			f.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareSource(t)
			s.cluster.note(s.cluster.presentHistory(), "1", time.Now())
			w := s.watchFrom(t, "1")
			w.timeout = watchTimeout
			re := newReopening(w)
			go func() {
				for range w.ResultChan() {
				}
			}()
			for range 5 {
				before := re.backoff.Duration
				f := apiwatch.NewRaceFreeFake()
				stream(f)
				if !w.forward(f, re) || !re.failed || re.backoff.Duration != before {
					t.Fatalf("failed %v, pause %v, want it to go on from %v", re.failed, re.backoff.Duration, before)
				}
				re.backoff.Step()
			}
			w.claims.asking.Wait()
			close(w.result)
		})
	}
}

// TestUndecodableIsWatchedAgain: an event that was broken on its way is asked for
// again; one that is broken at the server makes the resource relist. Meanwhile the
// copy is not live.
func TestUndecodableIsWatchedAgain(t *testing.T) {
	s := bareSource(t)
	s.update(func(h *standing) { h.proved(time.Now()) })
	w := s.watchFrom(t, "1")
	re := newReopening(w)
	broken := func() *apiwatch.RaceFreeFakeWatcher {
		f := apiwatch.NewRaceFreeFake()
		f.Modify(&item{resourceVersion: "2", err: errors.New("broken")})
		return f
	}
	if !w.forward(broken(), re) || w.version != "1" || s.live() {
		t.Fatalf("at %s, live %v; want to watch again from 1, not live", w.version, s.live())
	}
	told := make(chan apiwatch.Event, 1)
	go func() { told <- <-w.ResultChan() }()
	if w.forward(broken(), re) {
		t.Error("the watch goes on past what it cannot decode")
	}
	if e := <-told; e.Type != apiwatch.Error || !isExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("the Reflector was told %v, want an expired version", e)
	}
	if s.count.undecoded.Load() != 1 {
		t.Errorf("%d objects counted as undecoded, want 1", s.count.undecoded.Load())
	}
}

// TestBookmarkOfTheFuture: a bookmark beyond what the server confirms is not taken
// over, and one behind the copy proves nothing.
func TestBookmarkOfTheFuture(t *testing.T) {
	for version, want := range map[string]string{"3": "3", "99": "1", "0": "1"} {
		t.Run(version, func(t *testing.T) {
			s := bareSource(t)
			w := s.watchFrom(t, "1")
			s.cluster.note(s.cluster.presentHistory(), "5", time.Now())
			f := apiwatch.NewRaceFreeFake()
			f.Action(apiwatch.Bookmark, &item{resourceVersion: version})
			ended := make(chan struct{})
			go func() { defer close(ended); w.forward(f, newReopening(w)) }()
			if want == version {
				<-w.ResultChan()
			} else if version == "99" {
				w.claims.answers <- claim{version: version}
			}
			f.Stop()
			<-ended
			w.cancel()
			if w.version != want {
				t.Errorf("at %s after a bookmark of %s, want %s", w.version, version, want)
			}
		})
	}
}
