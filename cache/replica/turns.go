package replica

import "time"

const (
	// turnsWithin is how long an API server stays as it is before it counts as
	// having made up its mind.
	turnsWithin = time.Minute
	// turnsTold is how many changes within that time the log tells one by one.
	turnsTold = 4
)

// turns keep the log from being filled by an API server that answers and does not
// answer by turns, as one behind a balancer with others that are broken seems to.
// Guarded by the cluster's lock.
type turns struct {
	recent []time.Time // when it changed, within turnsWithin
	many   bool        // more often than is told
}

// changed notes a change. It reports whether the log is to tell of it, and whether
// it is to say that there are many.
func (t *turns) changed(now time.Time) (tell, many bool) {
	t.forget(now)
	t.recent = append(t.recent, now)
	if t.many {
		return false, false
	}
	t.many = len(t.recent) > turnsTold
	return !t.many, t.many
}

// over reports, once, that there were many changes and are none any more.
func (t *turns) over(now time.Time) bool {
	t.forget(now)
	if !t.many || len(t.recent) > 0 {
		return false
	}
	t.many = false
	return true
}

// remaining is how long there must be no change until over; false if there is
// nothing to wait for.
func (t *turns) remaining(now time.Time) (time.Duration, bool) {
	if !t.many || len(t.recent) == 0 {
		return 0, t.many
	}
	return turnsWithin - now.Sub(t.recent[len(t.recent)-1]), true
}

func (t *turns) forget(now time.Time) {
	for len(t.recent) > 0 && now.Sub(t.recent[0]) >= turnsWithin {
		t.recent = t.recent[1:]
	}
}
