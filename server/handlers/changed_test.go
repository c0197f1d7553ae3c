package handlers

import (
	"fmt"
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestChangedWhileCompared: keys that the comparison for another question made pending are
// delivered as that question asks, also those that are taken before it has ended.
func TestChangedWhileCompared(t *testing.T) {
	const objects = 8 * compareBatch
	w, s := newWorld(t), &sink{}
	h := handler(s)
	h.Fields = []string{"spec.color"}
	w.start(h)
	for i := range objects {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.idle()
	h.Digest, h.Fields = "2", []string{"spec.color", "metadata.labels"}
	if err := w.manager.Apply([]Handler{h}); err != nil {
		t.Fatal(err)
	}
	until(t, "the other question is answered", func() bool {
		running, _ := w.manager.find("h")
		running.mu.Lock()
		defer running.mu.Unlock()
		for _, l := range running.lines {
			return l.cursor.Question == "2/" && running.pending == 0
		}
		return false
	})
	if n := len(s.deliveries()); n != 2*objects {
		t.Errorf("%d deliveries of %d objects, with two questions", n, objects)
	}
}

// TestDroppedWhileCompared: of a resource that is not asked for any more nothing is delivered,
// though its objects are being compared, or its events considered, at that moment.
func TestDroppedWhileCompared(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := handler(s)
	w.start(h)
	w.truth.put("a", "red")
	w.idle()
	running, _ := w.manager.find("h")
	running.mu.Lock()
	var l *line
	for _, l = range running.lines {
	}
	src := l.source
	running.mu.Unlock()
	h.Digest, h.Resources = "2", []string{"others.x"}
	if err := w.manager.Apply([]Handler{h}); err != nil {
		t.Fatal(err)
	}
	o, ok := src.reader.Get(cache.Key{Namespace: "ns", Name: "a"})
	if !ok {
		t.Fatal("the object is not there")
	}
	running.mu.Lock()
	l.compareLocked(o, unsure, true)
	running.mu.Unlock()
	l.following.Lock()
	l.from = src
	l.consider(cache.Event{Type: cache.Modified, Object: o})
	l.following.Unlock()
	until(t, "the delivery of before is saved, and nothing is known", func() bool {
		running.mu.Lock()
		defer running.mu.Unlock()
		return running.pending == 0 && l.keys.len == 0
	})
}
