package health

func service(o *object) Health {
	if !is(o.spec.Get("type"), "LoadBalancer") || some(o.status.Get("loadBalancer", "ingress")) {
		return Health{}
	}
	h := Health{Status: Progressing, Reason: "NoAddress", Message: "its load balancer has no address"}
	return o.overdue(h, when(o.created), stuckAfter, Bad)
}

// ingress without an address may be served all the same: there are controllers that
// write none. After a while nobody can tell from the object.
func ingress(o *object) Health {
	if some(o.status.Get("loadBalancer", "ingress")) {
		return Health{}
	}
	h := Health{Status: Progressing, Reason: "NoAddress", Message: "no controller has given it an address"}
	return o.overdue(h, when(o.created), stuckAfter, Unknown)
}
