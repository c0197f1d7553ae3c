package cache

import (
	"sort"
	"time"
)

const (
	ringMin    = 64
	ringMax    = 16384
	ringBytes  = 32 << 20
	ringWindow = 3 * time.Minute
)

// ringEntry is an event with the versions it is found by.
type ringEntry struct {
	Event
	at time.Time
	// after is the Store's version once this event, and those that became
	// visible with it, were in. It never falls from one entry to the next.
	after string
	// raised: the version was lower before. An event of one namespace can come
	// when another is further; it leaves the version alone, and a reader that
	// holds this version may or may not have seen it.
	raised bool
	bytes  int64 // of the state that the event keeps alive
}

// ring remembers the recent events of a Store. Events have consecutive sequence
// numbers. It grows while the oldest event is younger than ringWindow, within
// ringMax events and ringBytes. Guarded by the lock of its Store.
type ring struct {
	entries []ringEntry // circular; entry seq is at seq % len
	first   uint64      // sequence number of the oldest event
	next    uint64      // of the event to come
	bytes   int64
	// start is the version after which every event is here; what is older has
	// expired. With lost, start itself has expired too: an event that left the
	// version alone is gone.
	start string
	lost  bool
	// abandoned is the highest version of a history that the Store went back from,
	// "" if it never did.
	abandoned string
}

func (r *ring) len() int { return int(r.next - r.first) }

func (r *ring) at(seq uint64) *ringEntry { return &r.entries[seq%uint64(len(r.entries))] }

func (r *ring) push(e ringEntry) {
	r.makeRoom(e.at)
	*r.at(r.next) = e
	r.next++
	r.bytes += e.bytes
	for r.bytes > ringBytes && r.len() > 1 {
		r.evict()
	}
}

func (r *ring) makeRoom(now time.Time) {
	if r.len() == len(r.entries) && len(r.entries) < ringMax &&
		(r.len() == 0 || now.Sub(r.at(r.first).at) < ringWindow) {
		r.resize(max(ringMin, 2*len(r.entries)))
		return
	}
	// Two at a time: as fast as they come, and one more to shrink.
	for range 2 {
		if r.len() > ringMin/2 && (r.len() == len(r.entries) || now.Sub(r.at(r.first).at) >= ringWindow) {
			r.evict()
		}
	}
	if len(r.entries) > ringMin && r.len() < len(r.entries)/4 {
		r.resize(len(r.entries) / 2)
	}
}

func (r *ring) evict() {
	e := r.at(r.first)
	r.start, r.lost = e.after, !e.raised
	r.bytes -= e.bytes
	*e = ringEntry{}
	r.first++
}

func (r *ring) resize(n int) {
	entries := make([]ringEntry, n)
	for seq := r.first; seq < r.next; seq++ {
		entries[seq%uint64(n)] = *r.at(seq)
	}
	r.entries = entries
}

// entriesNow are all entries, the oldest first.
func (r *ring) entriesNow() []ringEntry {
	all := make([]ringEntry, 0, r.len())
	for seq := r.first; seq < r.next; seq++ {
		all = append(all, *r.at(seq))
	}
	return all
}

// retell puts the newest entries in the place of those that are there, and forgets
// the rest. A reader goes on if what it has not read yet is among the former.
func (r *ring) retell(newest []ringEntry) {
	for r.len() > len(newest) {
		r.evict()
	}
	for i, e := range newest {
		at := r.at(r.first + uint64(i))
		r.bytes += e.bytes - at.bytes
		*at = e
	}
}

// skip is push of n events that become visible together at version, which they raised the Store to
// or not, where all are more than there is room for.
func (r *ring) skip(n int, version string, raised bool) {
	r.retell(nil)
	r.next += uint64(n)
	r.first = r.next
	r.start, r.lost = version, !raised
}

// abandon forgets all events, because the Store went back to version from a higher
// one. It leaves out a sequence number, so that no reader stands where it goes on.
func (r *ring) abandon(higher, version string) {
	r.retell(nil)
	r.next++
	r.first = r.next
	r.start, r.lost = version, false
	if Newer(higher, r.abandoned) {
		r.abandoned = higher
	}
}

// seek returns where a reader that has seen everything up to version goes on, now
// being the version of the Store. ok is false when that has expired. So has a
// version that was reached before the Store went back and was not since: its
// reader would wait for it, and pass over all that comes until then.
func (r *ring) seek(version, now string) (seq uint64, ok bool) {
	if r.start == "" || Older(version, r.start) || r.lost && version == r.start {
		return 0, false
	}
	if Older(now, version) && r.abandoned != "" && !Older(r.abandoned, version) {
		return 0, false
	}
	i := sort.Search(r.len(), func(i int) bool {
		return !Older(r.at(r.first+uint64(i)).after, version)
	})
	seq = r.first + uint64(i)
	// Events that raised the Store to this very version have been seen by
	// whoever holds it.
	for seq < r.next && r.at(seq).after == version && r.at(seq).raised {
		seq++
	}
	return seq, true
}
