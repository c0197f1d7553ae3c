package replica

import (
	"context"
	"sync"
	"time"
)

// claim is a bookmark: the server says that a watch was told everything up to
// version.
type claim struct {
	version   string
	told      time.Time
	copied    bool // it is another informerd's, which knows of when it is
	confirmed bool
	err       error // why it is not known
}

// refuted reports whether the server said that it has not reached the version.
func (c claim) refuted() bool { return c.err == nil && !c.confirmed }

// claims are the bookmarks of one watch that the server has to confirm, one after
// the other, beside the stream: events do not wait for the answer. Of those that
// come meanwhile the last one is enough.
type claims struct {
	answers chan claim
	asking  sync.WaitGroup

	mu   sync.Mutex // guards all below
	busy bool
	next *claim
}

// ask has c confirmed; the answer is sent to answers unless ctx ends.
func (q *claims) ask(ctx context.Context, s *source, c claim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		q.next = &c
		return
	}
	q.busy = true
	q.asking.Go(func() { q.work(ctx, s, c) })
}

func (q *claims) work(ctx context.Context, s *source, c claim) {
	for {
		c.confirmed, c.err = s.confirm(ctx, c.version)
		select {
		case q.answers <- c:
		case <-ctx.Done():
			return
		}
		q.mu.Lock()
		if q.next == nil {
			q.busy = false
			q.mu.Unlock()
			return
		}
		c, q.next = *q.next, nil
		q.mu.Unlock()
	}
}
