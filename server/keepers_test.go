package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestHealthIsKept: the health of all objects is known before anybody asks.
func TestHealthIsKept(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		index := w.relations.health("")
		w.nodes.set(cache.Syncing, "")
		go func() {
			defer close(done)
			w.keepHealth(ctx)
		}()
		time.Sleep(10 * keepLook)
		synctest.Wait()
		if got := index.Stats(ctx); got != nil {
			t.Errorf("while data is being listed: %v", got)
		}
		w.nodes.set(cache.Live, "")
		time.Sleep(2 * keepLook)
		synctest.Wait()
		if got := index.Stats(ctx); len(got) == 0 {
			t.Error("nothing is known of the health of anything")
		}
		cancel()
		<-done
	})
}

// TestPrepared: what is to be prepared is known before anybody asks, and what is not, is not.
func TestPrepared(t *testing.T) {
	for _, prepare := range []Prepared{{}, {Graph: true}, {Search: true}, {Graph: true, Search: true}} {
		t.Run(fmt.Sprintf("%+v", prepare), func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Prepare = prepare })
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.keepAll(ctx)
				}()
				time.Sleep(2 * keepLook)
				synctest.Wait()
				graph, err := w.relations.graph("")
				if err != nil {
					t.Fatal(err)
				}
				search, err := w.relations.search("")
				if err != nil {
					t.Fatal(err)
				}
				if got := (Prepared{Graph: graph.Stats().Nodes > 0, Search: search.Stats().Objects > 0}); got != prepare {
					t.Errorf("prepared are %+v", got)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestKeptBesideSyncing: a resource that never comes, and a cluster of which nothing is known,
// do not keep others from being prepared.
func TestKeptBesideSyncing(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Prepare = Prepared{Search: true} })
	w.caches.clusters = append([]cache.ClusterStatus{{Name: "unknown"}}, w.caches.clusters...)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		search, err := w.relations.search("")
		if err != nil {
			t.Fatal(err)
		}
		w.nodes.set(cache.Syncing, "")
		go func() {
			defer close(done)
			w.keepAll(ctx)
		}()
		for _, c := range []struct {
			after time.Duration
			known bool
		}{{keepPatience - 2*keepLook, false}, {4 * keepLook, true}} {
			time.Sleep(c.after)
			synctest.Wait()
			if known := search.Stats().Objects > 0; known != c.known {
				t.Errorf("after %v objects can be found: %v", c.after, known)
			}
		}
		before := search.Stats().Objects
		w.pods.replace(t, "101", pod("a", "new", "web", "n1", 101))
		time.Sleep(keepEvery + 2*keepLook)
		synctest.Wait()
		if now := search.Stats().Objects; now == before {
			t.Errorf("%d objects can be found as before", now)
		}
		cancel()
		<-done
	})
}
