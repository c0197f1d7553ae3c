package persist

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// firstWait is how long those who come at the start wait for the first connection: a
	// database that is there answers sooner, and without it everything is listed anew.
	firstWait = 3 * time.Second
	// linkRetry and linkRetryMax are the first and the longest pause between two attempts.
	linkRetry    = 250 * time.Millisecond
	linkRetryMax = 5 * time.Second
	// linkSay is how long it is waited before another error of the same outage is said.
	linkSay = time.Minute
)

// errConnecting is why nobody can be asked before the first attempt has ended.
var errConnecting = errors.New("the database has not answered yet")

// link knows whether the database can be asked. One goroutine connects, so that nobody else
// waits for a database that is away: who asks meanwhile is told why at once. Only the first
// attempt is waited for, for a short time, since a warm start depends on it.
type link struct {
	connect func(context.Context) error
	log     *slog.Logger
	began   time.Time     // of the first attempt
	first   chan struct{} // closed when it has ended
	heard   chan struct{} // closed when the database has answered for the first time
	broken  chan struct{} // holds one; says that the connection was lost

	said time.Time // when an error was said last, zero if none was since it was up; of run alone

	mu   sync.Mutex // guards all below
	up   bool
	over bool  // it will not be up again
	err  error // why it is not up
}

func newLink(connect func(context.Context) error, log *slog.Logger) *link {
	return &link{
		connect: connect, log: log, began: time.Now(), first: make(chan struct{}), heard: make(chan struct{}), broken: make(chan struct{}, 1), err: errConnecting,
	}
}

// run keeps the link up until ctx ends, or there is no more use in trying.
func (l *link) run(ctx context.Context) {
	for first := true; ; first = false {
		pause := linkRetry
		for !l.attempt(ctx, first) {
			first = false
			if !pauseFor(ctx, pause) {
				return
			}
			pause = min(2*pause, linkRetryMax)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.broken:
		}
	}
}

// attempt connects once, and reports whether another attempt is of no use now.
func (l *link) attempt(ctx context.Context, first bool) bool {
	err := l.connect(ctx)
	l.mu.Lock()
	l.up, l.err = err == nil, err
	l.over = errors.Is(err, ErrTakenOver)
	over := l.over
	l.mu.Unlock()
	if first {
		close(l.first)
	}
	switch {
	case ctx.Err() != nil:
	case over:
		l.log.Error("the database of snapshots is not written any more, serving on from memory", "err", err)
	case err == nil && !l.said.IsZero():
		l.log.Info("the database of snapshots can be used again")
		l.said = time.Time{}
	case err != nil && time.Since(l.said) > linkSay:
		l.log.Error("the database of snapshots cannot be used, serving on from memory and trying again", "err", err)
		l.said = time.Now()
	}
	return err == nil || over
}

// lost notes that the connection failed, so that it is tried before anybody else waits for
// it. What is over stays so.
func (l *link) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up {
		return
	}
	l.up, l.err = false, err
	select {
	case l.broken <- struct{}{}:
	default:
	}
}

// end says that the link is not up for good.
func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.up, l.over, l.err = false, true, err
		l.log.Error("the database of snapshots is not written any more, serving on from memory", "err", err)
	}
}

// renew has it connect once more, whatever became of it: there is something else to be done
// when it has. Who reads need not wait for that.
func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = false
	select {
	case l.broken <- struct{}{}:
	default:
	}
}

// isOver reports whether it is not up for good.
func (l *link) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// hear notes that the database answers. It is called by connect.
func (l *link) hear() {
	select {
	case <-l.heard:
	default:
		close(l.heard)
	}
}

// await returns nil if the database can be asked, else why it cannot. A database that answers
// is waited for as long as it may take until the writer before has ended.
func (l *link) await(ctx context.Context) error {
	if !l.waits(ctx, firstWait) {
		select {
		case <-l.heard:
			l.waits(ctx, attachFor)
		default:
		}
	}
	return l.trouble()
}

// waits reports whether the first attempt has ended so long after it began.
func (l *link) waits(ctx context.Context, after time.Duration) bool {
	t := time.NewTimer(time.Until(l.began.Add(after)))
	defer t.Stop()
	select {
	case <-l.first:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// trouble is why the database cannot be asked now; nil if it can.
func (l *link) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		return nil
	}
	return l.err
}

// pauseFor reports false if ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
