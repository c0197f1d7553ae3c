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
