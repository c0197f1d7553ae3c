package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// Watch is a reader that keeps a copy by watching. Its recorder reports what
// comes, in order.
type Watch struct {
	checker   *Checker
	reader    string
	resource  string
	selection Selection

	// Guarded by the Checker.
	queue   []record
	held    map[string]history.Object // the copy, as far as it was judged
	gone    map[string]string         // UIDs by key, of what was told as deleted in this session
	early   map[string]string         // the same of sessions before: see earlyLocked
	told    map[string]history.Object // the same, right or wrong
	at      int64                     // all before has been seen
	epochs  []*history.Epoch          // the histories that it may be in
	last    time.Time                 // when something was told last
	since   time.Time                 // the same, before the session began
	resumed bool                      // nothing new has come in this session
	broken  bool                      // a violation was reported: wait until it is as etcd again
	live    bool                      // a list or a session has begun
	lost    bool                      // see lostLocked
	unseen  time.Time                 // when it was first told what unseenLocked excuses; zero: it was not, or is mended
}

type kind int

const (
	listed kind = iota
	began
	changed
	bookmarked
	ended
	expired
)

// record is one thing that came.
type record struct {
	kind     kind
	at       time.Time
	version  int64
	eventOf  string // ADDED, MODIFIED, DELETED
	key      string
	object   history.Object
	objects  map[string]history.Object
	mayAgain bool // a session that may begin with what came before
	other    bool // another process than before
}

// Watch begins to follow a reader.
func (c *Checker) Watch(reader, resource string, s Selection) *Watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &Watch{checker: c, reader: reader, resource: resource, selection: s, held: map[string]history.Object{}, gone: map[string]string{}, early: map[string]string{}, told: map[string]history.Object{}}
	c.watches = append(c.watches, w)
	return w
}

func (w *Watch) add(r record) {
	w.checker.mu.Lock()
	defer w.checker.mu.Unlock()
	r.at = time.Now()
	w.queue = append(w.queue, r)
}

// List says that the reader has all objects at a version: a list, or the first
// part of a stream.
func (w *Watch) List(version int64, objects map[string]history.Object) {
	w.add(record{kind: listed, version: version, objects: objects})
}

// Begin says that a watch from a version has begun. One that may repeat what was
// seen at that version says so.
func (w *Watch) Begin(version int64, mayRepeat bool) {
	w.add(record{kind: began, version: version, mayAgain: mayRepeat})
}

// Event is a change.
func (w *Watch) Event(t, key string, o history.Object) {
	w.add(record{kind: changed, eventOf: t, key: key, object: o, version: o.Version})
}

// Bookmark is a version up to which everything has come.
func (w *Watch) Bookmark(version int64) { w.add(record{kind: bookmarked, version: version}) }

// End says that the watch has ended, for whatever reason.
func (w *Watch) End() { w.add(record{kind: ended}) }

// Expired says that the reader was told 410: it is to list again. Other says that a
// process said so which it had not heard of before.
func (w *Watch) Expired(other bool) { w.add(record{kind: expired, other: other}) }

func (w *Watch) stepLocked() {
	c := w.checker
	for len(w.queue) > 0 {
		r := w.queue[0]
		if time.Since(r.at) < c.opts.Delay {
			return
		}
		if c.log.Blurred(r.at) {
			w.queue = w.queue[1:]
			w.blurredLocked(r)
			continue
		}
		if !c.knownLocked(r.version, r.at) {
			if !c.futureLocked(r.at) {
				return
			}
			c.reportLocked(r.at, "future", w.reader, "%s is at version %d; etcd is at %d", w.what(r), r.version, c.headLocked())
			w.broken = true
		}
		if !w.goneLocked(r) && !c.futureLocked(r.at) {
			return
		}
		w.queue = w.queue[1:]
		w.judgeLocked(r)
	}
	w.queue = nil
}

// blurredLocked notes what was told while nothing can be judged. The watch is judged
// again when it is as etcd has it.
func (w *Watch) blurredLocked(r record) {
	w.checker.counts.Unjudged++
	w.broken = true
	switch {
	case r.kind == listed:
		w.told = maps.Clone(r.objects)
	case r.kind == changed && r.eventOf == "DELETED":
		delete(w.told, r.key)
	case r.kind == changed:
		w.told[r.key] = r.object
	}
	if r.kind != ended {
		w.last = r.at
	}
}

