package health

import "fmt"

func horizontalAutoscaler(o *object) Health {
	if c := o.condition("AbleToScale"); c.isFalse() {
		return c.health(Bad, "UnableToScale", "it cannot scale")
	}
	if c := o.condition("ScalingActive"); c.isFalse() && !is(c.reason, "ScalingDisabled") {
		return c.health(Bad, "ScalingInactive", "it cannot tell how many replicas are needed")
	}
	if c := o.condition("ScalingLimited"); c.isTrue() && is(c.reason, "TooManyReplicas") {
		return c.health(Good, "TooManyReplicas", "it is at its maximum")
	}
	return Health{}
}

// budget judges by whether the pods it protects are enough. That it allows no eviction
// while they are is what it is for.
func budget(o *object) Health {
	allowed := o.condition("DisruptionAllowed")
	if is(allowed.reason, "SyncFailed") {
		return allowed.health(Bad, "SyncFailed", "it cannot be worked out")
	}
	have, want := count(o.status.Get("currentHealthy"), 0), count(o.status.Get("desiredHealthy"), 0)
	if have < want && count(o.status.Get("expectedPods"), 0) > 0 {
		return Health{
			Status: Progressing, Reason: "InsufficientPods", Since: allowed.since(),
			Message: fmt.Sprintf("%d of %s are healthy that have to be: none may be evicted", have, several(want, "pod")),
		}
	}
	return Health{}
}
