package rbac

import (
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
			now[of] = d.View
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.sources.err()
	s.sources = now
	if (before == nil) != (now.err() == nil) {
		s.raise()
	}
	return true
}

func (s sink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.sources = newState(), sources{}
	s.known.forget()
	s.raise()
}

// Stamp knows of no object which version it was read from: it costs memory, and all
// objects are told of anew only when their store is another one.
func (s sink) Stamp(cache.Resource, cache.Key) (uint64, bool) { return 0, false }

func (s sink) Keys(r cache.Resource) []cache.Key {
	of, _ := sourceOf(r)
	return s.keys(of)
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
