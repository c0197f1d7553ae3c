package replica

import "time"

const (
	// longPause is how long a stream may be left unread before that matters.
	longPause = 500 * time.Millisecond
	// catchesUp is how long after a pause a stream may still bring what came during it.
	catchesUp = 2 * time.Second
)

// arrivals dates what a stream brings. A bookmark has no time, and is taken to have been
// sent when it is read; but one may have waited to be, for as long as nobody read: while
// the process was stopped, the history was judged, or an event was slow to be entered.
// What is read soon after such a pause is dated from its beginning, which is too old at
// worst, and never too new.
type arrivals struct {
	pulse  *pulse
	opened time.Time // when the stream was
	from   time.Time // when the last pause began
	until  time.Time // what is read before may have come in it
}

// paused notes that the stream was not read for a while.
func (a *arrivals) paused(from, to time.Time) {
	if to.Sub(from) < longPause {
		return
	}
	if from.After(a.until) {
		a.from = from // else it goes on with the one before
	} else if from.Before(a.from) {
		a.from = from
	}
	if until := to.Add(catchesUp); until.After(a.until) {
		a.until = until
	}
}

// date is the earliest moment at which what is read now may have been sent.
func (a *arrivals) date(now time.Time) time.Time {
	if from, to := a.pulse.heldUp(now); !to.IsZero() && to.Add(catchesUp).After(a.until) {
		a.paused(from, to)
	}
	switch {
	case !now.Before(a.until):
		return now
	case a.from.Before(a.opened):
		return a.opened
	}
	return a.from
}
