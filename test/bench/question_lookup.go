package main

import "github.com/informerd/informerd/test/standin"

// lookupOf is the number of the pod that lookups are about.
const lookupOf = 4711

// lookups are questions that an index of all that is in JSON, as PostgreSQL has it, can answer:
// for the pods of one app, which informerd has an index of, too, and for the pod with one
// address, which it has none of.
func lookups(pods *standin.Pods) []question {
	of := lookupOf % pods.Count
	app, address := pods.App(of), pods.IP(of)
	return []question{{
		name:  lookupApp,
		about: app,
		query: map[string]string{"labelSelector": "app=" + app},
		read:  readObjects,
		picks: func(pods *standin.Pods, i int) bool { return pods.App(i) == app },
	}, {
		name:  lookupAddress,
		about: address,
		query: map[string]string{"fieldSelector": "status.podIP=" + address},
		read:  readObjects,
		picks: func(pods *standin.Pods, i int) bool { return pods.IP(i) == address },
	}}
}

// Names of lookups.
const (
	lookupApp     = "app"
	lookupAddress = "address"
)
