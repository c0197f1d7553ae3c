package checker

import "time"

const (
	// remembered is how long, at the least, informerd can go on from any version: its
	// rings of events hold three minutes of what is changed here.
	remembered = time.Minute
	// noticed is how long it may take until copies are replaced after a restore.
	noticed = 2 * time.Minute
)

// expiredLocked judges a 410. The version that a reader comes back with is forgotten
// after minutes, when the copy was listed anew meanwhile, in another process, and in
// another history; else it must be gone on with.
func (w *Watch) expiredLocked(r record) {
	c := w.checker
	c.counts.Expired++
	if w.broken || r.other || r.at.Sub(w.last) > remembered || w.relistedLocked(r) {
		return
	}
	for _, e := range c.log.Epochs()[1:] {
		if e.Began().Add(noticed).After(w.since) {
			return
		}
	}
	c.reportLocked(r.at, "expired", w.reader, "%s at %d is told 410, %.1f s after it was told something", w.resource, w.at, r.at.Sub(w.last).Seconds())
}
