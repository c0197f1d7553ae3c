package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/informerd/informerd/cache"
)

const (
	// groupInterval is how often watched groups are told at most.
	groupInterval = time.Second
	// groupShare bounds the share of time spent computing them: one part in so
	// many.
	groupShare = 10
)

// groupWatch is a stream of groups: the whole answer whenever it changed, but
// not more often than groupInterval. It belongs to the goroutine of its request.
type groupWatch struct {
	server *Server
	query  *query
	kinds  func() ([]Resource, error)
	out    *eventWriter
	tag    string // of what was told last
	told   []byte
	pause  time.Duration
}

// watchGroups streams the groups of what q selects of some resources.
func (s *Server) watchGroups(w http.ResponseWriter, r *http.Request, q *query, kinds func() ([]Resource, error)) error {
	if err := negotiate(w, r, typeEvents); err != nil {
		return err
	}
	if !s.watches.tryAcquire() {
		return tooMany("watches", cap(s.watches))
	}
	defer s.watches.release()
	ctx, cancel := s.watchContext(r, q)
	defer cancel()
	g := &groupWatch{server: s, query: q, kinds: kinds, pause: min(groupInterval, s.Heartbeat)}
	first, err := g.answer(ctx, r)
	if err != nil {
		return err
	}
	setEventHeaders(w.Header())
	if r.Method == http.MethodHead {
		return nil
	}
	g.out = newEventWriter(w, q.view)
	if err := g.run(ctx, r, first); err != nil {
		return &abortError{err}
	}
	return nil
}

// answer computes the groups if something changed since the last time, as the
// data of an event; else it returns nil.
func (g *groupWatch) answer(ctx context.Context, r *http.Request) ([]byte, error) {
	kinds, err := g.kinds()
	if err != nil {
		return nil, err
	}
	tag := kindsTag(r, kinds)
	if tag == g.tag {
		return nil, nil
	}
	began := time.Now()
	a, err := askKinds(ctx, kinds, g.query.Query)
	if err != nil {
		return nil, err
	}
	for i := range a.states {
		a.states[i].ResourceVersion = "" // groups that stay the same are not told again
	}
	l, err := g.query.groupList(ctx, a.objects, listMeta{Resources: a.states})
	if err != nil {
		return nil, err
	}
	g.tag = tag
	g.pause = max(g.pause, groupShare*time.Since(began))
	data, err := appendList([]byte(`{"type":"GROUPS","object":`), l)
	return append(bytes.TrimSuffix(data, []byte("\n")), '}'), err
}

// appendList appends a whole list as JSON.
func appendList(dst []byte, l *listing) ([]byte, error) {
	var lw jsonWriter
	dst, err := lw.head(dst, l)
	if err != nil {
		return dst, err
	}
	for i := range l.count {
		if dst, err = lw.item(dst, l, i); err != nil {
			return dst, err
		}
	}
	return lw.foot(dst, l), nil
}

// run writes until the stream ends.
func (g *groupWatch) run(ctx context.Context, r *http.Request, data []byte) error {
	g.out.comment("informerd")
	for {
		if err := g.tell(data); err != nil {
			return ended(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(g.pause):
		}
		var err error
		if data, err = g.answer(ctx, r); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, cache.ErrStopped) {
				continue // another store takes its place, or the resource is gone
			}
			return g.out.failure(statusOf(err))
		}
	}
}

// tell writes groups that are not those told before, or a sign of life.
func (g *groupWatch) tell(data []byte) error {
	switch {
	case data != nil && !bytes.Equal(data, g.told):
		g.told = data
		if err := g.out.event("GROUPS", "", data); err != nil {
			return err
		}
	case time.Since(g.out.flushed) >= g.server.Heartbeat:
		g.out.comment("")
	default:
		return nil
	}
	return g.out.flush()
}
