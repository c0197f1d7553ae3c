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
	return o.overdue(h, when(o.created), stuckAfter, Bad)
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
