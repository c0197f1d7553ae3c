package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// reach sets whether ledgers can be asked for.
func (w *world) reach(away error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// TestLedgerAway: a handler whose ledger is out of reach at the start waits for it, and
// changes nothing of it. Then it goes on where it was: what it had delivered is not delivered
// again, and what came meanwhile is.
func TestLedgerAway(t *testing.T) {
	w, s := newWorld(t), &sink{}
	old := handler(&sink{})
	old.Name = "old"
	w.start(handler(s), old)
	for i := range 20 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.idle()
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	w.crash()
	before := maps.Clone(w.disk.ledgers["h"])
	w.reach(fmt.Errorf("%w: no route", cache.ErrAway))
	s.got = nil
	w.restore()
	w.start(handler(s))
	w.truth.put("o1", "green")
	w.truth.remove("o2")
	w.all()
	time.Sleep(unreadInterval + 200*time.Millisecond) // it has looked again
	if err := w.save(false); err != nil {
		t.Fatal(err)
	}
	expect(t, s)
	if len(w.disk.ledgers["old"]) == 0 || !maps.EqualFunc(before, w.disk.ledgers["h"], func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Error("a ledger that was out of reach was changed")
	}
	if status, err := w.manager.Handler("h"); err != nil || status.State != stateWaiting || !strings.Contains(status.Reason, "no route") {
		t.Errorf("Handler() = %+v, %v", status, err)
	}
	if err := w.manager.Pause(context.Background(), "h"); !errors.Is(err, cache.ErrNotSynced) {
		t.Errorf("Pause() = %v", err)
	}
	w.reach(nil)
	until(t, "it is read", func() bool {
		status, err := w.manager.Handler("h")
		return err == nil && status.State == stateActive
	})
	w.idle()
	expect(t, s, "o1 changes green", "o2 leaves ")
	until(t, "what is not configured is forgotten", func() bool {
		if err := w.save(false); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.disk.ledgers["old"] == nil
	})
}

// TestLedgerAwayClaims: who claims of a handler that waits for its ledger waits, too.
func TestLedgerAwayClaims(t *testing.T) {
	w := newWorld(t)
	w.truth.put("a", "red")
	w.reach(cache.ErrAway)
	h := handler(nil)
	h.Sink = nil
	w.all()
	w.start(h)
	go func() {
		time.Sleep(unreadInterval / 2)
		w.reach(nil)
	}()
	until(t, "a claim", func() bool {
		all, err := w.manager.Claim(t.Context(), "h", ClaimOptions{Owner: "o", Max: 1, Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 1
	})
}
