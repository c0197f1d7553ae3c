package checker

import (
	"maps"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// Copy is a reader that somebody else keeps current, such as an informer of
// client-go. What it tells need not be every state, but never an older one after
// a newer one.
type Copy struct {
	checker  *Checker
	reader   string
	resource string

	// Guarded by the Checker.
	held map[string]history.Object
	seen map[string]position
	lost bool // see lostLocked
}

// Copy begins to follow a reader.
func (c *Checker) Copy(reader, resource string) *Copy {
	return &Copy{checker: c, reader: reader, resource: resource, held: map[string]history.Object{}, seen: map[string]position{}}
}

// Set says that an object is now so.
func (p *Copy) Set(key string, o history.Object) {
	c := p.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Events++
	p.held[key] = o
	at := time.Now()
	c.waitLocked(pending{o.Version, at, p.reader, p.resource + " " + key, func() { p.judgeLocked(at, key, o) }})
}

// Remove says that an object is gone.
func (p *Copy) Remove(key string) {
	p.checker.mu.Lock()
	defer p.checker.mu.Unlock()
	p.checker.counts.Events++
	delete(p.held, key)
}

func (p *Copy) judgeLocked(at time.Time, key string, o history.Object) {
	matching := p.checker.epochsLocked(func(e *history.Epoch) bool { return had(e, p.resource, key, o) }, o.Version)
	if len(matching) == 0 {
		p.checker.reportLocked(at, "phantom", p.reader, "%s %s: %+v was never so", p.resource, key, o)
		return
	}
	last, ok := p.seen[key]
	newest := position{matching[len(matching)-1], o.Version}
	if ok && !last.follows(newest) {
		p.checker.reportLocked(at, "back", p.reader, "%s %s goes back from %d to %d", p.resource, key, last.version, o.Version)
	}
	p.seen[key] = newest
}

// Unsettled says how what the reader holds differs from the present state of
// etcd, empty if it does not.
func (p *Copy) Unsettled() string {
	now := p.checker.log.Now()
	p.checker.mu.Lock()
	held, lost := maps.Clone(p.held), p.lost
	p.checker.mu.Unlock()
	if lost {
		return ""
	}
	head, _ := now.Head()
	return difference(held, now.State(p.resource, head, nil))
}

// Name is of the reader.
func (p *Copy) Name() string { return p.reader + " " + p.resource }
