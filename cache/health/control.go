package health

// namespaceTroubles are the conditions that say why a namespace does not go.
var namespaceTroubles = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
}

func namespaceTrouble(o *object) (string, bool) {
	for _, kind := range namespaceTroubles {
		if c := o.condition(kind); c.isTrue() && len(c.message) > 0 {
			return text(c.message), true
		}
	}
	return "", false
}

// namespace that is not being deleted has nothing that could be wrong.
func namespace(*object) Health { return Health{} }

func definition(o *object) Health {
	if c := o.condition("NamesAccepted"); c.isFalse() {
		return c.health(Bad, "NamesNotAccepted", "its names are taken")
	}
	c := o.condition("Established")
	switch {
	case c.isTrue():
		return Health{Since: c.since()}
	case c.isFalse() && !is(c.reason, "Installing"):
		return c.health(Bad, "NotEstablished", "it is not served")
	}
	h := Health{Status: Progressing, Reason: "Installing", Message: "it is not served yet"}
	return o.overdue(h, when(o.created), lateControl, Bad)
}

func apiService(o *object) Health {
	c := o.condition("Available")
	switch {
	case c.isTrue():
		return Health{Since: c.since()}
	case c.isFalse():
		return c.health(Bad, "NotAvailable", "its API server does not answer")
	}
	h := Health{Status: Progressing, Reason: "Pending", Message: "nobody has tried whether its API server answers"}
	return o.overdue(h, when(o.created), lateControl, Unknown)
}

func signingRequest(o *object) Health {
	if c := o.condition("Denied"); c.isTrue() {
		return c.health(Bad, "Denied", "it was denied")
	}
	if c := o.condition("Failed"); c.isTrue() {
		return c.health(Bad, "Failed", "it could not be signed")
	}
	switch approved := o.condition("Approved"); {
	case text(o.status.Get("certificate")) != "":
		return Health{Reason: "Issued", Since: approved.since()}
	case approved.isTrue():
		return o.overdue(Health{Status: Progressing, Reason: "Approved", Message: "it is approved and not signed"}, approved.since(), stuckAfter, Bad)
	}
	h := Health{Status: Progressing, Reason: "Pending", Message: "nobody has approved it"}
	return o.overdue(h, when(o.created), stuckAfter, Bad)
}

func flowSchema(o *object) Health {
	if c := o.condition("Dangling"); c.isTrue() {
		return c.health(Bad, "Dangling", "its priority level is not there")
	}
	return Health{}
}
