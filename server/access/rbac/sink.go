package rbac

import (
	"iter"
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// sink is Grants as their updater sees them. The updater alone writes, so that it
// may read without a lock.
type sink struct{ *Grants }

// Learn takes in what the copies are worth. What was read stays what it means.
func (s sink) Learn(deltas []follow.Delta) bool {
	var now sources
	for i := range deltas {
		d := &deltas[i]
		if of, ok := sourceOf(d.View.Spec.Resource); ok && !d.Gone {
			now[of] = copiedAs(of, d.View)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = now
	// Time alone may have made the rest too old, so that it counts what was told.
	if told := now.err(s.maxAge) == nil; told != s.told {
		s.told = told
		s.raise()
	}
	return true
}

func (s sink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.sources, s.told = newState(), sources{}, false
	s.known.forget()
	s.raise()
}

// Stamp knows of no object which version it was read from: it costs memory, and all
// objects are told of anew only when their store is another one.
func (s sink) Stamp(cache.Resource, cache.Key) (uint64, bool) { return 0, false }

func (s sink) Keys(r cache.Resource) iter.Seq[cache.Key] {
	of, _ := sourceOf(r)
	return slices.Values(s.keys(of))
}

func (s sink) Read(r cache.Resource, o *cache.Object) *parsed {
	of, _ := sourceOf(r)
	return parse(of, o)
}

func (s sink) Enter(r cache.Resource, read []*parsed, gone []cache.Key) {
	of, _ := sourceOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := update{state: s.state}
	if u.enter(of, read, gone); u.touched {
		s.raise()
	}
}
