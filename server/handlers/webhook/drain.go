package webhook

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	// maxBody is how much of an answer is read at most.
	maxBody = 64 << 10
	// drainTurn is for how long a delivery waits for the rest of its answer, so that the next
	// finds the connection free.
	drainTurn = 10 * time.Millisecond
	// maxDrains bounds the answers that are read behind their deliveries' backs.
	maxDrains = 64
)

// drains read answers to their end, which lets their connections be used again. What was
// answered is known before: a slow body holds up nobody.
type drains struct {
	places  chan struct{}
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newDrains() *drains {
	d := &drains{places: make(chan struct{}, maxDrains)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// drain reads body until its end, its limit, or until end is called by the request's timeout
// or by close, and closes it.
func (d *drains) drain(body io.ReadCloser, end context.CancelFunc) {
	select {
	case d.places <- struct{}{}:
	default:
		_ = body.Close()
		end()
		return
	}
	stopped := context.AfterFunc(d.ctx, end)
	done := make(chan struct{})
	d.running.Go(func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxBody))
		_ = body.Close()
		stopped()
		end()
		<-d.places
	})
	turn := time.NewTimer(drainTurn)
	defer turn.Stop()
	select {
	case <-done:
	case <-turn.C:
	}
}

func (d *drains) close() {
	d.stop()
	d.running.Wait()
}
