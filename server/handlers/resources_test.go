package handlers

import (
	"errors"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestGoneResource: when a cluster has no such resource any more, its objects have left.
func TestGoneResource(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.idle()
	w.crash()
	w.mu.Lock()
	w.hidden = true
	w.mu.Unlock()
	w.start(handler(s))
	until(t, "it left", func() bool { return len(s.deliveries()) == 2 })
	expect(t, s, "a enters red", "a leaves ")
}

// TestResourceLeftOut: a resource that the configuration has taken out is not followed any
// more, and nothing of it is kept, also where it was taken out while informerd did not run.
func TestResourceLeftOut(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w, s := newWorld(t), &sink{}
		h := handler(s)
		w.start(h)
		w.truth.put("a", "red")
		w.idle()
		expect(t, s, "a enters red")
		h.Resources, h.Digest = []string{"others.x"}, "2"
		if restart {
			w.crash()
			w.start(h)
		} else if err := w.manager.Apply([]Handler{h}); err != nil {
			t.Fatal(err)
		}
		w.truth.put("a", "blue")
		w.all()
		time.Sleep(lookInterval + resourcesInterval)
		expect(t, s)
		if err := w.save(false); err != nil {
			t.Fatal(err)
		}
		if st, _ := w.manager.Handler("h"); len(st.Lines) > 0 || w.saved("a") != nil {
			t.Errorf("kept are %+v and %+v", st.Lines, w.saved("a"))
		}
	}
}

// TestResourceUnknownWhenChanged: what a handler names and nobody knows yet is not left out: its
// ends are told.
func TestResourceUnknownWhenChanged(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := handler(s)
	w.start(h)
	w.truth.put("a", "red")
	w.idle()
	expect(t, s, "a enters red")
	w.crash()
	w.mu.Lock()
	w.hidden, w.silent = true, true
	w.mu.Unlock()
	w.start(h)
	h.Resources, h.Digest = []string{"things.x", "others.x"}, "2"
	if err := w.manager.Apply([]Handler{h}); err != nil {
		t.Fatal(err)
	}
	w.truth.remove("a")
	w.restore()
	w.mu.Lock()
	w.hidden, w.silent = false, false
	w.mu.Unlock()
	w.idle()
	expect(t, s, "a leaves ")
}

// TestForgottenWhileAdded: a handler that is configured again while it is being saved that it
// was forgotten knows nothing, and does not take for saved what is just being deleted.
func TestForgottenWhileAdded(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.idle()
	expect(t, s, "a enters red")
	if err := w.manager.Apply(nil); err != nil {
		t.Fatal(err)
	}
	begun, end, saved, added := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		saved <- w.manager.Save(func(changes []cache.LedgerChange) error {
			close(begun)
			<-end
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, c := range changes {
				w.disk.apply(c)
			}
			return nil
		})
	}()
	<-begun
	go func() { added <- w.manager.Apply([]Handler{handler(s)}) }()
	time.Sleep(100 * time.Millisecond)
	close(end)
	if err := errors.Join(<-saved, <-added); err != nil {
		t.Fatal(err)
	}
	w.idle()
	h, err := w.manager.find("h")
	if err == nil {
		err = h.durable(t.Context()) // a crash repeats what was taken and is not saved
	}
	if err != nil {
		t.Fatal(err)
	}
	w.crash()
	s.got = nil
	w.start(handler(s))
	w.idle()
	expect(t, s)
}

// TestGoneResourcePending: an end that was pending before a restart is delivered, too, when the
// resource has gone meanwhile.
func TestGoneResourcePending(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := w.endPending(s, "red")
	w.crash()
	w.mu.Lock()
	w.hidden = true
	w.mu.Unlock()
	s.answer, s.got = nil, nil
	w.start(h)
	time.Sleep(5 * viewPoll)
	until(t, "it is told", func() bool { st, _ := w.manager.Handler("h"); return st.Pending == 0 || len(s.deliveries()) > 0 })
	expect(t, s, "a leaves ")
}