// goneLocked says whether the history can tell of a deletion. One that a list found
// has an earlier version than it had in etcd: it is known once everything is that
// was committed before it was told.
func (w *Watch) goneLocked(r record) bool {
	if r.kind != changed || r.eventOf != "DELETED" {
		return true
	}
	now := w.checker.log.Now()
	_, reached := now.Head()
	return reached.After(r.at) || now.Deleted(r.object.UID) > 0
}

func (w *Watch) what(r record) string {
	switch r.kind {
	case listed:
		return "a list of " + w.resource
	case changed:
		return fmt.Sprintf("%s %s %s", r.eventOf, w.resource, r.key)
	case bookmarked:
		return "a bookmark of " + w.resource
	}
	return "a watch of " + w.resource
}

func (w *Watch) judgeLocked(r record) {
	switch r.kind {
	case listed:
		w.listLocked(r)
	case began:
		w.beginLocked(r)
	case changed:
		w.checker.counts.Events++
		if r.eventOf == "DELETED" {
			delete(w.told, r.key)
		} else {
			w.told[r.key] = r.object
		}
		if !w.broken && w.live {
			w.eventLocked(r)
		}
	case bookmarked:
		w.checker.counts.Events++
		switch {
		case w.broken:
			w.mendedLocked(r)
		case w.live:
			w.bookmarkLocked(r)
		}
	case ended:
		w.live = false
	case expired:
		w.expiredLocked(r)
	}
	if r.kind != ended {
		w.last = r.at
	}
}

func (w *Watch) listLocked(r record) {
	c := w.checker
	c.counts.Answers++
	w.told = maps.Clone(r.objects)
	w.held, w.live, w.broken, w.resumed, w.since = maps.Clone(r.objects), true, false, false, r.at
	w.lost, w.unseen = false, time.Time{}
	clear(w.gone)
	clear(w.early)
	w.epochs = c.epochsLocked(func(e *history.Epoch) bool {
		return difference(r.objects, e.State(w.resource, r.version, w.selection.keeps)) == ""
	}, r.version)
	w.at = r.version
	if len(w.epochs) == 0 {
		w.failLocked(r, "state", "%s listed at %d: %s", w.resource, r.version,
			difference(r.objects, c.log.Now().State(w.resource, r.version, w.selection.keeps)))
	}
}

func (w *Watch) beginLocked(r record) {
	if len(w.epochs) == 0 {
		return // nothing is known of where it is: its list was wrong
	}
	if w.checker.lostLocked(w.resource, w.at, r.at, w.epochs) {
		w.checker.counts.Lost++
		w.broken, w.lost = true, true
		return
	}
	maps.Copy(w.early, w.gone)
	clear(w.gone)
	w.live, w.resumed, w.since = true, r.mayAgain, w.last
	w.at = max(w.at, r.version)
}

// Unsettled says how what the reader holds differs from the present state of
// etcd, empty if it does not.
func (w *Watch) Unsettled() string {
	now := w.checker.log.Now()
	w.checker.mu.Lock()
	defer w.checker.mu.Unlock()
	head, _ := now.Head()
	if w.lost {
		return ""
	}
	return difference(w.told, now.State(w.resource, head, w.selection.keeps))
}

// Name is of the reader.
func (w *Watch) Name() string { return w.reader + " " + w.resource }

func (w *Watch) failLocked(r record, rule, format string, args ...any) {
	if w.unseenLocked(r) {
		w.checker.counts.Lost++
		w.broken, w.unseen = true, r.at
		return
	}
	w.checker.reportLocked(r.at, rule, w.reader, format, args...)
	w.broken = true
}

// possibleLocked are the histories that the next event may be of: those it was in, those
// that fork from them later, and those that passed the reader's version with what it holds:
// of such a restore there is nothing to tell.
func (w *Watch) possibleLocked() []*history.Epoch {
	return w.checker.epochsLocked(func(e *history.Epoch) bool {
		return slices.ContainsFunc(w.epochs, func(was *history.Epoch) bool { return history.Common(was, e) >= w.at }) || w.untouchedLocked(e)
	}, 0)
}

// untouchedLocked says whether a later history than the reader's took back nothing that
// it holds or was told.
func (w *Watch) untouchedLocked(e *history.Epoch) bool {
	if len(w.epochs) == 0 || e.Number <= w.epochs[len(w.epochs)-1].Number {
		return false
	}
	head, _ := e.Head()
	return head >= w.at && difference(w.held, e.State(w.resource, w.at, w.selection.keeps)) == ""
}

