package health

import (
	"strings"
	"time"
)

// Conditions of objects of any kind, by what it means that they are True.
var (
	positive = map[string]bool{"Ready": true, "Available": true, "Healthy": true, "Synced": true, "Accepted": true, "Programmed": true, "Reconciled": true}
	negative = map[string]bool{"Degraded": true, "Failed": true, "Failure": true, "Failing": true, "Stalled": true, "Error": true, "ReconcileError": true, "Unhealthy": true}
	moving   = map[string]bool{"Reconciling": true, "Progressing": true}
)

// custom judges an object of any kind by what conditions and phases mean by convention.
// What has none of them has nothing that could be wrong.
func custom(o *object) Health {
	if !some(o.status) {
		return Health{}
	}
	if h, ok := expiry(o); ok {
		return h
	}
	h, decided := byConditions(o)
	if !decided {
		h, _ = byPhase(o)
	}
	return o.untilExpiry(h)
}

// byConditions takes the worst that conditions say. It is decided if one of them is about
// the object as a whole.
func byConditions(o *object) (worst Health, decided bool) {
	o.conditions(func(c *condition) bool {
		kind := text(c.kind)
		h := Health{}
		switch {
		case negative[kind]:
			if c.isTrue() {
				h, decided = c.health(Bad, kind, "its condition "+kind+" is true"), true
			}
		case moving[kind]:
			if c.isTrue() && !is(c.reason, "NewReplicaSetAvailable") {
				h, decided = c.health(Progressing, kind, "it is being worked on"), true
			}
		case positive[kind]:
			decided = true
			h = o.positive(c, kind)
		}
		if h.Status > worst.Status || h.Status == Good && worst.Status == Good && !h.Since.IsZero() {
			worst = h
		}
		return true
	})
	return worst, decided
}

// positive judges by a condition that should be True. Where it is not, the object may be
// on its way, unless the reason says that something has failed.
func (o *object) positive(c *condition, kind string) Health {
	switch {
	case c.isTrue():
		return Health{Since: c.since()}
	case c.isFalse():
		h := c.health(Progressing, "Not"+kind, notTrue(c, kind, "false"))
		if failure(h.Reason) {
			h.Status = Bad
			return h
		}
		return o.overdue(h, c.since(), stuckAfter, Bad)
	case c.isUnknown():
		h := c.health(Progressing, "Unknown", notTrue(c, kind, "unknown"))
		return o.overdue(h, c.since(), stuckAfter, Unknown)
	}
	return Health{}
}

// notTrue says what is known of a condition that has no message.
func notTrue(c *condition, kind, status string) string {
	message := "its condition " + kind + " is " + status
	if reason := text(c.reason); reason != "" {
		message += ": " + reason
	}
	return message
}

// failures are parts of reasons that speak of what waiting does not mend.
var failures = []string{"Error", "Fail", "Invalid", "NotFound", "Denied", "Forbidden", "Missing", "Unsupported", "Rejected", "Exceeded"}

func failure(reason string) bool {
	for _, word := range failures {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return false
}

// phases are words of status.phase and the like, in lower case. Any other one is good.
var phases = map[string]Status{
	"failed": Bad, "failure": Bad, "error": Bad, "errored": Bad, "degraded": Bad, "unhealthy": Bad, "lost": Bad, "invalid": Bad, "rejected": Bad, "stalled": Bad,
	"crashloopbackoff": Bad, "missing": Bad,
	"pending": Progressing, "creating": Progressing, "provisioning": Progressing, "progressing": Progressing, "updating": Progressing, "upgrading": Progressing,
	"initializing": Progressing, "terminating": Progressing, "deleting": Progressing, "reconciling": Progressing, "waiting": Progressing, "installing": Progressing,
	"inprogress": Progressing, "starting": Progressing, "scheduling": Progressing,
	"unknown": Unknown,
}

// byPhase judges by one word: status.phase, status.state, or status.health.status.
func byPhase(o *object) (Health, bool) {
	for _, path := range [][]string{{"phase"}, {"state"}, {"health", "status"}, {"health"}} {
		word := text(o.status.Get(path...))
		if word == "" {
			continue
		}
		s := phases[strings.ToLower(word)]
		message := cmpText(o.status.Get("message"), "its "+path[0]+" is "+word)
		if path[0] == "health" {
			message = cmpText(o.status.Get("health", "message"), message)
		}
		return Health{Status: s, Reason: word, Message: message}, true
	}
	return Health{}, false
}

// notAfter is when what a certificate-like object stands for is valid no longer.
func (o *object) notAfter() time.Time { return when(o.status.Get("notAfter")) }

// expiry judges an object that has expired.
func expiry(o *object) (Health, bool) {
	end := o.notAfter()
	if end.IsZero() || o.now.Before(end) {
		return Health{}, false
	}
	return Health{Status: Bad, Reason: "Expired", Message: "it expired at " + end.Format(time.RFC3339), Since: end}, true
}

// untilExpiry is a verdict that lasts until the object expires.
func (o *object) untilExpiry(h Health) Health {
	if end := o.notAfter(); !end.IsZero() && (h.Until.IsZero() || end.Before(h.Until)) {
		h.Until = end
	}
	return h
}
