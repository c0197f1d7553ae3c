package handlers

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// saved is what the disk has of a key; nil: nothing.
func (w *world) saved(name string) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &line{key: lineKey{things.Cluster, things.GVR.GroupResource()}}
	e := l.newEntry(cache.Key{Namespace: "ns", Name: name})
	value, ok := w.disk.ledgers["h"][string(e.ledgerKey())]
	if !ok {
		return nil
	}
	if err := e.decode(value); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// TestAttemptsAreSaved: that a delivery may arrive is saved before it begins, and that it was
// taken before the next one of its worker begins.
func TestAttemptsAreSaved(t *testing.T) {
	w, s := newWorld(t), &sink{}
	var before Delivery
	s.answer = func(d Delivery) error {
		if e := w.saved(d.Name); e == nil || e.told != unsure || e.since == 0 {
			t.Errorf("%s is delivered, and saved is %+v", d.Name, e)
		}
		if before.Name != "" {
			if e := w.saved(before.Name); e == nil || e.told <= unsure || e.since != 0 {
				t.Errorf("%s was taken, and saved is %+v", before.Name, e)
			}
		}
		before = d
		return nil
	}
	h := handler(s)
	h.Concurrency = 1
	w.start(h)
	for i := range 10 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.idle()
	until(t, "the last one is saved, too", func() bool { return w.saved(before.Name).told > unsure })
}

// TestMomentaryState: a sink that was told of a state just before a crash, and whose object
// is then as it was before, is told so, although that state had been delivered.
func TestMomentaryState(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.idle()
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	var told atomic.Bool
	s.answer = func(d Delivery) error {
		if colorOf(&d) == "blue" {
			told.Store(true)
			w.mu.Lock()
			w.broken = errors.New("crashed") // nothing reaches the disk after it
			w.mu.Unlock()
		}
		return nil
	}
	w.truth.put("a", "blue")
	w.all()
	until(t, "told of blue", told.Load)
	w.crash()
	w.restore()
	s.answer = nil
	w.truth.put("a", "red")
	w.start(handler(s))
	w.idle()
	if s.last["a"] != "red" {
		t.Errorf("told %q last", s.last["a"])
	}
}

// TestCrashBeforeFirstSnapshot: what was delivered of a copy that was never saved is compared
// with the list that is made after the crash. What is gone is told as ended, once, and nobody
// knows any more what it was last.
func TestCrashBeforeFirstSnapshot(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	for _, name := range []string{"changes", "ends", "stays"} {
		w.truth.put(name, "red")
	}
	w.idle()
	expect(t, s, "changes enters red", "ends enters red", "stays enters red")
	w.crash()
	w.truth.put("changes", "blue")
	w.truth.remove("ends")
	w.restore()
	w.start(handler(s))
	w.idle()
	for _, d := range s.deliveries() {
		if d.Transition == Leaves && len(d.Object) > 0 {
			t.Errorf("%s ended with %s", d.Name, d.Object)
		}
	}
	expect(t, s, "changes changes blue", "ends leaves ")
}