func (w *Watch) eventLocked(r record) {
	switch {
	case r.version > w.at:
	case w.againLocked(r):
		return
	case r.version < w.at && !w.mayFallLocked(r):
		w.failLocked(r, "order", "%s at %d comes after %d", w.what(r), r.version, w.at)
		return
	case r.eventOf != "DELETED" && w.held[r.key] == r.object:
		w.failLocked(r, "repeat", "%s at %d comes twice", w.what(r), r.version)
		return
	}
	w.applyLocked(r)
}

// againLocked says whether an event repeats what was seen, where that is allowed:
// where a stream was resumed, and of the differences that a list found, which are
// told all together to whoever resumes from the middle of them.
func (w *Watch) againLocked(r record) bool {
	if !w.resumed && !w.relistedLocked(r) {
		return false
	}
	held, ok := w.held[r.key]
	if r.eventOf == "DELETED" {
		return !ok || held.UID != r.object.UID
	}
	return ok && held == r.object
}

// mayFallLocked says whether an event may have a lower version than one before: if
// a list found it, and it is of an object that is gone, or that had been missing.
func (w *Watch) mayFallLocked(r record) bool {
	_, there := w.held[r.key]
	return (r.eventOf == "DELETED" || !there) && w.relistedLocked(r)
}

func (w *Watch) applyLocked(r record) {
	held, there := w.held[r.key]
	switch {
	case r.eventOf == "ADDED" && there && w.selection.Tier == "" && !w.addedAgainLocked(r, held):
		w.failLocked(r, "repeat", "%s at %d, but it is there at %d", w.what(r), r.version, held.Version)
		return
	case r.eventOf != "ADDED" && !there && w.early[r.key] != r.object.UID:
		w.failLocked(r, "missed", "%s at %d, but it was never added", w.what(r), r.version)
		return
	case r.eventOf == "MODIFIED" && there && held.UID != r.object.UID:
		w.failLocked(r, "missed", "%s at %d is another object: the deletion did not come", w.what(r), r.version)
		return
	}
	var next []*history.Epoch
	possible := w.possibleLocked()
	for _, e := range possible {
		if w.trueLocked(e, r) {
			next = append(next, e)
		}
	}
	if len(next) == 0 {
		w.untrueLocked(r, possible)
		return
	}
	if w.skippedLocked(r, next[len(next)-1]) {
		return
	}
	if r.eventOf == "DELETED" {
		delete(w.held, r.key)
		if next[len(next)-1].Deleted(r.object.UID) > r.version {
			w.gone[r.key] = r.object.UID
		}
	} else {
		w.held[r.key] = r.object
		delete(w.early, r.key)
		w.resumed = w.resumed && r.version <= w.at
	}
	w.epochs, w.at = next, max(w.at, r.version)
}

// addedAgainLocked says whether an object that is there may be told as new: a process
// that began with an older copy than the reader's, and listed, may not have had it.
func (w *Watch) addedAgainLocked(r record, held history.Object) bool {
	return held.UID == r.object.UID && held.Version < r.version && w.relistedLocked(r)
}

// trueLocked says whether an event is true in a history. A deletion that a list
// found has the version that the copy was complete up to before: neither that of
// the deletion, nor one at which the object was as it is told.
func (w *Watch) trueLocked(e *history.Epoch, r record) bool {
	if r.eventOf != "DELETED" {
		return had(e, w.resource, r.key, r.object) || w.leftLocked(e, r)
	}
	deleted := e.Deleted(r.object.UID)
	return deleted > 0 && (deleted == r.version || w.relistedLocked(r) && w.onceLocked(e, r)) || w.leftLocked(e, r)
}

// onceLocked says whether an object was ever as it is told, at whatever version.
func (w *Watch) onceLocked(e *history.Epoch, r record) bool {
	return slices.ContainsFunc(e.Changes(w.resource, r.key), func(c history.Change) bool {
		return !c.Deleted && c.UID == r.object.UID && c.Hash == r.object.Hash && c.Tier == r.object.Tier
	})
}

// leftLocked says whether an object left the selection by the change of an event,
// which is then a deletion with the last state before.
func (w *Watch) leftLocked(e *history.Epoch, r record) bool {
	if w.selection.Tier == "" || r.eventOf != "DELETED" {
		return false
	}
	o, ok := e.At(w.resource, r.key, r.version)
	return ok && !w.selection.keeps(r.key, o)
}

// relistedLocked says whether a copy may have been listed anew since the reader last
// heard of it.
func (w *Watch) relistedLocked(r record) bool {
	f := w.checker.opts.Relisted
	return f != nil && f(w.resource, w.since, r.at)
}

