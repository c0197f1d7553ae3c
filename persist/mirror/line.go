package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/informerd/informerd/cache"
)

// proofEvery is how often a newer proof is written where nothing else changed.
const proofEvery = 10 * time.Second

// line is one resource on its way to the mirror. What changed is remembered by its newest
// state, each object once, so that tables that are away cost no more than that.
type line struct {
	view    *cache.View // as of the last look
	copy    *cache.View // of the copy that is followed; nil: none is
	events  *cache.Subscription
	version string                      // that of the copy with all of pending in it
	pending map[cache.Key]*cache.Object // nil: deleted
	// whole: the rows are to be compared with all objects.
	whole bool

	// What the tables say, as far as is known.
	wroteVersion string
	wroteState   cache.State
	wroteProof   time.Time
}

func (l *line) close() {
	if l.events != nil {
		l.events.Close()
		l.events, l.copy = nil, nil
	}
}

// follow reads what happened since it was last called.
func (l *line) follow(v *cache.View) {
	before := l.view
	l.view = v
	if before != nil && before.Readable() && !sameRule(&before.Spec, &v.Spec) {
		// What a rule takes away is cut out of objects without their having changed.
		l.begin()
	}
	if !l.current() {
		return
	}
	if l.copy == nil || !l.copy.SameCopy(v) {
		l.begin()
		l.copy = v
	}
	if l.events == nil {
		return // all of it is looked at
	}
	if err := l.read(); err != nil {
		l.begin() // it went on faster than its ring remembers, or ended
	}
}

// current reports whether the copy may be mirrored: one from a snapshot may be older than
// its mirror until it was proven current, and of one that is not readable there is none.
func (l *line) current() bool {
	return l.view.Readable() && (l.view.State == cache.Live || l.view.State == cache.Stale)
}

// begin has everything compared.
func (l *line) begin() {
	l.close()
	l.whole, l.pending = true, nil
}

// sameRule reports whether the objects under both are the same.
func sameRule(a, b *cache.Spec) bool {
	return a.SameSelection(*b) && reflect.DeepEqual(a.Drop, b.Drop) && reflect.DeepEqual(a.Redact, b.Redact)
}

// read polls until there are no more events: then the copy is at the version of the
// Subscription, with all of them in it. Short of that it might be in the midst of a relist,
// whose changes have one version together.
func (l *line) read() error {
	for {
		events, err := l.events.Poll()
		if err != nil {
			return err
		}
		if len(events) == 0 {
			l.version = l.events.Version()
			return nil
		}
		for _, e := range events {
			if e.Type == cache.Deleted {
				l.note(e.Object.Key(), nil)
			} else {
				l.note(e.Object.Key(), e.Object)
			}
		}
	}
}

func (l *line) note(k cache.Key, o *cache.Object) {
	if l.pending == nil {
		l.pending = map[cache.Key]*cache.Object{}
	}
	l.pending[k] = o
}

// take is what is to be written; false if nothing is.
func (l *line) take(ctx context.Context) (cache.MirrorChange, bool, error) {
	c := cache.MirrorChange{Spec: l.view.Spec, State: l.view.State, Proof: l.view.Proof}
	switch {
	case !l.current():
		// The rows stay, and say that nobody keeps them current.
		return c, l.wroteState != "" && l.wroteState != c.State, nil
	case l.whole:
		return l.takeWhole(ctx, c)
	}
	c.Version = l.version
	for k, o := range l.pending {
		if o == nil {
			c.Delete = append(c.Delete, k)
		} else {
			c.Put = append(c.Put, o)
		}
	}
	if l.version == l.wroteVersion && len(l.pending) == 0 {
		c.Version = ""
		return c, c.State != l.wroteState || c.Proof.Sub(l.wroteProof) >= proofEvery, nil
	}
	return c, true, nil
}

// takeWhole takes all objects at one version, and follows the copy from there. The
// Subscription begins before: what it tells again of is in the objects already.
func (l *line) takeWhole(ctx context.Context, c cache.MirrorChange) (cache.MirrorChange, bool, error) {
	l.close()
	reader := l.view.Reader(cache.WholeScope())
	events, err := reader.Watch("")
	if errors.Is(err, cache.ErrStopped) || errors.Is(err, cache.ErrNotSynced) {
		return c, false, nil // another copy takes over
	}
	if err != nil {
		return c, false, fmt.Errorf("mirror %s: %w", c.Spec.Resource, err)
	}
	all, err := reader.Select(ctx, cache.Query{})
	if err != nil {
		events.Close()
		return c, false, fmt.Errorf("mirror %s: %w", c.Spec.Resource, err)
	}
	l.events, l.copy, l.pending, l.version = events, l.view, nil, all.Version
	c.Whole, c.Version, c.Put = true, all.Version, all.Objects
	return c, true, nil
}

// failed notes that a change was not made, or may not have been.
func (l *line) failed(err error) {
	if l.whole || errors.Is(err, cache.ErrNoSnapshot) {
		l.begin()
	}
}

// written notes that it was made.
func (l *line) written(c *cache.MirrorChange) {
	l.wroteState, l.wroteProof = c.State, c.Proof
	if c.Version == "" {
		return
	}
	l.wroteVersion, l.whole, l.pending = c.Version, false, nil
}
