package handlers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// somebody is an asker whose rights change.
type somebody struct {
	mu         sync.Mutex // guards all below
	scope      cache.Scope
	err        error // rights cannot be told
	generation uint64
	then       func() // happens after the next question for watching was answered
}

func (a *somebody) may(scope cache.Scope, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scope, a.err = scope, err
	a.generation++
}

func (a *somebody) Name() string { return "somebody" }

func (a *somebody) Scope(_ context.Context, _ string, verb cache.Verb, _ schema.GroupResource) (cache.Scope, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	scope, err := a.scope, a.err
	if a.then != nil && verb == cache.Watch {
		a.then()
		a.then = nil
	}
	return scope, err
}

func (a *somebody) Allowed(context.Context, access.Attributes) (bool, string, error) {
	return false, "", nil
}

func (a *somebody) Path(context.Context, string, string) (bool, error) { return false, nil }

func (a *somebody) Generation(context.Context, string) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.generation, nil
}

// see is a scope of these objects.
func see(names ...string) cache.Scope {
	return cache.NewScope(nil, map[string][]string{"ns": names})
}

// TestRightsTakenAway: of what may not be seen any more nothing is delivered, neither a state
// that waits to be tried again nor an end with the last state, whether something else may
// still be seen or nothing at all.
func TestRightsTakenAway(t *testing.T) {
	for name, left := range map[string]cache.Scope{"some": see("other"), "all": {}} {
		for _, was := range []cache.Scope{cache.WholeScope(), see("changed", "deleted", "known", "other")} {
			t.Run(name, func(t *testing.T) {
				w, s, as := newWorld(t), &sink{}, &somebody{scope: was}
				s.answer = func(d Delivery) error {
					if colorOf(&d) != "red" {
						return &RejectedError{Reason: "not yet"}
					}
					return nil
				}
				h := handler(s)
				h.As, h.Retry.Attempts, h.Retry.Max = as, 1000, 20*time.Millisecond
				w.start(h)
				for _, name := range []string{"changed", "deleted", "known"} {
					w.truth.put(name, "red")
				}
				w.idle()
				expect(t, s, "changed enters red", "deleted enters red", "known enters red")
				w.truth.put("changed", "blue")
				w.truth.remove("deleted")
				w.all()
				until(t, "both are tried", func() bool { st, _ := w.manager.Handler("h"); return st.Retrying == 2 })
				as.may(left, nil)
				time.Sleep(2 * lookInterval) // for which a stream may go on, too
				until(t, "all is forgotten", func() bool { st, _ := w.manager.Handler("h"); return st.Known == 0 && st.Pending == 0 })
				s.mu.Lock()
				s.answer = nil
				s.mu.Unlock()
				w.truth.put("known", "green")
				w.truth.remove("changed")
				w.all()
				time.Sleep(2 * lookInterval)
				expect(t, s)
				if err := w.save(false); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"changed", "deleted"} {
					if e := w.saved(name); e != nil {
						t.Errorf("of what may not be seen any more is saved: %+v", e)
					}
				}
				as.may(was, nil)
				until(t, "seen again", func() bool { return len(s.deliveries()) > 0 })
				w.idle()
				expect(t, s, "known enters green")
			})
		}
	}
}

// TestRightsChangeWhileAsked: rights that become others just after they were asked for hold
// from then on.
func TestRightsChangeWhileAsked(t *testing.T) {
	w, s, as := newWorld(t), &sink{}, &somebody{scope: see("a")}
	as.then = func() { as.scope, as.generation = see("a", "b"), as.generation+1 }
	h := handler(s)
	h.As = as
	w.truth.put("b", "red")
	w.start(h)
	w.all()
	until(t, "it is seen", func() bool { return len(s.deliveries()) > 0 })
	expect(t, s, "b enters red")
}

// TestRightsUnknown: while nobody can tell what may be seen, deliveries wait.
func TestRightsUnknown(t *testing.T) {
	w, s, as := newWorld(t), &sink{}, &somebody{scope: cache.WholeScope()}
	s.answer = func(d Delivery) error { return &RejectedError{Reason: "not yet"} }
	h := handler(s)
	h.As, h.Retry.Attempts = as, 1000
	w.start(h)
	w.truth.put("a", "red")
	w.all()
	until(t, "it is tried", func() bool { st, _ := w.manager.Handler("h"); return st.Retrying == 1 })
	as.may(cache.Scope{}, errors.New("the reviewer is away"))
	until(t, "it waits", func() bool {
		st, _ := w.manager.Handler("h")
		return st.State == stateWaiting && st.InFlight == 0
	})
	s.mu.Lock()
	s.answer = nil
	s.mu.Unlock()
	time.Sleep(4 * h.Retry.Max)
	expect(t, s)
	as.may(cache.WholeScope(), nil)
	w.idle()
	expect(t, s, "a enters red")
}
