package handlers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
)

func expect(t *testing.T, s *sink, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := names(s.deliveries()); !slices.Equal(got, want) {
		t.Errorf("delivered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	s.mu.Lock()
	s.got = nil
	s.mu.Unlock()
}

// TestTransitions: what enters a selection, changes in it and leaves it is delivered, each
// state once, and a write that changes nothing is no change.
func TestTransitions(t *testing.T) {
	w, s := newWorld(t), &sink{}
	w.truth.put("a", "red")
	w.truth.put("b", "blue")
	w.all()
	h := handler(s)
	h.Query = cache.Query{Labels: labels.SelectorFromSet(labels.Set{"color": "red"})}
	w.start(h)
	w.idle()
	expect(t, s, "a enters red")
	w.truth.put("a", "red")
	w.idle()
	expect(t, s)
	w.truth.put("b", "red")
	w.idle()
	expect(t, s, "b enters red")
	w.truth.put("a", "green")
	w.truth.remove("b")
	w.idle()
	expect(t, s, "a leaves ", "b leaves ")
	for _, d := range s.deliveries() {
		if d.Object == nil || d.UID == "" {
			t.Errorf("end of %s without its last state", d.Name)
		}
	}
	if status, _ := w.manager.Handler("h"); status.Known != 0 {
		t.Errorf("%d keys are known of an empty selection", status.Known)
	}
}

// TestFromNow: what was there before the handler is not delivered until it changes or ends.
func TestFromNow(t *testing.T) {
	w, s := newWorld(t), &sink{}
	for _, name := range []string{"a", "b", "c"} {
		o := w.truth.put(name, "red")
		o.Created = o.Created.AddDate(0, 0, -1)
		w.truth.objects[name] = o
		w.truth.history[len(w.truth.history)-1].object = o
	}
	w.all()
	h := handler(s)
	h.From = FromNow
	w.start(h)
	w.idle()
	expect(t, s)
	w.truth.put("a", "blue")
	w.truth.remove("b")
	w.truth.put("d", "new")
	w.idle()
	expect(t, s, "a changes blue", "b leaves ", "d enters new")
}

// TestOn: transitions that are not asked for are noted as known.
func TestOn(t *testing.T) {
	w, s := newWorld(t), &sink{}
	h := handler(s)
	h.On = []Transition{Leaves}
	w.start(h)
	w.truth.put("a", "red")
	w.truth.put("b", "red")
	w.idle()
	w.truth.put("a", "blue")
	w.truth.remove("b")
	w.idle()
	expect(t, s, "b leaves ")
}

// TestRestarts: after a restart exactly what happened meanwhile is delivered, ends with the
// last state included, whatever was saved last.
func TestRestarts(t *testing.T) {
	for _, how := range []string{"snapshot", "ledger after it", "no snapshot"} {
		t.Run(how, func(t *testing.T) {
			w, s := newWorld(t), &sink{}
			w.start(handler(s))
			for i := range 20 {
				w.truth.put(fmt.Sprint("o", i), "red")
			}
			w.idle()
			if how != "no snapshot" {
				if err := w.save(true); err != nil {
					t.Fatal(err)
				}
			}
			if how != "snapshot" {
				w.truth.put("o1", "green")
				w.truth.remove("o2")
				w.idle()
			}
			if err := w.save(false); err != nil {
				t.Fatal(err)
			}
			w.crash()
			s.got = nil
			w.truth.put("o3", "blue")
			w.truth.remove("o4")
			w.truth.put("new", "blue")
			w.restore()
			w.start(handler(s))
			w.idle()
			expect(t, s, "o3 changes blue", "o4 leaves ", "new enters blue")
			for _, d := range s.deliveries() {
				if d.Transition == Leaves && (d.Object == nil) != (how == "no snapshot") {
					t.Errorf("end of %s with %d bytes", d.Name, len(d.Object))
				}
			}
		})
	}
}

// TestRandomCrashes: whatever happens when, what a sink was told last of each object is what
// is true, and what it is told again is no more than what was under way at a crash.
func TestRandomCrashes(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomCrashes(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

const objects = 40

func randomCrashes(t *testing.T, r *rand.Rand) {
	w, s := newWorld(t), &sink{}
	seen := map[string]int{}
	repeated, allowed := 0, 0
	s.answer = func(d Delivery) error {
		if r := rand.IntN(20); r == 0 {
			return &RejectedError{Reason: "by chance"}
		}
		if seen[d.ID]++; seen[d.ID] > 1 {
			repeated++
		}
		return nil
	}
	h := handler(s)
	h.Retry.Attempts, h.Concurrency = 1000, 2
	w.start(h)
	w.idle()
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		name := fmt.Sprint("o", r.IntN(objects))
		switch r.IntN(15) {
		case 0, 1, 2, 3, 4, 5:
			w.truth.put(name, fmt.Sprint("c", r.IntN(3)))
		case 6, 7:
			w.truth.remove(name)
		case 8, 9, 10:
			w.catchUp(1 + r.IntN(8))
		case 11:
			if err := w.save(true); err != nil {
				t.Fatal(err)
			}
		case 12:
			w.all()
			w.idle()
		case 13, 14:
			if r.IntN(2) == 0 { // a snapshot of what nobody had time to consider
				w.all()
				if err := w.save(true); err != nil {
					t.Fatal(err)
				}
			}
			allowed += h.Concurrency
			w.crash()
			w.restore()
			w.start(h)
		}
	}
	w.idle()
	for i := range objects {
		name := fmt.Sprint("o", i)
		if told, want := s.last[name], w.truth.objects[name].Color; told != want {
			t.Errorf("%s: told %q last, it is %q", name, told, want)
		}
	}
	if repeated > allowed {
		t.Errorf("%d deliveries were repeated, %d were under way at crashes at most", repeated, allowed)
	}
	order := map[string]uint64{}
	for _, d := range s.got {
		if d.Transition == Leaves && d.Object == nil {
			t.Errorf("%s left without its last state", d.Name)
		}
		if d.Sequence <= order[d.Name] {
			t.Errorf("%s: number %d came after %d", d.Name, d.Sequence, order[d.Name])
		}
		order[d.Name] = d.Sequence
	}
}
