package cache

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// bareSource is a source of a server that says nothing, whose watches are driven by hand.
func bareSource(t *testing.T) *source {
	store := newStore(t, thingSpec)
	store.Replace("", []*Object{decodeSimple(t, store, "a", "x", 1)}, "1")
	log, r := slog.New(slog.DiscardHandler), retry{first: time.Millisecond, last: time.Second}
	c := newCluster("c", "", r, log)
	silent := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	if err := c.connect(ClusterConfig{REST: &rest.Config{Host: "http://silent", Dial: silent}}); err != nil {
		t.Fatal(err)
	}
	return &source{
		spec: thingSpec, store: store, cluster: c, count: &counters{}, changed: func() {},
		relist: make(chan struct{}, 1), retry: r, grace: verifyGrace, log: log, health: health{synced: true},
	}
}

func (s *source) watchFrom(t *testing.T, version string) *resumeWatch {
	w := s.newResumeWatch(t.Context(), metav1.ListOptions{})
	w.version = version
	return w
}

func (s *source) item(t *testing.T, name string, version int) *item {
	o := decodeSimple(t, s.store, "a", name, version)
	return &item{obj: o, resourceVersion: o.ResourceVersion()}
}

// TestProvenByWhatIsHeld: a bookmark that was read proves nothing as long as what
// came before it is not in the store.
func TestProvenByWhatIsHeld(t *testing.T) {
	for name, prove := range map[string]func(*apiwatch.RaceFreeFakeWatcher){
		"bookmark": func(f *apiwatch.RaceFreeFakeWatcher) {
			f.Action(apiwatch.Bookmark, &item{resourceVersion: "3"})
		},
		"end": func(f *apiwatch.RaceFreeFakeWatcher) {
			time.Sleep(time.Duration(provingTimeout) * time.Second)
			f.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSource(t)
				w := s.watchFrom(t, "1")
				w.timeout = provingTimeout
				stream := apiwatch.NewRaceFreeFake()
				go w.run(stream)
				defer w.Stop()
				stream.Modify(s.item(t, "x", 2))
				event := <-w.ResultChan() // on its way to the store
				prove(stream)
				synctest.Wait()
				if s.get().current {
					t.Fatal("current before the store has the event")
				}
				_ = sink{s}.Update(event.Object)
				_ = sink{s}.Bookmark((<-w.ResultChan()).Object.(*item).resourceVersion)
				if !s.get().current {
					t.Error("not current with all events and the bookmark in the store")
				}
			})
		})
	}
}

// TestErrorsBackOff: a watch that is accepted and then brings an error is not one
// that was good for something.
func TestErrorsBackOff(t *testing.T) {
	s := bareSource(t)
	backoff := &reopenBackoff{retry: s.retry}
	backoff.reset()
	for range 5 {
		before := backoff.Duration
		stream := apiwatch.NewRaceFreeFake()
		status := apierrors.NewInternalError(http.ErrAbortHandler).Status()
		stream.Error(&status)
		if !s.watchFrom(t, "1").forward(stream, backoff) || !backoff.failed || backoff.Duration != before {
			t.Fatalf("failed %v, pause %v, want it to go on from %v", backoff.failed, backoff.Duration, before)
		}
		backoff.Step()
	}
	stream := apiwatch.NewRaceFreeFake()
	stream.Action(apiwatch.Bookmark, &item{resourceVersion: "2"})
	w := s.watchFrom(t, "1")
	go func() { <-w.ResultChan(); w.cancel() }()
	w.forward(stream, backoff)
	if backoff.Duration != s.retry.first {
		t.Errorf("pause %v after a bookmark, want %v", backoff.Duration, s.retry.first)
	}
}
