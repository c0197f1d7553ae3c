package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

// job is a delivery that is under way.
type job struct {
	entry    *entry
	delivery Delivery
	told     digest // what is told once it is delivered
	version  string // of the copy that it was read from
	forced   bool   // a change counted, whatever was told
}

// next waits for a key whose delivery is due. It returns nil when ctx has ended.
func (h *running) next(ctx context.Context) *job {
	for ctx.Err() == nil {
		e, wait := h.pick(time.Now())
		if e == nil {
			h.await(ctx, wait)
			continue
		}
		if j := h.prepare(ctx, e); j != nil {
			return j
		}
	}
	return nil
}

// await waits until there may be a key to take, and no longer than wait if it is not 0.
func (h *running) await(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		wait = time.Hour
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-h.some:
	case <-t.C:
	}
}

// pick takes a key off the queue; nil if none is to be had for a while. Who waits as well is
// told of what is left.
func (h *running) pick(now time.Time) (*entry, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.meta.Paused || !h.begun {
		return nil, 0
	}
	closed, wait := h.gate.closed(now)
	if closed || h.queue.Len() == 0 {
		return nil, wait
	}
	e, ended := h.queue.Get() // nobody else takes: it does not wait
	if ended {
		return nil, 0
	}
	if h.queue.Len() > 0 {
		h.signal()
	}
	e.set(inFlight)
	h.began[e] = now
	h.gate.pass()
	return e, 0
}

// prepare makes the delivery of a key, from the newest state there is; nil if there is
// nothing to deliver.
func (h *running) prepare(ctx context.Context, e *entry) *job {
	h.mu.Lock()
	src := e.line.source
	wait := time.Duration(0)
	if e.more != nil {
		wait = time.Until(e.more.before)
	}
	if src == nil && e.is(selected) {
		wait = max(wait, resourcesInterval) // there is no copy to read now
	}
	if e.since == 0 || e.is(dead|gone|hidden) || wait > 0 || !e.line.ready {
		h.backLocked(e, wait)
		h.mu.Unlock()
		return nil
	}
	j := &job{entry: e, forced: e.is(forced)}
	e.clear(again | forced)
	h.mu.Unlock()

	here, err := h.read(ctx, j, src)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		h.counts.fail(time.Now(), err)
		h.retryLocked(e, err.Error(), false)
		h.undoneLocked(j, h.waitLocked(e))
		return nil
	case !here && e.is(selected):
		// The event that says so has not been considered yet: it makes the key pending.
		if !e.is(again) {
			h.settleLocked(e)
		}
		h.undoneLocked(j, 0)
		return nil
	case !here:
		if err := h.leavingLocked(j); err != nil {
			j.delivery.Object = nil
		}
	}
	if !h.wantedLocked(j, here) {
		h.knownLocked(j, here)
		return nil
	}
	h.completeLocked(j)
	h.attemptLocked(j)
	return j
}

// attemptLocked notes, before a delivery begins, that it may arrive: whatever becomes of it,
// and of this process, the newest state is delivered after it. Otherwise a sink that was told
// of a state for a moment, and never that it ended, would go on believing in it.
func (h *running) attemptLocked(j *job) {
	e, l := j.entry, j.entry.line
	if e.told == untold {
		e.set(entering)
	}
	e.tell(unsure)
	h.changed[e] = struct{}{}
	if cache.Newer(j.version, l.cursor.Told) {
		l.cursor.Told = j.version
		h.moved[l] = struct{}{}
	}
}

// read reads the newest state of a key, and reports whether it is in the selection.
func (h *running) read(ctx context.Context, j *job, src *source) (bool, error) {
	if src == nil {
		return false, nil
	}
	o, version, _, ok := src.reader.GetAt(j.entry.key())
	j.version = version
	if !ok {
		return false, nil
	}
	selected, sure := j.entry.line.match(ctx, src, o)
	if !sure {
		return false, fmt.Errorf("it took too long to find whether the filter selects it")
	}
	if !selected {
		return false, nil
	}
	payload, d, err := payloadOf(o, src.fields, src.salt)
	if err != nil {
		return false, err
	}
	j.told = d
	j.delivery.Object, j.delivery.UID, j.delivery.ResourceVersion = payload, o.UID(), o.ResourceVersion()
	return true, nil
}

// leavingLocked makes the delivery of an end: the last state known.
func (h *running) leavingLocked(j *job) error {
	l := j.entry.last()
	j.told = untold
	if l == nil {
		return nil
	}
	if l.object == nil {
		j.delivery.UID, j.delivery.ResourceVersion = l.uid, l.resourceVersion
	} else {
		j.delivery.UID, j.delivery.ResourceVersion = l.object.UID(), l.object.ResourceVersion()
	}
	payload, err := h.lastPayloadLocked(l)
	j.delivery.Object = payload
	return err
}

