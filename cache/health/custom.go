package health

import (
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

// Conditions of objects of any kind, by what it means that they are True.
var (
	positive = map[string]bool{"Ready": true, "Available": true, "Healthy": true, "Synced": true, "Accepted": true, "Programmed": true, "Reconciled": true, "ResolvedRefs": true}
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
	// A condition may be about one thing and the phase about all: a Rollout is Available by
	// its old pods while it is Degraded.
	if phase, ok := byPhase(o); ok && (!decided || phase.Status == Bad && h.Status < Bad) {
		if decided && h.Status != Good { // the phase says how bad it is, and the condition why
			phase.Reason, phase.Message, phase.Since = h.Reason, h.Message, h.Since
		}
		h = phase
	}
	return o.untilExpiry(h)
}

// parts are what has conditions of its own within the status of some kinds: the routes,
// policies and listeners of the Gateway API.
var parts = []string{"parents", "ancestors", "listeners"}

// byConditions takes the worst that conditions say, those of parts too. It is decided if one
// of them is about the object as a whole.
func byConditions(o *object) (worst Health, decided bool) {
	worst, decided = byOwnConditions(o)
	for _, name := range parts {
		elements(o.status.Get(name), func(v value) bool {
			if v.Kind() != rawjson.Object {
				return true
			}
			part := *o
			part.said = said{read: true}
			part.said.conditions.parse(v.Get("conditions"), (*condition).parse)
			h, about := byOwnConditions(&part)
			worst, decided = worseOf(worst, h), decided || about
			return true
		})
	}
	return worst, decided
}

// worseOf is the worse of two verdicts, and lasts as long as both do: the other one may be the
// worse one then.
func worseOf(a, b Health) Health {
	until := earlier(a.Until, b.Until)
	if b.Status > a.Status || b.Status == Good && a.Status == Good && !b.Since.IsZero() {
		a = b
	}
	a.Until = until
	return a
}

func byOwnConditions(o *object) (worst Health, decided bool) {
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
		case kind == "Succeeded": // of what runs to its end, for as long as it takes
			decided = true
			h = c.ended()
		}
		worst = worseOf(worst, h)
		return true
	})
	return worst, decided
}

// positive judges by a condition that should be True. Where it is not, the object may be
// on its way, unless the reason says that something has failed.
func (o *object) positive(c *condition, kind string) Health {
	switch {
	case c.isTrue():
		if h, old := o.outdated(c.observed); old {
			return h
		}
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

// ended judges by how something has ended, if it has.
func (c *condition) ended() Health {
	switch {
	case c.isFalse():
		return c.health(Bad, "Failed", "it has failed")
	case c.isUnknown():
		return c.health(Progressing, "Running", "it has not ended yet")
	}
	return Health{Since: c.since()}
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
	"crashloopbackoff": Bad, "missing": Bad, "red": Bad,
	"pending": Progressing, "creating": Progressing, "provisioning": Progressing, "progressing": Progressing, "updating": Progressing, "upgrading": Progressing,
	"initializing": Progressing, "terminating": Progressing, "deleting": Progressing, "reconciling": Progressing, "waiting": Progressing, "installing": Progressing,
	"inprogress": Progressing, "starting": Progressing, "scheduling": Progressing,
	"unknown": Unknown,
}

// failedPhases are parts of such words, of which there are more than anybody knows:
// PartiallyFailed, FailedValidation.
var failedPhases = []string{"Failed", "Failure", "Error", "Invalid", "Rejected"}

func phaseStatus(word string) Status {
	if s, known := phases[strings.ToLower(word)]; known {
		return s
	}
	if slices.ContainsFunc(failedPhases, func(part string) bool { return strings.Contains(word, part) }) {
		return Bad
	}
	return Good
}

// byPhase judges by one word: status.phase, status.state, or status.health.status. The first
// one counts, unless another one is bad.
func byPhase(o *object) (first Health, found bool) {
	for _, path := range [][]string{{"phase"}, {"state"}, {"health", "status"}, {"health"}} {
		word := text(o.status.Get(path...))
		s := phaseStatus(word)
		if word == "" || found && s != Bad {
			continue
		}
		message := cmpText(o.status.Get("message"), "its "+path[0]+" is "+word)
		if path[0] == "health" {
			message = cmpText(o.status.Get("health", "message"), message)
		}
		first, found = Health{Status: s, Reason: word, Message: message}, true
		if s == Bad {
			break
		}
	}
	return first, found
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
