package search

import (
	"iter"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// sink is a Search as its updater sees it. The updater alone writes, so that it
// may read without a lock.
type sink struct{ *Search }

func (s sink) Learn(deltas []follow.Delta) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		k.known = false
		k.view.Hold(nil)
	}
	for i := range deltas {
		if d := &deltas[i]; !d.Gone {
			s.learn(d.View)
		}
	}
	return true
}

func (s sink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.unread = newState(), 0
}

func (s sink) Stamp(r cache.Resource, key cache.Key) (uint64, bool) {
	id, ok := s.find(s.kind(r), key)
	if !ok {
		return 0, false
	}
	return s.doc(id).stamp, true
}

func (s sink) Keys(r cache.Resource) iter.Seq[cache.Key] {
	return func(yield func(cache.Key) bool) {
		for id := range s.kinds[s.kind(r)].byKey.All() {
			if !yield(s.doc(docID(id)).key()) {
				return
			}
		}
	}
}

func (s sink) Read(r cache.Resource, o *cache.Object) *content {
	return s.readers.of(r.GVR.GroupResource()).read(o)
}

func (s sink) Enter(r cache.Resource, read []*content, gone []cache.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kind(r)
	for _, key := range gone {
		s.remove(k, key)
	}
	for _, c := range read {
		s.put(k, c)
		if c.unread {
			s.unread++
		}
		c.release()
	}
}

// kind is one that Learn has told of.
func (s sink) kind(r cache.Resource) kindID { return s.byResource[r.GVR.GroupResource()] }
