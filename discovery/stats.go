package discovery

import "sync/atomic"

// Stats counts what a Discoverer did since New.
type Stats struct {
	Looks       uint64 // looks at discovery
	NotModified uint64 // of these, the server said that nothing changed
	Failures    uint64 // of these, there was no answer
	Legacy      uint64 // of these, discovery was not aggregated
	Triggers    uint64 // looks asked for by the watches or by callers
	Changes     uint64 // Sets reported
	Watches     uint64 // watches begun on CRDs and APIServices
	Lists       uint64 // LISTs sent, to a server that rejects streaming lists
}

type counters struct {
	looks, notModified, failures, legacy, triggers, changes atomic.Uint64
}

// Stats returns the counts so far.
func (d *Discoverer) Stats() Stats {
	c := &d.counters
	return Stats{
		Looks:       c.looks.Load(),
		NotModified: c.notModified.Load(),
		Failures:    c.failures.Load(),
		Legacy:      c.legacy.Load(),
		Triggers:    c.triggers.Load(),
		Changes:     c.changes.Load(),
		Watches:     d.crds.watches.Load() + d.services.watches.Load(),
		Lists:       d.crds.lists.Load() + d.services.lists.Load(),
	}
}
