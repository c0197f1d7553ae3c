package health

import (
	"time"
)

// podStatus are the parts of a pod's status.
type podStatus struct {
	*said
	scheduled, ready condition
}

func parsePodStatus(o *object) podStatus {
	p := podStatus{said: o.statusSaid()}
	o.conditions(func(c *condition) bool {
		switch {
		case is(c.kind, "PodScheduled"):
			p.scheduled = *c
		case is(c.kind, "Ready"):
			p.ready = *c
		}
		return true
	})
	return p
}

func pod(o *object) Health {
	p := parsePodStatus(o)
	h := byPodPhase(o, &p)
	if h.Status != Good && h.Since.IsZero() {
		h.Since = p.ready.since() // since when it is not ready, as containers do not tell
	}
	return h
}

func byPodPhase(o *object, p *podStatus) Health {
	switch {
	case is(p.phase, "Running"):
		return runningPod(o, p)
	case is(p.phase, "Pending"):
		return pendingPod(o, p)
	case is(p.phase, "Succeeded"):
		return Health{Reason: "Completed", Message: "it has completed"}
	case is(p.phase, "Failed"):
		return failedPod(p)
	case is(p.phase, "Unknown"):
		return Health{Status: Unknown, Reason: "Unknown", Message: cmpText(p.message, "its node does not answer")}
	default:
		return o.overdue(Health{Status: Progressing, Reason: "Pending", Message: "nobody has taken it on yet"}, when(o.created), lateControl, Bad)
	}
}

// cmpText is the text of v, or what is said where there is none.
func cmpText(v value, otherwise string) string {
	if s := text(v); s != "" {
		return s
	}
	return otherwise
}

// failedPod tells why a pod that will not run again has failed: what its status says,
// such as Evicted, or what its first failed container does.
func failedPod(p *podStatus) Health {
	h := Health{Status: Bad, Reason: "Failed", Message: "it has failed"}
	if worst, ok := firstTrouble(p, failedExit); ok {
		h = worst
	}
	if r := text(p.reason); r != "" {
		h.Reason, h.Message = r, cmpText(p.message, h.Message)
	}
	return h
}

func pendingPod(o *object, p *podStatus) Health {
	if p.scheduled.isFalse() {
		h := p.scheduled.health(Progressing, "Unschedulable", "it could not be scheduled")
		if h.Reason != "Unschedulable" {
			return h // SchedulingGated: somebody holds it back on purpose
		}
		return o.overdue(h, when(o.created), scheduleWindow, Bad)
	}
	if h, ok := firstTrouble(p, containerTrouble); ok {
		return h
	}
	h := Health{Status: Progressing, Reason: "Pending", Message: "it is pending"}
	if w, ok := firstTrouble(p, containerWaiting); ok {
		h = w
	}
	since := when(p.started)
	if since.IsZero() {
		since = when(o.created)
	}
	return o.overdue(h, since, stuckAfter, Bad)
}

func runningPod(o *object, p *podStatus) Health {
	if h, ok := firstTrouble(p, containerTrouble); ok {
		return h
	}
	if h, ok := unstable(o, p); ok {
		return h
	}
	if p.ready.isTrue() {
		return Health{Since: p.ready.since()}
	}
	if is(p.ready.reason, "PodCompleted") {
		return Health{Reason: "Completed", Message: "it has completed"}
	}
	h := p.ready.health(Progressing, "NotReady", "it runs and is not ready")
	if h.Reason == "ContainersNotReady" || h.Reason == "" {
		h.Reason = "NotReady"
	}
	if w, ok := firstTrouble(p, containerWaiting); ok {
		h.Reason, h.Message = w.Reason, w.Message
	}
	return o.overdue(h, h.Since, stuckAfter, Bad)
}

// flaps is how long after it failed a container that runs again is not trusted, and
// after how many restarts that is called bad.
const (
	flaps      = stuckAfter
	flapsOften = 3
)

// unstable judges a pod that runs, of which a container has failed a short while ago: it
// may be on its way down again.
func unstable(o *object, p *podStatus) (worst Health, found bool) {
	each(p, func(c *container) bool {
		last := c.last
		if len(last) == 0 || c.restarts == 0 || !failed(last) {
			return true
		}
		ended := when(last.Get("finishedAt"))
		until := ended.Add(flaps)
		if ended.IsZero() || !o.now.Before(until) {
			return true
		}
		h := exit(c, last)
		h.Status, h.Until = Progressing, until
		if c.restarts >= flapsOften {
			h.Status = Bad
		}
		h.Message = h.Message + "; it runs again after " + several(c.restarts, "restart")
		if !found || h.Status > worst.Status {
			worst, found = h, true
		}
		return true
	})
	return worst, found
}

// firstTrouble is what the first container, in the order they start, that has one says.
func firstTrouble(p *podStatus, of func(c *container) (Health, bool)) (h Health, found bool) {
	each(p, func(c *container) bool {
		h, found = of(c)
		return !found
	})
	return h, found
}

// each visits the containers of a pod.
func each(p *podStatus, visit func(c *container) bool) {
	if p.init.visit(parseInit, visit) {
		p.containers.visit((*container).parse, visit)
	}
}

func parseInit(c *container, v value) int {
	c.init = true
	return c.parse(v)
}

// earlier is the first of two times that are known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
