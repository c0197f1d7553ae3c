package handlers

import "testing"

// TestDigestsAreSalted: what a digest is cannot be computed by who writes objects, so that
// nobody finds two states that are taken for one; and it is the same after a restart.
func TestDigestsAreSalted(t *testing.T) {
	w, s := newWorld(t), &sink{}
	one, two := handler(s), handler(&sink{})
	two.Name = "two"
	told := func() (all [2]digest) {
		for i, name := range []string{"h", "two"} {
			h, err := w.manager.find(name)
			if err != nil {
				t.Fatal(err)
			}
			h.mu.Lock()
			for _, l := range h.lines {
				l.keys.each(func(e *entry) { all[i] = e.told })
			}
			h.mu.Unlock()
		}
		return all
	}
	w.start(one, two)
	w.truth.put("a", "red")
	w.idle()
	before := told()
	if before[0] == before[1] || before[0] <= unsure || before[1] <= unsure {
		t.Errorf("digests of one state are %x", before)
	}
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.restore()
	w.start(one, two)
	w.idle()
	if after := told(); after != before {
		t.Errorf("digests are %x, and were %x", after, before)
	}
	expect(t, s, "a enters red")
}
