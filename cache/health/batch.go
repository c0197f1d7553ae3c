package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func job(o *object) Health {
	if c := o.condition("Complete"); c.isTrue() {
		return Health{Reason: "Completed", Message: "it has completed", Since: c.since()}
	}
	if c := o.condition("Failed"); c.isTrue() {
		return c.health(Bad, "Failed", "it has failed")
	}
	if c := o.condition("FailureTarget"); c.isTrue() {
		return c.health(Bad, "Failed", "it fails")
	}
	if isTrue(o.spec.Get("suspend")) {
		return Health{Reason: "Suspended", Message: "it is suspended"}
	}
	if len(o.status) == 0 || when(o.status.Get("startTime")).IsZero() {
		return o.overdue(Health{Status: Progressing, Reason: "Pending", Message: "it has not been started"}, when(o.created), lateControl, Bad)
	}
	return Health{
		Reason: "Running", Since: when(o.status.Get("startTime")),
		Message: fmt.Sprintf("it runs: %d active, %d succeeded, %d failed", count(o.status.Get("active"), 0), count(o.status.Get("succeeded"), 0), count(o.status.Get("failed"), 0)),
	}
}

var jobs = schema.GroupKind{Group: "batch", Kind: "Job"}

var cronJobs = schema.GroupKind{Group: "batch", Kind: "CronJob"}

// cronJob is good by itself: how its Jobs end is theirs to tell. It is so since the last
// of them that succeeded; those that failed before are history.
func cronJob(o *object) Health {
	h := Health{Since: when(o.status.Get("lastSuccessfulTime"))}
	if isTrue(o.spec.Get("suspend")) {
		h.Reason, h.Message = "Suspended", "it is suspended"
	}
	return h
}
