package handlers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
)

func colored(color string) cache.Query {
	return cache.Query{Labels: labels.SelectorFromSet(labels.Set{"color": color})}
}

// putOld is put of an object that was created yesterday.
func (w *world) putOld(name, color string) {
	o := w.truth.put(name, color)
	o.Created = o.Created.AddDate(0, 0, -1)
	w.truth.objects[name] = o
	w.truth.history[len(w.truth.history)-1].object = o
}

// TestFromNowEntersLater: what was there before the handler, and began to be selected while
// nobody looked, enters, though no event tells of it: that it is older says nothing of when it
// was selected. Only where the question is a new one is what is older taken for known.
func TestFromNowEntersLater(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.putOld("always", "red")
	w.putOld("later", "blue")
	w.putOld("other", "green")
	w.all()
	h := handler(s)
	h.From, h.Query = FromNow, colored("red")
	w.start(h)
	w.idle()
	expect(t, s)
	if err := w.save(false); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.truth.put("later", "red")
	w.restore() // there is no snapshot: another lineage
	w.start(h)
	w.idle()
	expect(t, s, "later enters red")
	h.Query, h.Digest = cache.Query{}, "2"
	if err := w.manager.Apply([]Handler{h}); err != nil {
		t.Fatal(err)
	}
	until(t, "compared", func() bool { st, _ := w.manager.Handler("h"); return st.Known == 3 })
	w.idle()
	expect(t, s)
}

// TestChangedQuestionAfterKill: a question that is another one after a kill is not asked of a
// copy that is older than what was delivered: states never go back.
func TestChangedQuestionAfterKill(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := handler(s)
	w.start(h)
	w.truth.put("a", "red")
	w.truth.put("b", "red")
	w.idle()
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	w.truth.put("c", "red")
	w.truth.put("b", "blue")
	w.truth.remove("a")
	w.idle()
	if err := w.save(false); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.restore()
	s.got = nil
	h.Digest = "2"
	w.start(h)
	until(t, "compared", func() bool {
		st, _ := w.manager.Handler("h")
		return len(st.Lines) == 1 && st.Lines[0].State == lineFollowing
	})
	expect(t, s)
	w.idle()
	expect(t, s)
}

// TestFieldsTakenAway: an end that was saved before the handler sent less of an object is told
// with less, too.
func TestFieldsTakenAway(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := w.endPending(s, "secret")
	w.crash()
	w.restore()
	s.answer, s.got = nil, nil
	h.Fields, h.Digest = []string{"metadata.name"}, "2"
	w.start(h)
	w.idle()
	for _, d := range s.deliveries() {
		if d.Transition != Leaves || strings.Contains(string(d.Object), "secret") || !strings.Contains(string(d.Object), `"a"`) {
			t.Errorf("delivered %s with %s", d.Transition, d.Object)
		}
	}
}

// TestRuleTakesAwayAtOnce: what a rule takes away is not sent any more from when objects are
// read under it, and not only once all of them have been compared.
func TestRuleTakesAwayAtOnce(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.endPending(s, "secret")
	h, _ := w.manager.find("h")
	h.mu.Lock()
	var l *line
	for _, l = range h.lines {
	}
	src, view := *l.source, *l.source.view
	h.mu.Unlock()
	view.Spec.Redact = []string{"spec"}
	src.view = &view
	l.read(&src)
	h.mu.Lock()
	defer h.mu.Unlock()
	last := l.keys.find(cache.Key{Namespace: "ns", Name: "a"}).last()
	if last == nil || last.uid == "" || last.object != nil || last.payload != nil {
		t.Errorf("the last state is %+v", last)
	}
}