func (h *running) lastPayloadLocked(of *last) ([]byte, error) {
	if of.object == nil && len(of.payload) == 0 {
		return nil, nil
	}
	fields, err := compileFields(h.spec.Fields)
	if err != nil {
		return nil, err
	}
	if of.object == nil { // saved, perhaps when more was sent
		if fields == nil {
			return of.payload, nil
		}
		return fields.Append(nil, of.payload)
	}
	return sentOf(of.object, fields)
}

// wantedLocked reports whether there is something to deliver, and notes what.
func (h *running) wantedLocked(j *job, here bool) bool {
	e := j.entry
	switch {
	case here && (e.told == untold || e.is(entering)):
		j.delivery.Transition = Enters
	case here && (e.told != j.told || j.forced):
		j.delivery.Transition = Changes
	case !here && e.told != untold:
		j.delivery.Transition = Leaves
	default:
		return false
	}
	return slices.Contains(h.spec.On, j.delivery.Transition)
}

// knownLocked notes that a state needs no delivery.
func (h *running) knownLocked(j *job, here bool) {
	e := j.entry
	e.tell(j.told)
	e.clear(entering)
	h.doneLocked(e, here)
	h.backLocked(e, 0)
}

// doneLocked makes a key pending no more, unless something happened since its delivery
// began.
func (h *running) doneLocked(e *entry, here bool) {
	e.tried()
	e.clear(initial)
	h.changed[e] = struct{}{}
	if e.is(again) {
		e.since = time.Now().UnixMilli()
		return
	}
	h.settleLocked(e)
	if !here && !e.is(selected) {
		e.setLast(nil)
	}
}

// backLocked gives a key back to the queue, which keeps it if it became pending again; with a
// wait, it comes back after it.
func (h *running) backLocked(e *entry, wait time.Duration) {
	e.clear(inFlight)
	delete(h.began, e)
	if h.gate.reason != "" {
		h.gate.probing = false
		h.signal()
	}
	h.queue.Done(e)
	switch {
	case e.is(hidden) || e.told == untold && !e.is(selected) && e.since == 0:
		h.forgetLocked(e)
	case wait > 0:
		h.queue.AddAfter(e, wait)
	}
}

// undoneLocked gives back a key whose delivery did not happen.
func (h *running) undoneLocked(j *job, wait time.Duration) {
	if j.forced {
		j.entry.set(forced)
	}
	h.backLocked(j.entry, wait)
}

// completeLocked adds what every delivery says.
func (h *running) completeLocked(j *job) {
	e, d := j.entry, &j.delivery
	h.meta.Sequence++
	h.noted = true
	d.Handler, d.Cluster, d.Namespace, d.Name = h.name, e.line.key.cluster, e.namespace(), e.name
	if src := e.line.source; src != nil {
		d.GVR, d.Kind = src.view.Spec.GVR, src.view.Spec.Kind
	} else {
		d.GVR = e.line.key.WithVersion("")
	}
	d.ID = strings.Join([]string{h.name, d.UID, d.ResourceVersion}, "/")
	if d.UID == "" {
		d.ID = strings.Join([]string{h.name, d.GVR.GroupResource().String(), d.Namespace, d.Name}, "/")
	}
	if d.Transition == Leaves {
		d.ID += "/leaves"
	}
	d.Attempt, d.Since, d.Sequence = e.attempts()+1, time.UnixMilli(e.since), h.meta.Sequence
	h.counts.taken(time.Since(d.Since))
}

// deliveredLocked notes that a delivery was taken for good. The key is given back when that
// is saved.
func (h *running) deliveredLocked(j *job) {
	h.gate.open()
	h.signal()
	h.counts.delivered(time.Now())
	j.entry.tell(j.told)
	j.entry.clear(entering)
	h.doneLocked(j.entry, j.delivery.Transition != Leaves)
}

// retryLocked counts a failure of a key, and gives it up after too many.
func (h *running) retryLocked(e *entry, reason string, never bool) {
	m := e.with()
	m.attempts++
	m.err = reason
	e.set(failing)
	h.changed[e] = struct{}{}
	if e.is(again) { // in another state now: it is tried as that
		m.attempts = min(m.attempts, h.spec.Retry.Attempts-1)
	} else if never || m.attempts >= h.spec.Retry.Attempts {
		e.set(dead)
		h.dead[e] = struct{}{}
		m.before = time.Time{}
		return
	}
	m.before = time.Now().Add(backoff(h.spec.Retry, m.attempts))
}

// waitLocked is how long a key waits that was tried.
func (h *running) waitLocked(e *entry) time.Duration {
	if e.is(dead) || e.more == nil {
		return 0
	}
	return time.Until(e.more.before)
}

func backoff(r Retry, attempts int) time.Duration {
	wait := r.Base
	for range attempts - 1 {
		if wait *= 2; wait >= r.Max || wait <= 0 {
			return r.Max
		}
	}
	return min(wait, r.Max)
}