func (w *Watch) untrueLocked(r record, possible []*history.Epoch) {
	for _, e := range w.checker.log.Epochs() {
		if w.trueLocked(e, r) && !slices.Contains(possible, e) {
			w.failLocked(r, "history", "%s at %d is of history %d, the watch at %d of another, without a 410", w.what(r), r.version, e.Number, w.at)
			return
		}
	}
	if r.eventOf == "DELETED" && w.otherHistoryLocked(r) {
		if ended := w.checker.opts.Ended; ended != nil && ended(w.resource, r.at) {
			w.checker.counts.Lost++
			w.broken, w.lost = true, true
			return
		}
		w.failLocked(r, "history", "%s at %d: it is not there in a history that was restored, and was never deleted; no 410 was told", w.what(r), r.version)
		return
	}
	w.failLocked(r, "phantom", "%s: %+v was never so", w.what(r), r.object)
}

// otherHistoryLocked says whether what is told as deleted is missing in one of
// several histories.
func (w *Watch) otherHistoryLocked(r record) bool {
	epochs := w.checker.log.Epochs()
	for _, e := range epochs[1:] {
		if o, ok := e.At(w.resource, r.key, r.version); !ok || o.UID != r.object.UID {
			return true
		}
	}
	return false
}

// earlyLocked is the state of a history at a version, without what the reader knows
// to be gone since: a deletion that a list found was told at the version before, and a
// process that is started again may be at that version still. So may a second tier be that
// was told of it by the first.
func (w *Watch) earlyLocked(e *history.Epoch, version int64) map[string]history.Object {
	state := e.State(w.resource, version, w.selection.keeps)
	leave := func(gone map[string]string) {
		for key, uid := range gone {
			if o, ok := state[key]; ok && o.UID == uid && e.Deleted(uid) > version {
				delete(state, key)
			}
		}
	}
	leave(w.early)
	if second := w.checker.opts.SecondTier; second != nil && second(w.reader) {
		leave(w.gone)
	}
	return state
}

// skippedLocked reports what was left out before an event. After a list a copy
// knows no states between, so a watch tells the last one only: whether that comes
// is seen at the next bookmark.
func (w *Watch) skippedLocked(r record, e *history.Epoch) bool {
	if w.selection.Tier != "" || w.relistedLocked(r) {
		return false
	}
	for _, c := range e.Between(w.resource, w.at, r.version-1) {
		if w.selection.keeps(c.Key, c.Object) {
			w.failLocked(r, "missed", "%s at %d (deleted: %t) did not come before %s at %d", c.Key, c.Version, c.Deleted, w.what(r), r.version)
			return true
		}
	}
	return false
}

// mendedLocked goes on to judge a watch that told something wrong, once it is as
// etcd has it. One that came back from a history that is over has to be as the present one.
func (w *Watch) mendedLocked(r record) {
	now := w.checker.presentLocked(r.at)
	epochs := w.checker.epochsLocked(func(e *history.Epoch) bool {
		return (!w.lost || history.Common(e, now) >= r.version) && difference(w.told, e.State(w.resource, r.version, w.selection.keeps)) == ""
	}, r.version)
	if len(epochs) == 0 {
		w.stillUnseenLocked(r)
		return
	}
	w.held, w.epochs, w.at = maps.Clone(w.told), epochs, r.version
	w.broken, w.resumed, w.live, w.lost, w.unseen = false, false, true, false, time.Time{}
	clear(w.gone)
	clear(w.early)
}

// bookmarkLocked checks that the copy is what etcd had at the bookmark.
func (w *Watch) bookmarkLocked(r record) {
	if r.version < w.at {
		// What was deleted has the version of a list, which may be later than a
		// bookmark of the same source; nothing else is.
		w.failLocked(r, "order", "a bookmark of %s at %d comes after %d", w.resource, r.version, w.at)
		return
	}
	possible := w.possibleLocked()
	var next []*history.Epoch
	for _, e := range possible {
		if head, _ := e.Head(); head >= r.version && difference(w.held, w.earlyLocked(e, r.version)) == "" {
			next = append(next, e)
		}
	}
	if len(next) == 0 {
		now := w.checker.log.Now()
		if len(possible) > 0 {
			now = possible[len(possible)-1]
		}
		w.failLocked(r, "missed", "%s at the bookmark %d: %s", w.resource, r.version,
			difference(w.held, now.State(w.resource, r.version, w.selection.keeps)))
		return
	}
	w.epochs, w.at, w.resumed = next, r.version, false
	known := func(_, uid string) bool { return next[len(next)-1].Deleted(uid) <= r.version }
	maps.DeleteFunc(w.gone, known)
	maps.DeleteFunc(w.early, known)
}
