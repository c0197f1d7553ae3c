package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

// proofEvery is how often a newer proof is written where nothing else changed.
const proofEvery = 10 * time.Second

// line is one resource on its way to the mirror. What changed is remembered by its newest
// state, each object once, so that tables that are away cost no more than that. It is
// followed while it is written, which may take longer than a ring remembers.
type line struct {
	mu sync.Mutex // guards all below

	view    *cache.View // as of the last look
	copy    *cache.View // of the copy that is followed; nil: none is
	events  *cache.Subscription
	version string                      // that of the copy with all of pending in it
	pending map[cache.Key]*cache.Object // nil: deleted
	taken   map[cache.Key]*cache.Object // of pending, and being written
	// whole: the rows are to be compared with all objects.
	whole bool
	// begun counts how often all is to be compared anew, wasBegun is it as of the last take.
	begun, wasBegun int

	// What the tables say, as far as is known.
	wroteVersion string
	wroteState   cache.State
	wroteProof   time.Time
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
}

func (l *line) closeLocked() {
	if l.events != nil {
		l.events.Close()
		l.events, l.copy = nil, nil
	}
}

// follow reads what happened since it was last called, and returns how much is to be written.
func (l *line) follow(v *cache.View) (pending int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followLocked(v)
	return len(l.pending) + len(l.taken)
}

func (l *line) followLocked(v *cache.View) {
	before := l.view
	l.view = v
	if before != nil && before.Readable() && !sameRule(&before.Spec, &v.Spec) {
		// What a rule takes away is cut out of objects without their having changed.
		l.beginLocked()
	}
	if !l.currentLocked() {
		return
	}
	if l.copy == nil || !l.copy.SameCopy(v) {
		l.beginLocked()
		l.copy = v
	}
	if l.events == nil {
		return // all of it is looked at
	}
	if err := l.readLocked(); err != nil {
		l.beginLocked() // it went on faster than its ring remembers, or ended
	}
}

// currentLocked reports whether the copy may be mirrored: one from a snapshot may be older than
// its mirror until it was proven current, and of one that is not readable there is none.
func (l *line) currentLocked() bool {
	return l.view.Readable() && (l.view.State == cache.Live || l.view.State == cache.Stale)
}

// beginLocked has everything compared.
func (l *line) beginLocked() {
	l.closeLocked()
	l.begun++
	l.whole, l.pending, l.taken = true, nil, nil
}

// sameRule reports whether the objects under both are the same.
func sameRule(a, b *cache.Spec) bool {
	return a.SameSelection(*b) && reflect.DeepEqual(a.Drop, b.Drop) && reflect.DeepEqual(a.Redact, b.Redact)
}

// readLocked polls until there are no more events: then the copy is at the version of the
// Subscription, with all of them in it. Short of that it might be in the midst of a relist,
// whose changes have one version together.
func (l *line) readLocked() error {
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
				l.noteLocked(e.Object.Key(), nil)
			} else {
				l.noteLocked(e.Object.Key(), e.Object)
			}
		}
	}
}

func (l *line) noteLocked(k cache.Key, o *cache.Object) {
	if l.pending == nil {
		l.pending = map[cache.Key]*cache.Object{}
	}
	l.pending[k] = o
}

// take is what is to be written; false if nothing is.
func (l *line) take(ctx context.Context) (cache.MirrorChange, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wasBegun = l.begun
	c := cache.MirrorChange{Spec: l.view.Spec, State: l.view.State, Proof: l.view.Proof}
	switch {
	case !l.currentLocked():
		// The rows stay, and say that nobody keeps them current.
		return c, l.wroteState != "" && l.wroteState != c.State, nil
	case l.whole:
		return l.takeWholeLocked(ctx, c)
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
	l.taken, l.pending = l.pending, nil
	return c, true, nil
}

// takeWholeLocked takes all objects at one version, and follows the copy from there. The
// Subscription begins before: what it tells again of is in the objects already.
func (l *line) takeWholeLocked(ctx context.Context, c cache.MirrorChange) (cache.MirrorChange, bool, error) {
	l.closeLocked()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole || errors.Is(err, cache.ErrNoSnapshot) {
		l.beginLocked()
		return
	}
	for k, o := range l.taken {
		if _, newer := l.pending[k]; !newer {
			l.noteLocked(k, o)
		}
	}
	l.taken = nil
}

// written notes that it was made.
func (l *line) written(c *cache.MirrorChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wroteState, l.wroteProof, l.taken = c.State, c.Proof, nil
	if c.Version == "" {
		return
	}
	l.wroteVersion = c.Version
	if l.begun == l.wasBegun {
		l.whole = false
	}
}
