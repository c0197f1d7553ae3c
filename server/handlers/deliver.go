package handlers

import (
	"context"
	"errors"
	"time"
)

// startWorkersLocked runs the workers of a sink.
func (h *running) startWorkersLocked() {
	if h.spec.Sink == nil || h.ctx == nil {
		return
	}
	var ctx context.Context
	ctx, h.retire = context.WithCancel(h.ctx)
	sink := h.spec.Sink
	for range max(1, h.spec.Concurrency) {
		h.workers.Go(func() { h.deliverAll(ctx, sink) })
	}
}

func (h *running) deliverAll(ctx context.Context, sink Sink) {
	for {
		if !h.pace(ctx) {
			return
		}
		j := h.next(ctx)
		if j == nil {
			return
		}
		began := time.Now()
		err := h.durable(ctx) // that it may arrive
		if err == nil {
			err = sink.Deliver(ctx, &j.delivery)
		}
		h.ended(ctx, j, err, began)
	}
}

// pace waits until the rate lets another delivery begin; false: ctx has ended.
func (h *running) pace(ctx context.Context) bool {
	h.mu.Lock()
	limiter := h.limiter
	h.mu.Unlock()
	return limiter == nil || limiter.Wait(ctx) == nil
}

// ended notes how a delivery ended. One that was taken keeps its key, and its worker, until
// that is saved: what a crash repeats is never more than what is under way.
func (h *running) ended(ctx context.Context, j *job, err error, began time.Time) {
	h.mu.Lock()
	h.counts.worked(time.Since(began))
	if err == nil {
		h.deliveredLocked(j)
		h.mu.Unlock()
		_ = h.durable(ctx) // at the end of the process the last save has it
		h.mu.Lock()
		h.backLocked(j.entry, 0)
		h.mu.Unlock()
		return
	}
	defer h.mu.Unlock()
	if ctx.Err() != nil { // nobody knows whether it was taken
		h.undoneLocked(j, 0)
		h.offerLocked(j.entry)
		return
	}
	h.failedLocked(j, err)
}

func (h *running) failedLocked(j *job, err error) {
	now, e := time.Now(), j.entry
	h.counts.fail(now, err)
	busy, isBusy := errors.AsType[*BusyError](err)
	_, isDown := errors.AsType[*DownError](err)
	_, isGone := errors.AsType[*GoneError](err)
	rejected, _ := errors.AsType[*RejectedError](err)
	switch {
	case isBusy:
		h.gate.busy(now, busy.After, err.Error())
	case isDown:
		h.gate.down(now, err.Error(), gateMax)
	case isGone:
		h.pauseLocked("the sink wants nothing any more: " + err.Error())
	case rejected != nil && rejected.Never:
		h.retryLocked(e, err.Error(), true)
	default:
		h.gate.refuse(now, e, err.Error())
		h.retryLocked(e, err.Error(), false)
	}
	h.undoneLocked(j, h.waitLocked(e))
	if h.waitLocked(e) <= 0 {
		h.offerLocked(e)
	}
	h.signal()
}

func (h *running) pauseLocked(reason string) {
	h.meta.Paused, h.meta.Reason = true, reason
	h.noted = true
}
