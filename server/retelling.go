package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

const (
	// retoldInterval is how often what is told whole is told at most.
	retoldInterval = time.Second
	// retoldShare bounds the share of time spent computing it: one part in so many, as
	// long as that keeps nobody waiting for longer than retoldPatience.
	retoldShare    = 10
	retoldPatience = 10 * time.Second
)

// retelling is one answer that a stream of its own tells whole whenever it is another
// one: groups, or the health of a cluster. It belongs to the goroutine of its request.
type retelling interface {
	// answer is the data of the next event. It is nil, or that of the last, if there is
	// nothing new.
	answer(ctx context.Context) ([]byte, error)
	// dueAt is when the next answer is.
	dueAt() time.Time
	// revoked reports whether other rights may be those of now than the last answer is by.
	revoked(ctx context.Context) bool
	// tell writes data unless it is what was told before, and reports whether it has.
	tell(out *eventWriter, data []byte) (bool, error)
}

// tellAgain streams an answer to q, whose reader has rights.
func (s *Server) tellAgain(w http.ResponseWriter, r *http.Request, q *query, rights *rights, a retelling) error {
	if err := negotiate(w, r, typeEvents); err != nil {
		return err
	}
	release, err := s.takeStream(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.watchContext(r, q)
	defer cancel()
	first, err := a.answer(ctx)
	if err != nil {
		return err
	}
	setEventHeaders(w.Header())
	if r.Method == http.MethodHead {
		return nil
	}
	if err := s.retell(ctx, newEventWriter(w, r, q.view), rights, a, first); err != nil {
		return &abortError{err}
	}
	return nil
}

// retell writes until the stream ends.
func (s *Server) retell(ctx context.Context, out *eventWriter, rights *rights, a retelling, data []byte) error {
	out.comment("informerd")
	for {
		if err := s.tellOrLive(out, a, data); err != nil {
			return ended(ctx, err)
		}
		if err := awaitDue(ctx, rights, a); err != nil {
			return nil
		}
		var err error
		if data, err = a.answer(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, cache.ErrStopped) {
				continue // another store takes its place, or the resource is gone
			}
			return out.failure(statusOf(kubeapi.Discreet(ctx, err)))
		}
	}
}

// tellOrLive tells what is new, or gives a sign of life.
func (s *Server) tellOrLive(out *eventWriter, a retelling, data []byte) error {
	news, err := a.tell(out, data)
	if err != nil {
		return err
	}
	if !news && time.Since(out.flushed) < s.Heartbeat {
		return nil
	}
	if !news {
		out.comment("")
	}
	return out.flush()
}

// awaitDue returns when an answer is due, or, sooner, when the last one is of what may not
// be seen any more. It returns the error of ctx.
func awaitDue(ctx context.Context, rights *rights, a retelling) error {
	for {
		left := time.Until(a.dueAt())
		resume := cache.Pause(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(min(left, rights.pause())):
		}
		resume()
		if ctx.Err() != nil || left <= rights.pause() || a.revoked(ctx) {
			return ctx.Err()
		}
	}
}

// teller tells nothing twice in a row.
type teller struct {
	event string
	told  []byte
}

func (t *teller) tell(out *eventWriter, data []byte) (bool, error) {
	if data == nil || bytes.Equal(data, t.told) {
		return false, nil
	}
	t.told = data
	return true, out.event(t.event, "", data)
}

// pace says when it is computed again.
type pace struct {
	pause time.Duration // at least
	due   time.Time
}

func (s *Server) newPace() pace { return pace{pause: min(retoldInterval, s.Heartbeat)} }

// begin is when a computation begins. One that fails is tried again after a pause.
func (p *pace) begin() time.Time {
	began := time.Now()
	p.due = began.Add(p.pause)
	return began
}

// end takes into account how long one took that is done.
func (p *pace) end(began time.Time) {
	p.due = time.Now().Add(max(p.pause, min(retoldShare*time.Since(began), retoldPatience)))
}

func (p *pace) dueAt() time.Time { return p.due }
