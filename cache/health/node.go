package health

// pressures are conditions of a node that mean trouble when they are True: those of the
// kubelet and the cloud, and those of the node problem detector.
var pressures = map[string]string{
	"MemoryPressure":     "it is short of memory",
	"DiskPressure":       "it is short of disk space",
	"PIDPressure":        "it is short of process ids",
	"NetworkUnavailable": "its network is not set up",

	"KernelDeadlock":              "its kernel is in a deadlock",
	"ReadonlyFilesystem":          "its file system is read-only",
	"CorruptDockerOverlay2":       "the file system of its containers is damaged",
	"FrequentKubeletRestart":      "its kubelet restarts often",
	"FrequentContainerdRestart":   "its container runtime restarts often",
	"FrequentUnregisterNetDevice": "its network devices are not released",
}

// clusterNode judges a Node by what its kubelet reports. That nothing new may be scheduled on it is a
// person's decision and no trouble.
func clusterNode(o *object) Health {
	var isReady, pressure condition
	o.conditions(func(c *condition) bool {
		if is(c.kind, "Ready") {
			isReady = *c
		} else if c.isTrue() && pressure.kind == nil && pressures[text(c.kind)] != "" {
			pressure = *c
		}
		return true
	})
	switch {
	case len(isReady.status) == 0:
		return Health{Status: Unknown, Reason: "Unknown", Message: "its kubelet has not reported yet"}
	case !isReady.isTrue():
		h := isReady.health(Bad, notReady, "its kubelet is not ready")
		h.Reason = notReady
		return h
	case len(pressure.kind) > 0:
		kind := text(pressure.kind)
		h := pressure.health(Bad, kind, pressures[kind])
		h.Reason = kind
		return h
	}
	if h, ok := tainted(o); ok {
		return h
	}
	if isTrue(o.spec.Get("unschedulable")) {
		return Health{Reason: "SchedulingDisabled", Message: "it takes no new pods", Since: isReady.since()}
	}
	return Health{Since: isReady.since()}
}

// tainted judges a node by the taints that Kubernetes itself puts on nodes that cannot be
// used though their kubelet is ready.
func tainted(o *object) (h Health, found bool) {
	elements(o.spec.Get("taints"), func(v value) bool {
		key := v.Get("key")
		switch {
		case is(key, "node.cloudprovider.kubernetes.io/uninitialized"):
			h, found = Health{Status: Progressing, Reason: "Uninitialized", Message: "its cloud provider has not set it up yet"}, true
		case is(key, "node.kubernetes.io/out-of-service"):
			h, found = Health{Status: Bad, Reason: "OutOfService", Message: "it is marked as out of service"}, true
		}
		if found {
			h.Since = when(v.Get("timeAdded"))
		}
		return !found
	})
	return h, found
}
