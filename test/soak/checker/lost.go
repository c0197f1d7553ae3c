package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// What docs/guarantees.md says cannot be found out, and no more than that, is not a
// violation. It is counted.

// presentLocked is the history that etcd had at a moment.
func (c *Checker) presentLocked(at time.Time) *history.Epoch {
	epochs := c.log.Epochs()
	now := epochs[0]
	for _, e := range epochs[1:] {
		if e.Began().Before(at) {
			now = e
		}
	}
	return now
}

// lostLocked says whether a reader that opens a watch from a version cannot be told
// from one of the present history: it is of histories that have it, had no watch while
// the copy was replaced, and the present history has passed the version meanwhile. It
// keeps what the restore took back. So it would at an API server.
func (c *Checker) lostLocked(resource string, version int64, at time.Time, of []*history.Epoch) bool {
	now := c.presentLocked(at)
	for _, e := range of {
		if history.Common(e, now) >= version {
			return false
		}
	}
	relisted := c.opts.Relisted
	// It is known here a moment later than there that etcd has come so far.
	return len(of) > 0 && now.Reached(at.Add(c.opts.Slack)) >= version && relisted != nil && relisted(resource, now.Began(), at)
}

// unseenLocked says whether something wrong that a watch was told is how a list shows a
// restore that nothing else showed: behind another informerd, whose copy was replaced,
// a list may be later than the copy and have no older object; and etcd may have been
// compacted since the restore. What that took back and made is then told as differences.
func (w *Watch) unseenLocked(r record) bool {
	c := w.checker
	now := c.presentLocked(r.at)
	second := c.opts.SecondTier != nil && c.opts.SecondTier(w.reader)
	if !second && !c.log.CompactedSince(now.Began()) || r.kind != changed && r.kind != bookmarked || !w.relistedLocked(r) {
		return false
	}
	return len(w.epochs) > 0 && !slices.ContainsFunc(w.epochs, func(e *history.Epoch) bool { return history.Common(e, now) >= w.at })
}

// amidLocked says whether a list of a second tier is of the middle of the differences
// that a list of the first one found, which are told as one change after the other: each
// object that is not as it was at the version has changed again later, before the answer,
// and will be told as it was then, or was gone, and will be told as deleted. The first tier may end amid them, and the second may
// be asked, or saved, before it follows another; it was not proven current since.
func (c *Checker) amidLocked(a Answer) bool {
	relisted := c.opts.Relisted
	if c.opts.SecondTier == nil || !c.opts.SecondTier(a.Reader) || relisted == nil || !relisted(a.Resource, a.Sent.Add(-a.Age), a.Received) {
		return false
	}
	return slices.ContainsFunc(c.epochsLocked(func(*history.Epoch) bool { return true }, a.Version), func(e *history.Epoch) bool {
		then := e.State(a.Resource, a.Version, a.Selection.keeps)
		for _, key := range slices.Concat(slices.Collect(maps.Keys(then)), slices.Collect(maps.Keys(a.Objects))) {
			if then[key] == a.Objects[key] {
				continue
			}
			again := slices.ContainsFunc(e.Changes(a.Resource, key), func(change history.Change) bool {
				// It is known here a moment later than there.
				return change.Version > a.Version && change.Seen.Before(a.Received.Add(c.opts.Slack))
			})
			_, there := then[key]
			o, held := a.Objects[key]
			if !again && (there || !held) || held && !had(e, a.Resource, key, o) {
				return false
			}
		}
		return true
	})
}

// settles is how long after a restore was told as differences, or in parts, a watch may
// say that it is complete and not be so.
const settles = 90 * time.Second

// stillUnseenLocked reports a watch that was excused by unseenLocked, and is not as etcd
// has it long after, at a bookmark. Another restore meanwhile gives it the same time again.
func (w *Watch) stillUnseenLocked(r record) {
	c := w.checker
	if w.unseen.IsZero() {
		return
	}
	now := c.presentLocked(r.at)
	if now.Began().After(w.unseen) {
		w.unseen = now.Began()
	}
	if r.at.Sub(w.unseen) < settles {
		return
	}
	c.reportLocked(r.at, "missed", w.reader, "%s at the bookmark %d, %.0f s after a restore: %s", w.resource, r.version, r.at.Sub(w.unseen).Seconds(),
		difference(w.told, now.State(w.resource, r.version, w.selection.keeps)))
	w.unseen = time.Time{}
}

// Resume says that the reader opened a watch from a version.
func (p *Copy) Resume(version int64) {
	c := p.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	at, held := time.Now(), make(map[string]history.Object, len(p.held))
	for key, o := range p.held {
		held[key] = o
	}
	c.waitLocked(pending{version, at, p.reader, "a watch of " + p.resource, func() {
		of := c.epochsLocked(func(e *history.Epoch) bool { return difference(held, e.State(p.resource, version, nil)) == "" }, version)
		if c.lostLocked(p.resource, version, at, of) {
			c.counts.Lost++
			p.lost = true
		}
	}})
}

// Listed says that the reader asks for all objects. Saved says that it asks a process of
// which it has not heard yet, and which has only what was saved: that may be older than
// what the one before told.
func (p *Copy) Listed(saved bool) {
	c := p.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitLocked(pending{0, time.Now(), p.reader, "a list of " + p.resource, func() {
		p.lost = false
		if saved {
			clear(p.seen)
		}
	}})
}
