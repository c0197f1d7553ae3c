package filter

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/informerd/informerd/cache"
)

// errTooLong ends an evaluation after MaxTime.
var errTooLong = errors.New("takes too long")

// patience bounds the time of evaluations, one after the other. A context of its own
// and a new timer for each took a tenth of a scan: these are used again as long as
// evaluations are of the same question and end in time.
type patience struct {
	*bound // nil: none is kept
	began  time.Time
	waited time.Duration // for turns, which does not count
}

// bound is a context that ends after MaxTime, unless its timer is stopped or set again.
type bound struct {
	asked  context.Context // whose child ctx is
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// begin returns the context of an evaluation for who asks with ctx. It ends with that
// one, or after MaxTime by errTooLong.
func (p *patience) begin(ctx context.Context) context.Context {
	p.began, p.waited = time.Now(), 0
	if p.bound != nil && p.asked == ctx && p.ctx.Err() == nil {
		p.timer.Reset(MaxTime)
		return p.ctx
	}
	p.drop()
	p.bound = newBound(ctx)
	return p.ctx
}

func newBound(ctx context.Context) *bound {
	child, cancel := context.WithCancelCause(ctx)
	b := &bound{asked: ctx, ctx: child, cancel: cancel}
	b.timer = time.AfterFunc(MaxTime, func() { cancel(errTooLong) })
	// Whoever keeps this for the next evaluation may be forgotten without a word (see
	// sync.Pool), while ctx may be of a stream of days and remember its children.
	runtime.AddCleanup(b, func(cancel context.CancelCauseFunc) { cancel(nil) }, cancel)
	return b
}

// yield lets others have their turns first, if the evaluation has had its own for long enough,
// and returns how long that took.
func (p *patience) yield() (waited time.Duration) {
	if p.bound == nil || !p.timer.Stop() { // its time has run out
		return 0
	}
	left := MaxTime - (time.Since(p.began) - p.waited)
	waited = cache.Yield(p.asked)
	p.waited += waited
	p.timer.Reset(max(left, 0))
	return waited
}

// end ends the time of an evaluation.
func (p *patience) end() {
	if !p.timer.Stop() {
		p.drop() // it has run out, or is about to
	}
}

func (p *patience) drop() {
	if p.bound != nil {
		p.timer.Stop()
		p.cancel(nil)
		p.bound = nil
	}
}
