package health

import (
	"fmt"
	"time"
)

// How long something may be on its way before it is called bad. Kubernetes itself gives
// a rollout ten minutes (progressDeadlineSeconds), kstatus a pod 15 seconds to be
// scheduled.
const (
	stuckAfter     = 10 * time.Minute
	scheduleWindow = 15 * time.Second
	// A pod is to be gone at its deletionTimestamp, all else was asked to go then.
	podLingers  = time.Minute
	goneWithin  = 5 * time.Minute
	lateControl = stuckAfter
)

// overdue calls h, which is Progressing since a time, by another status when patience is
// over. Of what nobody knows since when it is, nobody knows that either.
func (o *object) overdue(h Health, since time.Time, patience time.Duration, then Status) Health {
	if since.IsZero() {
		return h
	}
	if h.Since.IsZero() {
		h.Since = since
	}
	if end := since.Add(patience); o.now.Before(end) {
		h.Until = end
	} else {
		h.Status = then
	}
	return h
}

// terminating judges an object that is being deleted.
func (o *object) terminating() (Health, bool) {
	since := when(o.deleted)
	if since.IsZero() {
		return Health{}, false
	}
	h := Health{Status: Progressing, Reason: "Terminating", Message: "it is being deleted", Since: since}
	if some(o.finalizers) {
		h.Message = "it is being deleted and waits for its finalizers: " + words(o.finalizers)
	}
	patience := goneWithin
	if is(o.kind, "Pod") {
		patience = podLingers
	}
	if is(o.kind, "Namespace") {
		if c, ok := namespaceTrouble(o); ok {
			h.Message = "it is being deleted: " + c
		}
	}
	return o.overdue(h, since, patience, Bad), true
}

// unobserved judges an object whose controller says that it has not seen its latest
// version: all that its status says is about an older one.
func (o *object) unobserved() (Health, bool) {
	if len(o.status) == 0 {
		return Health{}, false
	}
	return o.outdated(o.statusSaid().observed)
}

// outdated judges an object of which what is said is about another generation.
func (o *object) outdated(seen value) (Health, bool) {
	generation, ok := number(o.generation)
	if !ok {
		return Health{}, false
	}
	observed, ok := number(seen)
	if !ok || observed == generation {
		return Health{}, false
	}
	return Health{
		Status: Progressing, Reason: "LatestGenerationNotObserved",
		Message: fmt.Sprintf("its controller has seen generation %d, and not yet %d", observed, generation),
	}, true
}
