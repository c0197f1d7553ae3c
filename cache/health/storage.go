package health

func claim(o *object) Health {
	phase := o.status.Get("phase")
	switch {
	case is(phase, "Bound"):
		return Health{}
	case is(phase, "Lost"):
		return Health{Status: Bad, Reason: "ClaimLost", Message: "its volume " + text(o.spec.Get("volumeName")) + " is gone"}
	}
	h := Health{Status: Progressing, Reason: "Pending", Message: "no volume is bound to it"}
	if class := text(o.spec.Get("storageClassName")); class != "" {
		h.Message += "; its storage class is " + class
	}
	// Some claims wait for the first pod that uses them, for as long as it takes
	// (volumeBindingMode WaitForFirstConsumer): nobody has begun on those, and a pod that
	// waits for one that should have been is unschedulable.
	then := Unknown
	if o.provisioned() {
		then = Bad
	}
	return o.overdue(h, when(o.created), stuckAfter, then)
}

// provisioned reports whether a volume for the claim has been asked for or named.
func (o *object) provisioned() bool {
	for _, name := range []string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node"} {
		if text(o.annotations.Get(name)) != "" {
			return true
		}
	}
	return text(o.spec.Get("volumeName")) != ""
}

func volume(o *object) Health {
	phase := o.status.Get("phase")
	h := Health{Reason: text(phase), Since: when(o.status.Get("lastPhaseTransitionTime"))}
	switch {
	case is(phase, "Failed"):
		h.Status, h.Message = Bad, cmpText(o.status.Get("message"), "it could not be given back")
		if r := text(o.status.Get("reason")); r != "" {
			h.Reason = r
		}
	case is(phase, "Pending"):
		h.Status, h.Message = Progressing, "it is not available yet"
	}
	return h
}

// attachment judges by what the driver says of attaching a volume to a node.
func attachment(o *object) Health {
	if isTrue(o.status.Get("attached")) {
		return Health{}
	}
	h := Health{Status: Progressing, Reason: "NotAttached", Message: "it is being attached to node " + text(o.spec.Get("nodeName"))}
	if fault := o.status.Get("attachError"); some(fault) {
		return Health{
			Status: Bad, Reason: "AttachError", Since: when(fault.Get("time")),
			Message: cmpText(fault.Get("message"), "its volume cannot be attached"),
		}
	}
	return o.overdue(h, when(o.created), stuckAfter, Bad)
}

// snapshot judges one of a volume, or what stands for it at its driver.
func snapshot(o *object) Health {
	if isTrue(o.status.Get("readyToUse")) {
		return Health{Since: when(o.status.Get("creationTime"))}
	}
	if fault := o.status.Get("error"); some(fault) {
		return Health{
			Status: Bad, Reason: "SnapshotError", Since: when(fault.Get("time")),
			Message: cmpText(fault.Get("message"), "it cannot be taken"),
		}
	}
	h := Health{Status: Progressing, Reason: "NotReadyToUse", Message: "it is not ready to use yet"}
	return o.overdue(h, when(o.created), stuckAfter, Unknown) // a large one takes its time
}
