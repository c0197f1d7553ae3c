package collect

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restAfter is for how long a process has done little when it is at rest.
	restAfter = 10 * time.Second
	// restRate is how much a process at rest allocates at most, in bytes a second: a hundred
	// clusters in which nothing happens take half of it.
	restRate = 4 << 20
	// restLeast is the least that is given back, in bytes, and restPart as a part of what is
	// live. To find out what can be takes looking at all that is live, so that it is done once
	// in restPause at most, whether there was work since or not: a hundred clusters at rest
	// have allocated as much by then, which takes a hundredth of a processor.
	restLeast = 32 << 20
	restPart  = 16
	restPause = 30 * time.Second
)

// rest finds out when memory that is not needed is to be given back to the system. Go gives it
// back by and by, and keeps as much as the next collection may let lie about: after a first
// list that is a tenth to a third of what is needed, for as long as the process does nothing.
type rest struct {
	since     time.Time // it has allocated little since then
	allocated uint64    // at that time
	given     time.Time // when something was given back last
}

// usage is what the runtime says of memory, in bytes.
type usage struct {
	allocated uint64 // by now, in all
	live      uint64 // as the last collection found
	garbage   uint64 // what was allocated since: most of it, where little is new that stays
	free      uint64 // held for what will be allocated
}

func usageNow() usage {
	said := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(said)
	u := usage{allocated: said[0].Value.Uint64(), live: said[1].Value.Uint64(), free: said[3].Value.Uint64()}
	if objects := said[2].Value.Uint64(); objects > u.live {
		u.garbage = objects - u.live
	}
	return u
}

// due reports whether the process has been at rest for long enough, and could give back enough.
func (r *rest) due(now time.Time, u usage) bool {
	if r.since.IsZero() || u.allocated-r.allocated > restRate*uint64(restAfter/time.Second) {
		r.since, r.allocated = now, u.allocated
		return false
	}
	if now.Sub(r.since) < restAfter {
		return false
	}
	r.since, r.allocated = now, u.allocated
	if !r.given.IsZero() && now.Sub(r.given) < restPause || u.garbage+u.free < max(restLeast, u.live/restPart) {
		return false
	}
	r.given = now
	return true
}

// giveBack collects garbage and gives all free memory back to the system.
func giveBack() { debug.FreeOSMemory() }
