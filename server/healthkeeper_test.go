package server

import (
	"context"
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
		time.Sleep(10 * healthLook)
		synctest.Wait()
		if got := index.Stats(ctx); got != nil {
			t.Errorf("while data is being listed: %v", got)
		}
		w.nodes.set(cache.Live, "")
		time.Sleep(2 * healthLook)
		synctest.Wait()
		if got := index.Stats(ctx); len(got) == 0 {
			t.Error("nothing is known of the health of anything")
		}
		cancel()
		<-done
	})
}
