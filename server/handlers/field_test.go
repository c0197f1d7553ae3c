package handlers

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// TestField are failures that others had, each under the name of its report.
func TestField(t *testing.T) {
	// Every restart sent all objects there were again.
	t.Run("argo-events#681", func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		w.start(handler(s))
		for i := range 200 {
			w.truth.put(fmt.Sprint("o", i), "red")
		}
		w.idle()
		if err := w.save(true); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.crash()
			w.restore()
			w.start(handler(s))
			w.idle()
		}
		if n := len(s.deliveries()); n != 200 {
			t.Errorf("%d deliveries of 200 objects after three restarts", n)
		}
	})
	// What happened while it was down was lost.
	t.Run("argo-events#985", func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		w.start(handler(s))
		w.truth.put("stays", "red")
		w.truth.put("goes", "red")
		w.idle()
		if err := w.save(true); err != nil {
			t.Fatal(err)
		}
		w.crash()
		w.truth.put("comes", "red")
		w.truth.put("stays", "blue")
		w.truth.remove("goes")
		w.restore()
		s.got = nil
		w.start(handler(s))
		w.idle()
		expect(t, s, "comes enters red", "stays changes blue", "goes leaves ")
	})
	// Activity in many namespaces was missed in silence: each had a watch of its own.
	t.Run("knative-eventing#8675", func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		w.start(handler(s))
		for round := range 5 {
			for i := range 1000 {
				w.truth.put(fmt.Sprint("o", i), fmt.Sprint("c", round))
			}
			w.all()
		}
		w.idle()
		for i := range 1000 {
			if got := s.last[fmt.Sprint("o", i)]; got != "c4" {
				t.Fatalf("o%d was told as %q last", i, got)
			}
		}
	})
	// The start flooded the receiver with what had been there for long.
	t.Run("kubewatch#88", TestFromNow)
	// Every half hour everything was "updated": writes and resyncs without a difference.
	t.Run("botkube#103", func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		w.start(handler(s))
		w.truth.put("a", "red")
		w.idle()
		for range 10 {
			w.truth.put("a", "red")
			w.all()
		}
		w.idle()
		expect(t, s, "a enters red")
	})
	// A hook that fails blocked the queue until it succeeded.
	t.Run("shell-operator PR#118", TestPoison)
	// 429 and Retry-After were not heard.
	t.Run("metacontroller#533", TestBusy)
	// A change waited behind everything there was at the start (controller-runtime#3067), and
	// with priorities what was there at the start waited for ever (controller-runtime#3496).
	t.Run("controller-runtime#3067 and #3496", func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		for i := range 300 {
			w.truth.put(fmt.Sprint("old", i), "red")
		}
		w.all()
		var open, news atomic.Bool
		var before atomic.Int32
		s.answer = func(d Delivery) error {
			for !open.Load() {
				time.Sleep(time.Millisecond)
			}
			if d.Name == "new" {
				news.Store(true)
			} else if !news.Load() {
				before.Add(1)
			}
			return nil
		}
		h := handler(s)
		h.Concurrency = 1
		w.start(h)
		until(t, "the first is in flight", func() bool { st, _ := w.manager.Handler("h"); return st.InFlight == 1 })
		w.truth.put("new", "red")
		w.all()
		until(t, "the change is pending", func() bool { st, _ := w.manager.Handler("h"); return st.Pending == 301 })
		open.Store(true)
		w.idle()
		if n := before.Load(); n > 2 {
			t.Errorf("%d old objects came before the change", n)
		}
	})
}
