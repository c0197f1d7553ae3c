package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
)

// match reports whether an object is selected. An object that the filter has no value for is
// not; that is counted. Where it cannot be told, because it took too long for one, it may be:
// the key is looked at again when it is its turn, so that nothing is lost.
func (l *line) match(ctx context.Context, src *source, o *cache.Object) (selected, sure bool) {
	ok, err := src.matcher.Match(ctx, o)
	if fault, is := errors.AsType[*cache.EvalError](err); is {
		l.h.fault(l, o.Key(), fault)
		return false, true
	}
	return ok || err != nil, err == nil
}

// consider notes what an event makes of its key. Called with l.following.
func (l *line) consider(e cache.Event) {
	h, src := l.h, l.from
	k := e.Object.Key()
	was := h.isSelected(l, k)
	typ, obj, _ := e.Through(func(o *cache.Object) (bool, error) {
		if o != e.Object || e.Type == cache.Deleted {
			return was, nil // what is known of the state before is what was found then
		}
		is, _ := l.match(context.Background(), src, o)
		return is, nil
	})
	if typ == "" {
		return
	}
	counts, as := true, unsure
	if typ != cache.Deleted {
		counts, as = l.counts(e)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.droppedLocked() {
		return
	}
	if typ == cache.Deleted {
		if ent := l.keys.find(k); ent != nil {
			h.leftLocked(ent, &last{object: obj})
		}
		return
	}
	ent := l.entryLocked(k)
	h.stayedLocked(ent)
	switch {
	case counts && h.spec.Change != nil:
		ent.set(forced)
		h.pendLocked(ent)
	case counts:
		h.pendLocked(ent)
	case ent.since == 0: // else the newest state is delivered anyway
		ent.tell(as)
		h.changed[ent] = struct{}{}
	}
}

// counts reports whether the handler's condition on changes holds for one. Where it has no
// value the change does not count; where it cannot be told it does. A state that does not
// count is known by its digest.
func (l *line) counts(e cache.Event) (bool, digest) {
	change := l.h.asked().Change
	if change == nil {
		return true, unsure
	}
	object, err := e.Object.JSON()
	var old []byte
	if err == nil && e.Old != nil {
		old, err = e.Old.JSON()
	}
	if err != nil {
		return true, unsure
	}
	ok, err := change.MatchChange(object, old)
	if fault, is := errors.AsType[*cache.EvalError](err); is {
		l.h.fault(l, e.Object.Key(), fault)
	} else if err != nil || ok {
		return true, unsure
	}
	_, d, err := payloadOf(e.Object, l.from.fields, l.from.salt)
	return err != nil, d
}

func (l *line) entryLocked(k cache.Key) *entry {
	e := l.keys.find(k)
	if e == nil {
		e = l.newEntry(k)
		l.keys.add(e)
	}
	return e
}

func (l *line) newEntry(k cache.Key) *entry {
	return &entry{space: l.spaces.number(k.Namespace), name: k.Name, line: l}
}

// stayedLocked notes that an object is in the selection.
func (h *running) stayedLocked(e *entry) {
	e.set(selected)
	e.clear(hidden)
	e.setLast(nil)
}

// leftLocked notes that an object has left the selection. What was never told of needs no
// end, unless it may be being told at this moment.
func (h *running) leftLocked(e *entry, l *last) {
	e.clear(selected)
	e.setLast(l)
	if e.told == untold && !e.is(inFlight) {
		h.forgetLocked(e)
		return
	}
	h.pendLocked(e)
}

// pendLocked makes a key pending. One that was given up gets another chance: it is in
// another state now. One that waits to be tried again goes on waiting.
func (h *running) pendLocked(e *entry) {
	if e.is(inFlight) {
		e.set(again)
	}
	if e.is(dead) {
		e.clear(dead)
		delete(h.dead, e)
		e.tried()
	}
	if e.since == 0 {
		e.since = time.Now().UnixMilli()
		h.pending++
	}
	h.changed[e] = struct{}{}
	h.offerLocked(e)
}

// offerLocked puts a pending key in the queue, if it may be tried now.
func (h *running) offerLocked(e *entry) {
	if !e.line.ready || e.is(dead) {
		return
	}
	if e.more != nil && time.Now().Before(e.more.before) {
		if !e.is(inFlight) {
			h.queue.AddAfter(e, time.Until(e.more.before))
		}
		return
	}
	h.counts.observed.adds.Inc()
	h.queue.Add(e)
}

// forgetLocked removes a key of which nothing need be known any more.
func (h *running) forgetLocked(e *entry) {
	if e.is(inFlight) {
		e.set(hidden)
		return
	}
	h.settleLocked(e)
	if e.is(dead) {
		e.clear(dead)
		delete(h.dead, e)
	}
	e.tell(untold)
	if e.is(gone) {
		return
	}
	e.set(gone)
	e.line.keys.remove(e)
	h.changed[e] = struct{}{}
}

// settleLocked makes a key pending no more.
func (h *running) settleLocked(e *entry) {
	if e.since != 0 {
		e.since = 0
		h.pending--
	}
}
