package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// Selection is the part of a resource that was asked for.
type Selection struct {
	Namespace string // empty: all
	Tier      string // value of the label "tier"; empty: any
}

func (s Selection) keeps(key string, o history.Object) bool {
	return (s.Namespace == "" || strings.HasPrefix(key, s.Namespace+"/")) && (s.Tier == "" || s.Tier == o.Tier)
}

// Freshness is what an answer says of itself, and when it was given.
type Freshness struct {
	// Instance is the process that answered; after its end a copy may begin with
	// what was saved last.
	Instance       string
	Sent, Received time.Time
	State          string        // empty: it does not say
	Age            time.Duration // meaningless without a State
}

// Answer is a list.
type Answer struct {
	Freshness
	Reader    string
	Resource  string
	Selection Selection
	Version   int64
	Objects   map[string]history.Object
	// AtLeast and Exactly are the versions asked for; 0: none.
	AtLeast, Exactly int64
}

// Single is the answer to a question for one object.
type Single struct {
	Freshness
	Reader   string
	Resource string
	Key      string
	Found    bool
	Object   history.Object
	Version  int64 // of the copy; 0: it does not say
}

// floor is the position below which a reader must not see a resource.
type floor struct {
	position
	instance string
}

// Answer judges a list, when its version is known.
func (c *Checker) Answer(a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Answers++
	c.proofLocked(a.Reader, a.Resource, a.Freshness)
	switch {
	case a.Version < a.AtLeast:
		c.reportLocked(a.Received, "reply", a.Reader, "%s at %d, asked for %d or later", a.Resource, a.Version, a.AtLeast)
	case a.Exactly > 0 && a.Version != a.Exactly:
		c.reportLocked(a.Received, "reply", a.Reader, "%s at %d, asked for exactly %d", a.Resource, a.Version, a.Exactly)
	}
	c.waitLocked(pending{a.Version, a.Received, a.Reader, "a list of " + a.Resource, func() { c.answerLocked(a) }})
}

func (c *Checker) answerLocked(a Answer) {
	matching := c.epochsLocked(func(e *history.Epoch) bool {
		return difference(a.Objects, e.State(a.Resource, a.Version, a.Selection.keeps)) == ""
	}, a.Version)
	switch {
	case len(matching) > 0:
	case c.unprovenLocked(a.Freshness):
		c.counts.Unjudged++
		return
	case c.amidLocked(a):
		c.counts.Amid++
		return
	default:
		e := c.log.Now()
		c.reportLocked(a.Received, "state", a.Reader, "%s %+v at %d, %s: %s", a.Resource, a.Selection, a.Version, a.State,
			difference(a.Objects, e.State(a.Resource, a.Version, a.Selection.keeps)))
		return
	}
	newest := position{matching[len(matching)-1], a.Version}
	if a.Exactly > 0 {
		return // an old version was asked for
	}
	c.ageLocked(a.Reader, a.Resource, a.Freshness, newest)
	c.floorLocked(a.Reader, a.Resource, a.Freshness, newest, matching)
}

// epochsLocked are the histories that have reached a version and of which ok is
// true.
func (c *Checker) epochsLocked(ok func(*history.Epoch) bool, version int64) []*history.Epoch {
	var all []*history.Epoch
	for _, e := range c.log.Epochs() {
		if head, _ := e.Head(); head >= version && ok(e) {
			all = append(all, e)
		}
	}
	return all
}

// floorLocked holds a reader to what it has seen of a resource, and notes what
// it sees now.
func (c *Checker) floorLocked(reader, resource string, f Freshness, newest position, matching []*history.Epoch) {
	id := reader + " " + resource
	last, ok := c.readers[id]
	// A new process begins with what was saved, and says so.
	if saved := ok && f.Instance != last.instance && f.State != "live"; !ok || saved {
		last = &floor{}
		c.readers[id] = last
	}
	// What several histories have is taken to be of the earliest: the next answer may
	// be of that as well.
	for _, e := range matching {
		if last.follows(position{e, newest.version}) {
			*last = floor{position{e, newest.version}, f.Instance}
			return
		}
	}
	c.reportLocked(f.Received, "back", reader, "%s goes back from %d (history %d) to %d (history %d), %s",
		resource, last.version, last.epoch.Number, newest.version, newest.epoch.Number, f.State)
	*last = floor{newest, f.Instance}
}

