package health

import (
	"fmt"
	"time"
)

// ready says how many of those wanted are ready.
func ready(have, want int64, what string) string {
	return fmt.Sprintf("%d of %d %s are ready", have, want, what)
}

// unavailable is the reason that Kubernetes has for a Deployment with too few pods.
const unavailable = "MinimumReplicasUnavailable"

func deployment(o *object) Health {
	want := count(o.spec.Get("replicas"), 1)
	have := count(o.status.Get("readyReplicas"), 0)
	total := count(o.status.Get("replicas"), 0)
	updated := count(o.status.Get("updatedReplicas"), 0)
	available := count(o.status.Get("availableReplicas"), 0)
	progress, failure, avail := o.condition("Progressing"), o.condition("ReplicaFailure"), o.condition("Available")
	replicas := ready(have, want, "replicas")
	if failure.isTrue() {
		h := failure.health(Bad, "FailedCreate", "pods cannot be made")
		h.Message = replicas + ": " + h.Message
		return h
	}
	if is(progress.reason, "ProgressDeadlineExceeded") {
		return Health{Status: Bad, Reason: "ProgressDeadlineExceeded", Message: replicas + ": the rollout makes no progress", Since: progress.since()}
	}
	h := Health{Status: Progressing, Reason: "Progressing", Message: replicas, Since: avail.since()}
	if avail.isTrue() {
		h.Since = when(progress.updated)
	}
	switch {
	case want == 0 && total == 0:
		return Health{}
	case avail.isFalse():
		h.Reason = cmpText(avail.reason, unavailable)
		return o.overdue(h, avail.since(), o.deadline(), Bad)
	case updated < want:
		h.Message = fmt.Sprintf("%s; %d of %d are of the latest version", replicas, updated, want)
		if isTrue(o.spec.Get("paused")) {
			h.Reason, h.Message = "Paused", h.Message+", and the rollout is paused"
		}
		return h
	case total > want:
		h.Message = fmt.Sprintf("%s; %d of older versions are left", replicas, total-want)
		return h
	case have < want, available < updated:
		h.Reason = unavailable
		if !avail.isTrue() {
			return o.overdue(h, when(o.created), o.deadline(), Bad)
		}
		return h
	case !avail.isTrue():
		h.Message = "nobody has said that it is available"
		return h
	}
	return Health{Message: replicas, Since: avail.since()}
}

// deadline is how long a rollout may make no progress.
func (o *object) deadline() time.Duration {
	if seconds, ok := number(o.spec.Get("progressDeadlineSeconds")); ok && seconds > 0 && seconds < 1<<31-1 {
		return time.Duration(seconds) * time.Second
	}
	return stuckAfter
}

func replicaSet(o *object) Health {
	want := count(o.spec.Get("replicas"), 1)
	have := count(o.status.Get("readyReplicas"), 0)
	total := count(o.status.Get("replicas"), 0)
	replicas := ready(have, want, "replicas")
	if failure := o.condition("ReplicaFailure"); failure.isTrue() {
		h := failure.health(Bad, "FailedCreate", "pods cannot be made")
		h.Message = replicas + ": " + h.Message
		return h
	}
	h := Health{Status: Progressing, Reason: notReady, Message: replicas}
	switch {
	case have < want, count(o.status.Get("availableReplicas"), 0) < want, count(o.status.Get("fullyLabeledReplicas"), 0) < want:
		return o.none(h, have)
	case total > want:
		h.Reason, h.Message = "Progressing", fmt.Sprintf("%d replicas more than wanted are left", total-want)
		return h
	}
	return Health{Message: replicas}
}

const notReady = "NotReady"

// none calls a workload bad that none is ready of for so long as it exists: it tells no
// other time. Of one that has some, nobody knows for how long others are missing.
func (o *object) none(h Health, have int64) Health {
	if have > 0 {
		return h
	}
	h = o.overdue(h, when(o.created), stuckAfter, Bad)
	h.Since = time.Time{}
	return h
}

func statefulSet(o *object) Health {
	want := count(o.spec.Get("replicas"), 1)
	have := count(o.status.Get("readyReplicas"), 0)
	total := count(o.status.Get("replicas"), 0)
	updated := count(o.status.Get("updatedReplicas"), 0)
	strategy := o.spec.Get("updateStrategy")
	partition := count(strategy.Get("rollingUpdate", "partition"), 0)
	current, next := o.status.Get("currentRevision"), o.status.Get("updateRevision")
	replicas := ready(have, want, "replicas")
	h := Health{Status: Progressing, Reason: notReady, Message: replicas}
	switch {
	case total < want, have < want:
		if text(current) == text(next) {
			return o.none(h, have)
		}
		return h
	case total > want:
		h.Reason, h.Message = "Progressing", fmt.Sprintf("%d replicas more than wanted are left", total-want)
		return h
	case is(strategy.Get("type"), "OnDelete"):
	case updated < want-partition && text(current) != text(next):
		h.Reason, h.Message = "Progressing", fmt.Sprintf("%s; %d of %d are of the latest version", replicas, updated, want-partition)
		return h
	}
	return Health{Message: replicas}
}

func daemonSet(o *object) Health {
	want, known := number(o.status.Get("desiredNumberScheduled"))
	have := count(o.status.Get("numberReady"), 0)
	updated := count(o.status.Get("updatedNumberScheduled"), 0)
	pods := ready(have, want, "pods")
	h := Health{Status: Progressing, Reason: notReady, Message: pods}
	switch {
	case !known || !some(o.status):
		h.Reason, h.Message = "Progressing", "its controller has not counted nodes yet"
		return h
	case have < want, count(o.status.Get("numberAvailable"), 0) < want, count(o.status.Get("currentNumberScheduled"), 0) < want:
		return o.none(h, have)
	case updated < want && !is(o.spec.Get("updateStrategy", "type"), "OnDelete"):
		h.Reason, h.Message = "Progressing", fmt.Sprintf("%s; %d of %d are of the latest version", pods, updated, want)
		return h
	}
	return Health{Message: pods}
}
