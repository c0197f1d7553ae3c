package cache

import (
	"context"
	"time"
)

// Turns are what a question waits for before it uses a processor for a while, if its
// context carries any: many who ask much must not hold up one who asks little.
type Turns interface {
	// Take waits for a turn, which give ends. The error is that of ctx.
	Take(ctx context.Context) (give func(), err error)
	// Pause gives back the turn that the goroutine of the question may have, until resume,
	// which is called once and may wait for another one, but not beyond ctx.
	Pause(ctx context.Context) (resume func())
	// Later reports whether whoever asks is to be told of a change only after others were.
	Later() bool
}

type turnsKey struct{}

type laterKey struct{}

// WithTurns makes what is read with the context wait for its turns.
func WithTurns(ctx context.Context, t Turns) context.Context {
	return context.WithValue(context.WithValue(ctx, turnsKey{}, t), laterKey{}, t)
}

// WithoutTurns is for what goes on beside the question whose context it is, and may be for
// others, too.
func WithoutTurns(ctx context.Context) context.Context {
	return context.WithValue(BesideTurns(ctx), laterKey{}, nil)
}

// BesideTurns is for what goes on beside the question whose context it is, and for that alone: it
// is told of changes when that is.
func BesideTurns(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, turnsKey{}, nil), heldKey{}, (*turn)(nil))
}

func toldLater(ctx context.Context) bool {
	t, _ := ctx.Value(laterKey{}).(Turns)
	return t != nil && t.Later()
}

// Pause is what the goroutine of a question calls before it waits for anything but a
// processor, so that others have that meanwhile; resume ends it.
func Pause(ctx context.Context) (resume func()) {
	t, _ := ctx.Value(turnsKey{}).(Turns)
	if t == nil {
		return func() {}
	}
	return t.Pause(ctx)
}

// aTurn is about how long a turn is used before another one is asked for.
const aTurn = 2 * time.Millisecond

// turn is what a worker holds of the processors. Without Turns it holds as much as it
// likes.
type turn struct {
	turns Turns
	give  func()
	began time.Time
}

func turnOf(ctx context.Context) turn {
	t, _ := ctx.Value(turnsKey{}).(Turns)
	return turn{turns: t}
}

type heldKey struct{}

// in is ctx for what uses the turn, which may Yield.
func (t *turn) in(ctx context.Context) context.Context {
	if t.turns == nil {
		return ctx
	}
	return context.WithValue(ctx, heldKey{}, t)
}

// Yield lets others have their turns, if the one that ctx was given for is over: it is for what
// may use a processor for long on a single object. It returns how long it has waited. When ctx
// ends meanwhile, it returns at once.
func Yield(ctx context.Context) (waited time.Duration) {
	t, _ := ctx.Value(heldKey{}).(*turn)
	if t == nil || t.give == nil || time.Since(t.began) < aTurn {
		return 0
	}
	began := time.Now()
	_ = t.next(ctx) // whoever goes on sees that ctx has ended
	return time.Since(began)
}

// next goes on, after a pause where others are to come first.
func (t *turn) next(ctx context.Context) (err error) {
	if t.turns == nil {
		return nil
	}
	now := time.Now()
	if t.give != nil && now.Sub(t.began) < aTurn {
		return nil
	}
	t.end()
	if t.give, err = t.turns.Take(ctx); err != nil {
		return err
	}
	t.began = time.Now()
	return nil
}

// end gives back what is held.
func (t *turn) end() {
	if t.give != nil {
		t.give()
		t.give = nil
	}
}
