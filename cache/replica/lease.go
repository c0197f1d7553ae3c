package replica

import (
	"time"

	"github.com/informerd/informerd/cache"
)

// Lease is how long a proof that a copy is current lasts. The API server sends each
// watch a bookmark a minute (kube-apiserver cacher/cache_watcher.go,
// nextBookmarkTime, and some seconds late at most), so a watch that works renews
// it in time. It runs out by the monotonic clock, which no change of the time of
// day moves.
const Lease = 75 * time.Second

// standing is what one source knows of its copy. Its states are those of
// cache.State, and only these lead from one to another:
//
//	syncing   -> live    a list of the latest version
//	syncing   -> warm    a snapshot
//	warm      -> live    a proof: a bookmark, or a list of the latest version
//	live      -> stale   the lease is over, a fault, or a doubt
//	stale     -> live    a proof
//	syncing   -> failed  a fault of the resource's own
//	any       -> forbidden, until the API server lets it go on
//
// Nothing but a proof makes a copy live: no event and no answered request does, and
// the end of a watch only where the API server sends no bookmarks.
type standing struct {
	held    bool      // the store has the source's objects
	refused bool      // the API server refuses list or watch
	proof   time.Time // of the last proof, zero without one
	here    bool      // the proof came in this process, not from a snapshot
	cause   error     // what speaks against it since; nil if nothing does
	own     bool      // cause is a fault of this resource alone
}

// proved notes that the copy was current at a moment.
func (s *standing) proved(at time.Time) {
	// A bookmark of a slower server may prove less than one before did. A proof of
	// another process is of another clock.
	if at.After(s.proof) || !s.here {
		s.proof = at
	}
	s.held, s.here, s.refused, s.cause, s.own = true, true, false, nil, false
}

// doubted notes what speaks against the copy being current.
func (s *standing) doubted(cause error) { s.cause, s.own = cause, false }

// live reports whether the copy is known to be current.
func (s standing) live(now time.Time, lease time.Duration) bool {
	return s.held && s.here && s.cause == nil && now.Sub(s.proof) < lease
}

// state is the standing in one word.
func (s standing) state(now time.Time, lease time.Duration) cache.State {
	switch {
	case s.refused:
		return cache.Forbidden
	case !s.held && s.own:
		return cache.Failed
	case !s.held:
		return cache.Syncing
	case s.live(now, lease):
		return cache.Live
	case s.here:
		return cache.Stale
	default:
		return cache.Warm
	}
}

// reason says why the copy is not live.
func (s standing) reason(now time.Time, lease time.Duration) string {
	if s.cause != nil {
		return s.cause.Error()
	}
	switch s.state(now, lease) {
	case cache.Syncing:
		return "first sync under way"
	case cache.Warm:
		return "resuming from the snapshot, not yet proven caught up"
	case cache.Stale:
		return "the API server has proven nothing for " + lease.String()
	}
	return ""
}

// rank orders states from good to bad.
func rank(s cache.State) int {
	for n, v := range []cache.State{cache.Live, cache.Warm, cache.Stale, cache.Syncing, cache.Failed} {
		if s == v {
			return n
		}
	}
	return -1
}
