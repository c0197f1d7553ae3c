package handlers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestLanes: changes are taken before what was there at the beginning, which does not starve
// for it (kubernetes-sigs/controller-runtime#3067 and #3496).
func TestLanes(t *testing.T) {
	l := &lanes{pushed: func() {}}
	for i := range 100 {
		l.Push(flagged(&entry{name: fmt.Sprint("initial", i)}, initial))
	}
	l.Push(&entry{name: "change"})
	if e := l.Pop(); e.name != "change" {
		t.Errorf("%s came before the change", e.name)
	}
	taken := 0
	for range 160 { // changes without end
		l.Push(&entry{name: "change"})
		if e := l.Pop(); e.is(initial) {
			if want := fmt.Sprint("initial", taken); e.name != want {
				t.Errorf("%s was taken, want %s", e.name, want)
			}
			taken++
		}
	}
	if taken != 160/everyLate {
		t.Errorf("%d of 160 were initial", taken)
	}
}

// TestLane is a lane against a slice.
func TestLane(t *testing.T) {
	var l lane
	var model []*entry
	for i := range 100_000 {
		if i%5 < 3 && i < 50_000 || l.len() == 0 {
			e := &entry{}
			l.push(e)
			model = append(model, e)
			continue
		}
		if got := l.pop(); got != model[0] {
			t.Fatalf("step %d: another entry", i)
		}
		model = model[1:]
		if l.len() != len(model) {
			t.Fatalf("step %d: %d, want %d", i, l.len(), len(model))
		}
	}
}

// TestTable is a table against a map.
func TestTable(t *testing.T) {
	l := &line{}
	tab := &l.keys
	model := map[cache.Key]*entry{}
	for i := range 20_000 {
		k := cache.Key{Namespace: fmt.Sprint(i % 7), Name: fmt.Sprint(i % 301)}
		e := tab.find(k)
		if e != model[k] {
			t.Fatalf("found %v", e)
		}
		if e == nil {
			model[k] = l.newEntry(k)
			tab.add(model[k])
		} else if i%3 == 0 {
			tab.remove(e)
			delete(model, k)
		}
	}
	n := 0
	tab.each(func(*entry) { n++ })
	if n != len(model) || tab.len != n {
		t.Errorf("%d entries, %d counted, want %d", n, tab.len, len(model))
	}
}

// TestLedgerEncoding: what is saved of a key is what is read back, and what is cut off is
// refused.
func TestLedgerEncoding(t *testing.T) {
	l := &line{key: lineKey{"c", things.GVR.GroupResource()}}
	h := &running{}
	for _, e := range []*entry{
		{name: "plain", told: 5},
		flagged(&entry{name: "pending", told: unsure, since: 17}, selected|entering|forced),
		flagged(&entry{name: "failed", since: 1, more: &more{attempts: 3, err: "no", before: time.UnixMilli(99)}}, dead),
		{name: "left", since: 1, more: &more{last: &last{uid: "u", resourceVersion: "7", payload: []byte("{}")}}},
		{name: "left unknown", since: 1, more: &more{last: &last{}}},
	} {
		e.line, e.space = l, l.spaces.number("ns")
		value := h.encodeLocked(e)
		kind, key, rest, err := decodeKey(e.ledgerKey())
		if err != nil || kind != keyEntry || key != l.key || !slices.Equal(rest, []string{e.namespace(), e.name}) {
			t.Errorf("%s: %s %v %q %v", e.name, kind, key, rest, err)
		}
		got := l.newEntry(e.key())
		if err := got.decode(value); err != nil {
			t.Fatal(err)
		}
		if again := h.encodeLocked(got); !slices.Equal(again, value) {
			t.Errorf("%s: %x became %x", e.name, value, again)
		}
		for n := range len(value) {
			cut := l.newEntry(cache.Key{})
			if err := cut.decode(value[:n]); err == nil && n < 11 {
				t.Errorf("%s: %d of %d bytes are taken", e.name, n, len(value))
			}
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		e := (&line{}).newEntry(cache.Key{})
		if err := e.decode(value); err == nil {
			(&running{}).encodeLocked(e)
		}
		_, _, _, _ = decodeKey(value)
	})
}