// proofLocked checks what can be said of a state and an age without knowing the
// answer.
func (c *Checker) proofLocked(reader, resource string, f Freshness) {
	if f.State == "live" && f.Age > c.opts.Lease {
		c.reportLocked(f.Received, "lease", reader, "%s is live at the age of %v", resource, f.Age)
	}
	if f.State == "" || c.opts.Silent == nil {
		return
	}
	since := c.opts.Silent(resource, f.Sent)
	if since.IsZero() {
		return
	}
	silent := f.Sent.Sub(since)
	if f.State == "live" && silent > c.opts.Lease+c.opts.Slack {
		c.reportLocked(f.Received, "lease", reader, "%s is live, but the API server is silent since %v", resource, silent)
	}
	if f.Age+c.opts.Slack < silent {
		c.reportLocked(f.Received, "age", reader, "%s has age %v, but the API server is silent since %v", resource, f.Age, silent)
	}
}

// unprovenLocked says whether servers of no history told what proved an answer, and
// nobody since: it is as they told it, however long after.
func (c *Checker) unprovenLocked(f Freshness) bool {
	return f.State != "" && c.log.Blurred(f.Sent.Add(-f.Age))
}

// ageLocked checks that an answer holds everything that was committed before the
// moment it says it was current at.
func (c *Checker) ageLocked(reader, resource string, f Freshness, at position) {
	if f.State == "" || c.unprovenLocked(f) {
		return
	}
	current := f.Sent.Add(-f.Age - c.opts.Slack)
	for _, e := range c.log.Epochs() {
		if e.Number > at.epoch.Number && e.Began().Before(current) && history.Common(e, at.epoch) < at.version {
			c.reportLocked(f.Received, "age", reader, "%s at %d is of history %d, %s at age %v; history %d began before",
				resource, at.version, at.epoch.Number, f.State, f.Age, e.Number)
			return
		}
	}
	if must := at.epoch.Before(resource, current); must > at.version {
		c.reportLocked(f.Received, "age", reader, "%s at %d, %s at age %v, lacks a change at %d", resource, at.version, f.State, f.Age, must)
	}
}

// Single judges an object or its absence.
func (c *Checker) Single(s Single) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Answers++
	c.proofLocked(s.Reader, s.Resource, s.Freshness)
	version := max(s.Version, s.Object.Version)
	c.waitLocked(pending{version, s.Received, s.Reader, s.Resource + " " + s.Key, func() { c.singleLocked(s) }})
}

func (c *Checker) singleLocked(s Single) {
	if s.Version == 0 {
		was := func(e *history.Epoch) bool { return had(e, s.Resource, s.Key, s.Object) }
		switch {
		case !s.Found || len(c.epochsLocked(was, s.Object.Version)) > 0:
		case c.unprovenLocked(s.Freshness):
			c.counts.Unjudged++
		default:
			c.reportLocked(s.Received, "phantom", s.Reader, "%s %s: %+v was never there", s.Resource, s.Key, s.Object)
		}
		return
	}
	matching := c.epochsLocked(func(e *history.Epoch) bool {
		o, ok := e.At(s.Resource, s.Key, s.Version)
		return ok == s.Found && (!ok || o == s.Object)
	}, s.Version)
	switch {
	case len(matching) > 0:
	case c.unprovenLocked(s.Freshness):
		c.counts.Unjudged++
		return
	default:
		o, ok := c.log.Now().At(s.Resource, s.Key, s.Version)
		c.reportLocked(s.Received, "object", s.Reader, "%s %s at %d, %s: found %t %+v, in etcd %t %+v",
			s.Resource, s.Key, s.Version, s.State, s.Found, s.Object, ok, o)
		return
	}
	newest := position{matching[len(matching)-1], s.Version}
	c.ageLocked(s.Reader, s.Resource, s.Freshness, newest)
	c.floorLocked(s.Reader, s.Resource, s.Freshness, newest, matching)
}

// had says whether an object was exactly so at its own version.
func had(e *history.Epoch, resource, key string, o history.Object) bool {
	then, ok := e.At(resource, key, o.Version)
	return ok && then == o
}

// difference describes how two states differ, empty if they do not.
func difference(got, want map[string]history.Object) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if w, ok := want[key]; !ok {
			all = append(all, fmt.Sprintf("%s is too much: %+v", key, got[key]))
		} else if w != got[key] {
			all = append(all, fmt.Sprintf("%s is %+v instead of %+v", key, got[key], w))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[key]; !ok {
			all = append(all, fmt.Sprintf("%s is missing: %+v", key, want[key]))
		}
	}
	if len(all) > 4 {
		all = append(all[:4], fmt.Sprintf("... %d differences", len(all)))
	}
	return strings.Join(all, "; ")
}