// TestPoison: a key that is always refused holds up no other, is given up after its attempts,
// gets another chance when it changes, and when it is sent again by hand.
func TestPoison(t *testing.T) {
	w, s := newWorld(t), &sink{}
	s.answer = func(d Delivery) error {
		if colorOf(&d) == "poison" {
			return &RejectedError{Reason: "indigestible"}
		}
		return nil
	}
	w.start(handler(s))
	w.truth.put("bad", "poison")
	for i := range 20 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.all()
	letters := func() []DeadLetter {
		all, _, err := w.manager.DeadLetters("h", 10, "")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	until(t, "given up", func() bool { return len(letters()) == 1 })
	if l := letters()[0]; l.Name != "bad" || l.Attempts != 3 || l.Error != "indigestible" || l.Resource != "things.x" {
		t.Errorf("dead letter %+v", l)
	}
	until(t, "others delivered", func() bool { return len(s.deliveries()) == 20 })
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.restore()
	w.start(handler(s))
	w.idle()
	if len(letters()) != 1 || len(s.deliveries()) != 20 {
		t.Fatalf("after a restart: %v, %d deliveries", letters(), len(s.deliveries()))
	}
	if n, err := w.manager.Redrive(t.Context(), "h", nil); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	until(t, "given up again", func() bool { return len(letters()) == 1 })
	w.truth.put("bad", "good")
	w.idle()
	if s.last["bad"] != "good" || len(letters()) != 0 {
		t.Errorf("told %q last, %v", s.last["bad"], letters())
	}
	if d := s.got[len(s.got)-1]; d.Transition != Enters {
		t.Errorf("what was never taken %s", d.Transition)
	}
}

// TestPoisonGoes: the end of what was never taken, but may have been, is delivered.
func TestPoisonGoes(t *testing.T) {
	w, s := newWorld(t), &sink{}
	s.answer = func(d Delivery) error {
		if colorOf(&d) == "poison" {
			return &RejectedError{Reason: "indigestible", Never: true}
		}
		return nil
	}
	w.start(handler(s))
	w.truth.put("bad", "poison")
	w.all()
	until(t, "given up", func() bool { st, _ := w.manager.Handler("h"); return st.Dead == 1 })
	w.truth.remove("bad")
	w.idle()
	expect(t, s, "bad leaves ")
}

// TestSinkDown: a sink that cannot be reached is asked rarely, by one delivery at a time, and
// costs no key an attempt; when it is back everything arrives.
func TestSinkDown(t *testing.T) {
	w, s := newWorld(t), &sink{}
	var down atomic.Bool
	var asked atomic.Int32
	down.Store(true)
	s.answer = func(Delivery) error {
		if down.Load() {
			asked.Add(1)
			return &DownError{errors.New("connection refused")}
		}
		return nil
	}
	h := handler(s)
	h.Retry.Attempts = 1
	w.start(h)
	for i := range 50 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.all()
	until(t, "asked a second time", func() bool { return asked.Load() >= int32(h.Concurrency)+1 })
	st, _ := w.manager.Handler("h")
	if st.State != stateDown || st.Reason != "connection refused" || st.Dead != 0 || st.Pending != 50 {
		t.Errorf("status %+v", st)
	}
	if n := asked.Load(); n > int32(h.Concurrency)+2 {
		t.Errorf("asked %d times", n)
	}
	down.Store(false)
	w.idle()
	if len(s.deliveries()) != 50 {
		t.Errorf("%d deliveries", len(s.deliveries()))
	}
}

// TestBusy: nothing is sent before the time that a sink asked for.
func TestBusy(t *testing.T) {
	w, s := newWorld(t), &sink{}
	var until time.Time
	s.answer = func(Delivery) error {
		if until.IsZero() {
			until = time.Now().Add(300 * time.Millisecond)
			return &BusyError{Reason: "429", After: 300 * time.Millisecond}
		}
		if left := time.Until(until); left > 0 {
			t.Errorf("sent %s too early", left)
		}
		return nil
	}
	h := handler(s)
	h.Concurrency, h.Retry.Attempts = 1, 1
	w.start(h)
	for i := range 5 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.idle()
	if st, _ := w.manager.Handler("h"); st.Dead != 0 || st.Delivered != 5 {
		t.Errorf("status %+v", st)
	}
}

// TestGone: a sink that wants nothing any more pauses its handler, restarts included, until it
// is resumed by hand.
func TestGone(t *testing.T) {
	w, s := newWorld(t), &sink{}
	var back atomic.Bool
	s.answer = func(Delivery) error {
		if !back.Load() {
			return &GoneError{Reason: "410 Gone"}
		}
		return nil
	}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.all()
	paused := func() bool { st, _ := w.manager.Handler("h"); return st.State == statePaused }
	until(t, "paused", paused)
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.restore()
	back.Store(true)
	w.start(handler(s))
	w.all()
	time.Sleep(50 * time.Millisecond)
	if !paused() || len(s.deliveries()) != 0 {
		t.Fatal("not paused after a restart")
	}
	if err := w.manager.Resume(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	w.idle()
	expect(t, s, "a enters red")
}

// TestUnsaved: while nothing can be saved nothing is delivered twice, nor lost.
func TestUnsaved(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.idle()
	w.mu.Lock()
	w.broken = errors.New("disk full")
	w.mu.Unlock()
	w.truth.put("b", "red")
	w.all()
	until(t, "told", func() bool { st, _ := w.manager.Handler("h"); return st.SaveError == "disk full" })
	w.mu.Lock()
	w.broken = nil
	w.mu.Unlock()
	w.idle()
	expect(t, s, "a enters red", "b enters red")
}

// TestChangedQuestion: another question, or other fields, deliver what differs and nothing
// else; another sink delivers nothing anew.
func TestChangedQuestion(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := handler(s)
	h.Fields = []string{"spec.color"}
	w.start(h)
	w.truth.put("a", "red")
	w.truth.put("b", "blue")
	w.idle()
	expect(t, s, "a enters red", "b enters blue")

	next := h
	next.Digest = "2" // another text of the same question
	if err := w.manager.Apply([]Handler{next}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * lookInterval)
	w.idle()
	expect(t, s)

	other := &sink{}
	next.Sink, next.SinkDigest, next.Digest = other, "2", "3"
	next.Fields = []string{"spec.color", "metadata.labels"}
	if err := w.manager.Apply([]Handler{next}); err != nil {
		t.Fatal(err)
	}
	until(t, "delivered anew", func() bool { return len(other.deliveries()) == 2 })
	w.idle()
	expect(t, s)
	expect(t, other, "a changes red", "b changes blue")
	if !s.closed {
		t.Error("the sink that was replaced is still open")
	}
	if err := w.manager.Apply(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.save(false); err != nil {
		t.Fatal(err)
	}
	if left, _ := w.Ledgers(); len(left) != 0 {
		t.Errorf("of handlers that are gone is left %v", left)
	}
}

// TestDamagedLedger: a handler whose ledger cannot be read begins anew.
func TestDamagedLedger(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.start(handler(s))
	w.truth.put("a", "red")
	w.idle()
	w.crash()
	for k := range w.disk.ledgers["h"] {
		if k[0] == 'k' {
			w.disk.ledgers["h"][k] = []byte{1, 2, 3}
		}
	}
	w.start(handler(s))
	w.idle()
	expect(t, s, "a enters red", "a enters red")
}

// TestRedactedLater: what a rule takes away is not in the last state of what left before,
// neither delivered nor saved.
func TestRedactedLater(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w, s := newWorld(t), &sink{}
		var open, without atomic.Bool
		s.answer = func(d Delivery) error {
			if d.Transition != Leaves {
				return nil
			}
			if without.Store(without.Load() || d.Object == nil); without.Load() && d.Object != nil {
				t.Errorf("delivered %s after one without it", d.Object)
			}
			if !open.Load() {
				return &RejectedError{Reason: "not yet"}
			}
			return nil
		}
		h := w.endPending(s, "top secret")
		if l := w.saved("a").last(); l == nil || !strings.Contains(string(l.payload), "top secret") {
			t.Fatal("the last state is not saved")
		}
		if restart {
			w.crash()
			w.restore()
		}
		w.mu.Lock()
		w.redact = []string{"spec"}
		w.mu.Unlock()
		if restart {
			w.start(h)
		}
		until(t, "nothing of it is left", func() bool {
			_ = w.save(false)
			l := w.saved("a").last()
			return l != nil && l.payload == nil
		})
		w.mu.Lock()
		if !w.disk.erased {
			t.Error("what was saved before may be left in the file")
		}
		w.mu.Unlock()
		// A delivery that had begun before may come after; no other may.
		until(t, "its end is tried without it", without.Load)
		open.Store(true)
		w.idle()
		if d := s.got[len(s.got)-1]; d.Transition != Leaves || d.Object != nil || d.UID == "" {
			t.Errorf("delivered %s with %s", d.Transition, d.Object)
		}
	}
}

func flagged(e *entry, f flags) *entry {
	e.set(f)
	return e
}
