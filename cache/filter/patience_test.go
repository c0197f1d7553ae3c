package filter

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: each evaluation has its whole time, whatever the ones before it took.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, cancel := context.WithCancelCause(t.Context())
		var p patience
		first := p.begin(asked)
		for range 5 {
			time.Sleep(MaxTime - time.Millisecond)
			if first.Err() != nil {
				t.Fatalf("ended early: %v", context.Cause(first))
			}
			p.end()
			time.Sleep(2 * MaxTime) // nothing is evaluated
			if again := p.begin(asked); again != first || again.Err() != nil {
				t.Fatalf("the next has another context, or one that has ended: %v", again.Err())
			}
		}
		time.Sleep(MaxTime + time.Millisecond)
		synctest.Wait()
		if err := context.Cause(first); !errors.Is(err, errTooLong) {
			t.Fatalf("after its time: %v", err)
		}
		p.end()
		if next := p.begin(asked); next.Err() != nil {
			t.Fatalf("one that took too long ended the next: %v", context.Cause(next))
		}
		p.end()
		other, done := context.WithCancel(context.Background())
		if ctx := p.begin(other); ctx.Err() != nil || ctx == first {
			t.Fatal("who asks next has the context of another")
		}
		done()
		if p.ctx.Err() == nil {
			t.Error("an evaluation goes on without who asked")
		}
		p.end()
		gone := errors.New("gone")
		ctx := p.begin(asked)
		cancel(gone)
		if err := context.Cause(ctx); !errors.Is(err, gone) {
			t.Errorf("the cause is %v", err)
		}
		p.end()
	})
}

// TestPatienceIsForgotten: a question that is asked for days does not remember the
// evaluations that nobody keeps any more.
func TestPatienceIsForgotten(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	forgotten := make(chan struct{})
	func() {
		var p patience
		child := p.begin(parent)
		p.end()
		context.AfterFunc(child, func() { close(forgotten) })
	}()
	for range 6000 {
		runtime.GC()
		select {
		case <-forgotten:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("it is remembered")
}
