package cache

import (
	"slices"
	"testing"
	"time"
)

// TestLineage: it stays as long as versions are of one history, and is saved.
func TestLineage(t *testing.T) {
	s, other := newStore(t, thingSpec), newStore(t, thingSpec)
	lineage := s.Lineage()
	if lineage == "" || lineage == other.Lineage() || lineage != s.whole().Lineage() {
		t.Errorf("lineages %q and %q of two stores, %q of a reader", lineage, other.Lineage(), s.whole().Lineage())
	}
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 90)}, "100")
	s.Apply("", Added, decodeSimple(t, s, "a", "y", 101))
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 110)}, "200")
	from := newStore(t, thingSpec)
	from.Replace("", []*Object{decodeSimple(t, from, "a", "z", 210)}, "300")
	if _, err := s.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	if got := s.Lineage(); got != lineage {
		t.Errorf("lineage %q, want %q, since the differences were told", got, lineage)
	}
	batch, _ := s.TakeChanges()
	if batch.Saved.Lineage != lineage {
		t.Errorf("%q is saved, want %q", batch.Saved.Lineage, lineage)
	}

	restored := newStore(t, thingSpec)
	if err := restored.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil || restored.Lineage() != lineage {
		t.Errorf("restored with %q, %v; want %q", restored.Lineage(), err, lineage)
	}
	if b, ok := restored.TakeChanges(); ok {
		t.Errorf("there is something to save: %+v", b)
	}

	// An older informerd knew none. The one it gets is saved, although nothing changed.
	batch.Saved.Lineage = ""
	older := newStore(t, thingSpec)
	if err := older.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil || older.Lineage() == "" || older.Lineage() == lineage {
		t.Errorf("restored with %q, %v", older.Lineage(), err)
	}
	if b, ok := older.TakeChanges(); !ok || b.Reset || b.Saved.Lineage != older.Lineage() {
		t.Errorf("saved %v: %+v", ok, b)
	}

	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 40)}, "50")
	if got := s.Lineage(); got == lineage || got == "" {
		t.Errorf("lineage %q after the Store went back", got)
	}
	if b, _ := s.TakeChanges(); b.Saved.Lineage != s.Lineage() {
		t.Errorf("%q is saved, want %q", b.Saved.Lineage, s.Lineage())
	}
}

// TestChanged: the channel is closed by what happens after it was taken, and by the end of
// the Store.
func TestChanged(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 1)}, "10")
	sub := watch(t, s, "")
	closed := func(changed <-chan struct{}) bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	changed := sub.Changed()
	if closed(changed) {
		t.Error("it is closed before anything happened")
	}
	s.Apply("", Added, decodeSimple(t, s, "a", "y", 11))
	if got := readAll(t, sub); !closed(changed) || got != "ADDED a/y@11" {
		t.Errorf("closed: %v, read %q", closed(changed), got)
	}
	if changed = sub.Changed(); closed(changed) {
		t.Error("it is closed by what happened before it was taken")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-changed
	}()
	s.Close()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the end of the Store does not close it")
	}
}
