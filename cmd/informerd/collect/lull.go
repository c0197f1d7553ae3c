package collect

import "runtime"

const (
	// lullFrom is how many bytes are live at least where it matters when they are looked at:
	// that takes a third of a second of all processors of a machine with two for 800 MB, and a
	// question that is answered meanwhile takes so much longer.
	lullFrom = 256 << 20
	// lullRate is how much is allocated at most between two looks, in bytes, where little goes
	// on, and lullLooks how many such looks in a row are a lull.
	lullRate  = 512 << 10
	lullLooks = 2
)

// collectNow is a variable so that tests see when it is called.
var collectNow = runtime.GC

// lull finds out when little goes on, so that garbage is collected then and not in the midst of
// the next long question. It goes by what is allocated: a question that makes hardly any garbage
// may be under way.
type lull struct {
	allocated uint64 // at the last look
	looks     int    // in a row at which hardly anything had been allocated
}

// due reports whether little goes on, and half as much garbage lies about as may, which is percent
// of what is live: then a collection is no more than twice as often as it has to be.
func (l *lull) due(u usage, percent int) bool {
	quiet := l.allocated > 0 && u.allocated-l.allocated < lullRate
	l.allocated = u.allocated
	if l.looks++; !quiet {
		l.looks = 0
	}
	return l.looks >= lullLooks && u.live >= lullFrom && u.garbage >= u.live/100*uint64(percent)/2
}
