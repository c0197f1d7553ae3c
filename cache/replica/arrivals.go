package replica

import "time"

const (
	// longPause is how long a stream may be left unread before that matters.
	longPause = 500 * time.Millisecond
	// emptied is how long to wait for the next event shows that nothing waited to be read:
	// less may be what decoding takes on a machine that has no time.
	emptied = 100 * time.Millisecond
	// catchesUp is how long after a pause a stream that never was empty since may still
	// bring what came during it.
	catchesUp = 10 * time.Second
)

// arrivals dates what a stream brings. A bookmark has no time, and is taken to have been
// sent when it is read; but one may have waited to be, for as long as nobody read: while
// the process was stopped, the history was judged, or an event was slow to be entered.
// What is read after such a pause, and before the stream is empty, is dated from its
// beginning, which is too old at worst.
type arrivals struct {
	pulse  *pulse
	opened time.Time // when the stream was
	heldUp time.Time // the end of the last pause of the process that is accounted for
	from   time.Time // when the last pause began
	until  time.Time // what is read before may have come in it
}

// paused notes that the stream was not read for a while.
func (a *arrivals) paused(from, to time.Time) {
	if to.Sub(from) < longPause {
		return
	}
	if from.After(a.until) || from.Before(a.from) {
		a.from = from // else it goes on with the one before
	}
	if until := to.Add(catchesUp); until.After(a.until) {
		a.until = until
	}
}

// waited notes that the next event was waited for.
func (a *arrivals) waited(from, to time.Time) {
	if to.Sub(from) >= emptied {
		a.until = time.Time{}
	}
	if stopped, on := a.pulse.heldUp(to); on.After(a.heldUp) && on.Add(catchesUp).After(to) {
		a.heldUp = on
		a.paused(stopped, on)
	}
}

// date is the earliest moment at which what is read now may have been sent.
func (a *arrivals) date(now time.Time) time.Time {
	switch {
	case !now.Before(a.until):
		return now
	case a.from.Before(a.opened):
		return a.opened
	}
	return a.from
}
