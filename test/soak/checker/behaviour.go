package checker

import (
	"slices"
	"time"
)

// Excuse is a time in which a fault may cause lists.
type Excuse struct {
	From, To time.Time // To is zero while it lasts
	// Resources are the ones it may cause lists of; nil: all.
	Resources []string
	// Lists says whether it may cause lists at all.
	Lists bool
	// Own says that the fault must not show at other resources.
	Own bool
	// Name is of the fault.
	Name string
}

func (x Excuse) covers(at time.Time) bool {
	return !at.Before(x.From) && (x.To.IsZero() || !at.After(x.To))
}

// List judges a list of all objects that informerd asked the API server for: some
// fault must excuse it.
func (c *Checker) List(at time.Time, resource, uri string, excuses []Excuse) {
	var under []string
	for _, x := range excuses {
		if !x.covers(at) {
			continue
		}
		if x.Lists && (x.Resources == nil || slices.Contains(x.Resources, resource)) {
			return
		}
		under = append(under, x.Name)
	}
	c.Report(at, "relist", "audit log", "%s: %s, under %v", resource, uri, under)
}

// Sample is the state of all resources at one moment.
type Sample struct {
	At     time.Time
	Tier   string // which informerd
	States map[string]State
	Ready  bool
}

// State is of one resource.
type State struct {
	State, Reason string
	Age           *time.Duration // nil: it does not know
}

// Spread judges samples: while nothing but a fault of one resource is under way,
// and since all others were live, they stay so.
type Spread struct {
	checker *Checker
	healthy map[string]bool // by tier: all but its own were live under this fault
	under   string
}

// NewSpread returns a Spread that reports to c.
func NewSpread(c *Checker) *Spread { return &Spread{checker: c, healthy: map[string]bool{}} }

// Sample judges one; excuses are those of its moment.
func (s *Spread) Sample(sample Sample, excuses []Excuse) {
	var active []Excuse
	for _, x := range excuses {
		if x.covers(sample.At) {
			active = append(active, x)
		}
	}
	if len(active) != 1 || !active[0].Own {
		s.under = ""
		clear(s.healthy)
		return
	}
	own := active[0]
	if s.under != own.Name {
		s.under = own.Name
		clear(s.healthy)
	}
	var ill []string
	for name, state := range sample.States {
		if state.State != "live" && state.State != "unwatched" && !slices.Contains(own.Resources, name) {
			ill = append(ill, name+" "+state.State+": "+state.Reason)
		}
	}
	slices.Sort(ill)
	switch {
	case len(ill) == 0 && sample.Ready:
		s.healthy[sample.Tier] = true
	case s.healthy[sample.Tier]:
		s.healthy[sample.Tier] = false // told once
		s.checker.Report(sample.At, "spread", sample.Tier, "%s is of %v alone, but ready is %t and %d others are not live: %.300v",
			own.Name, own.Resources, sample.Ready, len(ill), ill)
	}
}

// Lease judges the states of a sample by themselves.
func (c *Checker) Lease(sample Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range sample.States {
		reader := sample.Tier + " /v1/resources"
		switch {
		case s.Age != nil:
			c.proofLocked(reader, name, Freshness{Sent: sample.At, Received: sample.At, State: s.State, Age: *s.Age})
		case s.State == "live":
			c.reportLocked(sample.At, "lease", reader, "%s is live without an age", name)
		}
	}
}
