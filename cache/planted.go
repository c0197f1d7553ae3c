//go:build planted

package cache

import (
	"os"
	"sync/atomic"
)

// planting says that this program has bugs on purpose, for test/soak to find:
// INFORMERD_PLANT chooses which. No released binary is built with this tag.
const planting = true

var plant, planted = os.Getenv("INFORMERD_PLANT"), atomic.Int64{}

// plantedEvery is how many chances of a bug pass between two that are taken.
const plantedEvery = 100

// plantedLocked makes the bug that was chosen of an event, now and then: drop
// forgets it, ghost keeps what it deletes, old goes on to serve what it replaced.
func (s *Store) plantedLocked(t EventType, o *Object) bool {
	held := s.contents.find(o)
	switch {
	case plant == "drop":
	case plant == "ghost" && t == Deleted && held != nil:
	case plant == "old" && t == Modified && held != nil:
	default:
		return false
	}
	return planted.Add(1)%plantedEvery == 0
}
