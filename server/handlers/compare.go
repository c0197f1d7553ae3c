package handlers

import (
	"context"
	"time"

	"github.com/informerd/informerd/cache"
)

// compareBatch is how many keys are compared under one hold of the lock.
const compareBatch = 256

// compare finds what differs from what was delivered where events cannot tell: at the first
// look, with another question, in another history, or when too much has happened. It begins
// to subscribe first, so that what happens meanwhile is considered after it.
func (l *line) compare(ctx context.Context, src *source) (*cache.Subscription, error) {
	sub, err := src.reader.Watch("")
	if err != nil {
		l.wait(err.Error())
		return nil, errAnew
	}
	l.read(src)
	result, err := src.reader.Select(ctx, l.h.asked().Query)
	if err == nil {
		err = l.compareAll(ctx, src, result)
	}
	if err != nil {
		sub.Close()
		l.wait("comparing: " + err.Error())
		return nil, err
	}
	l.use(src)
	l.compared(src.cursor(sub.Version()))
	return sub, nil
}

// compared goes on after a comparison. A copy that is of the same lineage and older than what
// was delivered, since it was restored, has to catch up first.
func (l *line) compared(at cursor) {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.cursor.Lineage == at.Lineage {
		at.Told = l.cursor.Told
		if cache.Newer(l.cursor.Version, at.Told) {
			at.Told = l.cursor.Version
		}
	}
	l.cursor = at
	h.moved[l] = struct{}{}
}

func (l *line) compareAll(ctx context.Context, src *source, result *cache.Result) error {
	h := l.h
	h.faults(l, result.Faults)
	h.mu.Lock()
	fresh := l.cursor.Question != src.question
	h.mu.Unlock()
	here := make(map[cache.Key]struct{}, len(result.Objects))
	for n := 0; n < len(result.Objects); n += compareBatch {
		batch := result.Objects[n:min(n+compareBatch, len(result.Objects))]
		if err := ctx.Err(); err != nil {
			return err
		}
		digests := make([]digest, len(batch))
		for i, o := range batch {
			here[o.Key()] = struct{}{}
			_, d, err := payloadOf(o, src.fields, src.salt)
			if err != nil {
				d = unsure
			}
			digests[i] = d
		}
		h.mu.Lock()
		for i, o := range batch {
			l.compareLocked(o, digests[i], fresh)
		}
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l.keys.each(func(e *entry) {
		if !src.reader.Scope().Sees(e.key()) {
			h.forgetLocked(e) // nothing may be said of it any more, its end included
			return
		}
		if _, ok := here[e.key()]; ok || !e.is(selected) && e.since != 0 {
			if e.last() != nil {
				h.changed[e] = struct{}{} // what is sent of it may be less
			}
			return
		}
		h.leftLocked(e, e.last())
	})
	return nil
}

// compareLocked compares one object with what was delivered of it. With a fresh question, which
// was not asked before, what is older than a handler that began now is known: creation times
// are of whole seconds. Later on what was selected is known by its digest, and what is not has
// come into the selection, however old it is.
func (l *line) compareLocked(o *cache.Object, d digest, fresh bool) {
	h := l.h
	if l.droppedLocked() {
		return
	}
	e := l.entryLocked(o.Key())
	switch {
	case fresh && e.told == untold && e.since == 0 && h.spec.From == FromNow && o.Created().Before(h.meta.Born.Truncate(time.Second)):
		h.stayedLocked(e)
		e.tell(d)
		h.changed[e] = struct{}{}
	case e.told == d && d != unsure && !e.is(forced) && !e.is(inFlight):
		// As it was told. It may be pending for what has been undone since.
		h.stayedLocked(e)
		if e.since != 0 {
			h.pendLocked(e)
		}
	default:
		if fresh && e.told == untold && e.since == 0 {
			e.set(initial)
		}
		h.stayedLocked(e)
		h.pendLocked(e)
	}
}
