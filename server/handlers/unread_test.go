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

// TestRest: a handler that rests delivers nothing and saves nothing; what another process
// delivered meanwhile is not delivered again when it goes on, and what came meanwhile is.
func TestRest(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.truth.put("b", "red")
	w.idle()
	expect(t, s, "a enters red", "b enters red")
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	why := fmt.Errorf("%w: another replica delivers", cache.ErrAway)
	w.reach(why)
	w.manager.Rest(why)
	before := maps.Clone(w.disk.ledgers["h"])
	w.truth.put("a", "green")
	w.truth.remove("b")
	w.all()
	time.Sleep(unreadInterval + 200*time.Millisecond) // it has looked again
	if err := w.save(false); err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(before, w.disk.ledgers["h"], func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Error("a handler that rests has changed its ledger")
	}
	if status, err := w.manager.Handler("h"); err != nil || status.State != stateWaiting || !strings.Contains(status.Reason, "another replica") {
		t.Errorf("Handler() = %+v, %v", status, err)
	}
	expect(t, s)
	w.reach(nil)
	w.idle()
	expect(t, s, "a changes green", "b leaves ")
}

// TestRestUnsaved: what was under way when a handler began to rest is not told to be saved.
func TestRestUnsaved(t *testing.T) {
	w := newWorld(t)
	h := handler(nil)
	w.start(h)
	w.truth.put("a", "red")
	w.all()
	claimed, err := w.manager.Claim(t.Context(), "h", ClaimOptions{Max: 1, Wait: time.Minute})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("Claim() = %v, %v", claimed, err)
	}
	why := fmt.Errorf("%w: another replica delivers", cache.ErrAway)
	w.reach(why)
	old, err := w.manager.find("h")
	if err != nil {
		t.Fatal(err)
	}
	w.manager.Rest(why)
	if err := old.durable(t.Context()); !errors.Is(err, cache.ErrAway) {
		t.Errorf("durable() = %v of a handler that rests", err)
	}
	if results, err := w.manager.Ack(t.Context(), "h", "", []string{claimed[0].Token}); err == nil && results[0] == nil {
		t.Error("a claim of before is acknowledged at a handler that rests")
	}
	w.reach(nil)
	until(t, "what was not acknowledged is claimed again", func() bool {
		again, err := w.manager.Claim(t.Context(), "h", ClaimOptions{Max: 1, Wait: time.Second})
		return err == nil && len(again) == 1
	})
}
