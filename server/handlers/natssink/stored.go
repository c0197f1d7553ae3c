package natssink

import (
	"hash/maphash"
	"sync"
)

// remembered is how many ids are: of 500 deliveries a second, those of two minutes, for which a
// stream remembers them, too, if it is not told otherwise.
const remembered = 1 << 16

// stored are the ids of the deliveries that this process knows to be stored, the last ones.
//
// A stream drops a message whose id it has seen. That is meant for a delivery whose
// acknowledgement was lost. But a state may also be delivered twice on purpose: an object that
// left because of rights or of a changed question comes back as it was, and the last that a
// consumer knows of it must not be that it left. Then the id is one that was acknowledged.
type stored struct {
	mu   sync.Mutex // guards all below
	seed maphash.Seed
	ids  map[uint64]struct{}
	ring []uint64
	next int
}

func (s *stored) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		return false
	}
	_, is := s.ids[maphash.String(s.seed, id)]
	return is
}

func (s *stored) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids, s.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	h := maphash.String(s.seed, id)
	if _, is := s.ids[h]; is {
		return
	}
	if len(s.ring) < remembered {
		s.ring = append(s.ring, h)
	} else {
		delete(s.ids, s.ring[s.next])
		s.ring[s.next] = h
		s.next = (s.next + 1) % remembered
	}
	s.ids[h] = struct{}{}
}
