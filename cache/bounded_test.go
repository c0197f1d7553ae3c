package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestNothingPilesUp: changes come as fast as Apply takes them, nobody saves, and
// a subscriber does not read. What waits to be saved is bounded by the objects
// there are, what waits to be read by the ring; the subscriber is told.
func TestNothingPilesUp(t *testing.T) {
	const objects, changes = 50, 40_000
	s := newStore(t, thingSpec)
	s.Replace("", nil, "1")
	s.TakeChanges()
	sub, err := s.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	version := 1
	apply := func(kind EventType, name string) {
		version++
		o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"},"value":%d}`, name, name, version, version), "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", kind, o)
	}
	bounded := func() {
		t.Helper()
		if n := len(s.dirty.keys); n > 2*s.Len()+4096 {
			t.Fatalf("%d keys wait to be saved, of %d objects", n, s.Len())
		}
		if n := s.Stats().RingEvents; n > ringMax || s.ring.bytes > ringBytes {
			t.Fatalf("%d events of %d bytes in the ring", n, s.ring.bytes)
		}
	}
	for n := range changes {
		apply(Modified, fmt.Sprintf("x%d", n%objects))
	}
	bounded()
	// However often an object changed, it is written once.
	if b, ok := s.TakeChanges(); !ok || b.Len() != objects || len(b.Delete) != 0 {
		t.Errorf("%d records and %d deletions to save after %d changes of %d objects", b.Len(), len(b.Delete), changes, objects)
	}
	for n := range changes / 2 { // and objects that come and go
		apply(Added, fmt.Sprintf("y%d", n))
		apply(Deleted, fmt.Sprintf("y%d", n))
	}
	bounded()
	if b, ok := s.TakeChanges(); !ok || !b.Reset || b.Len() != objects {
		t.Errorf("%d records to save, everything anew: %v; want %d", b.Len(), b.Reset, objects)
	}
	if _, err := sub.Next(context.Background()); !errors.Is(err, ErrExpired) {
		t.Errorf("a subscriber that did not read got %v, want ErrExpired", err)
	}
}

// TestManyChangesAreSavedAnew: one transaction has each page that it changes in memory, so that
// where many objects have changed all are saved anew, which is done in parts.
func TestManyChangesAreSavedAnew(t *testing.T) {
	const objects = 2 * changedMany
	s := newStore(t, thingSpec)
	things := make([]*Object, objects)
	replace := func(version, changed int) (b Batch) {
		t.Helper()
		for i := range things[:changed] {
			var err error
			if things[i], err = s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"x%d","uid":"u","resourceVersion":"%d"}}`, i, version+i), "", ""); err != nil {
				t.Fatal(err)
			}
		}
		s.Replace("", things, fmt.Sprint(version+changed))
		b, _ = s.TakeChanges()
		return b
	}
	replace(1, objects)
	if b := replace(objects+1, changedMany); b.Reset || b.Len() != changedMany {
		t.Errorf("%d changes are saved as %d records, everything anew: %v", changedMany, b.Len(), b.Reset)
	}
	if b := replace(2*objects, changedMany+1); !b.Reset || b.Len() != objects {
		t.Errorf("%d changes are saved as %d records, everything anew: %v", changedMany+1, b.Len(), b.Reset)
	}
}
