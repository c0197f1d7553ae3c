package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/kubeapi"
)

// groupWatch is a stream of groups. It belongs to the goroutine of its request.
type groupWatch struct {
	*retold
	server *Server
	rights *rights
	kinds  func() ([]*viewed, error)
	seen   []*viewed // that the last groups are of
	out    *eventWriter
}

// watchGroups streams the groups of what q selects of some resources.
func (s *Server) watchGroups(w http.ResponseWriter, r *http.Request, q *query, kinds func() ([]*viewed, error)) error {
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
	g := &groupWatch{retold: s.newRetold(q, "GROUPS"), server: s, rights: newRights(access.From(r.Context())), kinds: kinds}
	first, err := g.answer(ctx)
	if err != nil {
		return err
	}
	setEventHeaders(w.Header())
	if r.Method == http.MethodHead {
		return nil
	}
	g.out = newEventWriter(w, r, q.view)
	if err := g.run(ctx, first); err != nil {
		return &abortError{err}
	}
	return nil
}

// answer computes the groups of now, and again if other rights are those of now when it
// has.
func (g *groupWatch) answer(ctx context.Context) ([]byte, error) {
	for {
		kinds, err := g.kinds()
		if err != nil {
			return nil, err
		}
		g.seen = kinds
		data, err := g.compute(ctx, kinds)
		if !errors.Is(err, errRights) || ctx.Err() != nil {
			return data, err
		}
	}
}

// wait returns when groups are due, or, sooner, when they are of what may not be seen
// any more. It returns the error of ctx.
func (g *groupWatch) wait(ctx context.Context) error {
	for {
		left := time.Until(g.due)
		resume := cache.Pause(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(min(left, g.rights.pause())):
		}
		resume()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if left <= g.rights.pause() || g.rights.changed(ctx, g.seen...) {
			return ctx.Err()
		}
	}
}

// run writes until the stream ends.
func (g *groupWatch) run(ctx context.Context, data []byte) error {
	g.out.comment("informerd")
	for {
		if err := g.write(data); err != nil {
			return ended(ctx, err)
		}
		if err := g.wait(ctx); err != nil {
			return nil
		}
		var err error
		if data, err = g.answer(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, cache.ErrStopped) {
				continue // another store takes its place, or the resource is gone
			}
			return g.out.failure(statusOf(kubeapi.Discreet(ctx, err)))
		}
	}
}

// write tells groups that are not those told before, or gives a sign of life.
func (g *groupWatch) write(data []byte) error {
	news, err := g.tell(g.out, data)
	if err != nil {
		return err
	}
	if !news && time.Since(g.out.flushed) < g.server.Heartbeat {
		return nil
	}
	if !news {
		g.out.comment("")
	}
	return g.out.flush()
}
