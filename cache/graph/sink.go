package graph

import (
	"iter"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// sink is a Graph as its updater sees it. The updater alone writes, so that it
// may read without a lock.
type sink struct{ *Graph }

// Learn takes in what resources there are. It returns false when references
// read before name something else now.
func (s sink) Learn(deltas []follow.Delta) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make([]bool, len(s.all))
	for i := range deltas {
		d := &deltas[i]
		if d.Gone {
			continue
		}
		id, ok := s.learn(&d.View.Spec, s.readers)
		if !ok {
			return false
		}
		s.all[id].view, s.all[id].version = *d.View, d.Version
		if int(id) < len(seen) {
			seen[id] = true
		}
	}
	for id, ok := range seen {
		if !ok {
			s.all[id].forget()
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
	if !ok || !s.nodeOf(id).present {
		return 0, false
	}
	return s.nodeOf(id).stamp, true
}

func (s sink) Keys(r cache.Resource) iter.Seq[cache.Key] {
	return func(yield func(cache.Key) bool) {
		for id := range s.all[s.kind(r)].byKey.All() {
			if n := s.nodes.At(id); n.present && !yield(n.key()) {
				return
			}
		}
	}
}

func (s sink) Read(r cache.Resource, o *cache.Object) *links { return s.all[s.kind(r)].reader.read(o) }

func (s sink) Enter(r cache.Resource, read []*links, gone []cache.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kind(r)
	for _, key := range gone {
		s.remove(k, key)
	}
	for _, l := range read {
		s.put(k, l)
		if l.unread {
			s.unread++
		}
		l.release()
	}
}

// kind is one that Learn has told of.
func (s sink) kind(r cache.Resource) kindID { return s.byResource[r.GVR.GroupResource()] }
