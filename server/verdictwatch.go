package server

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/kubeapi"
	"github.com/informerd/informerd/server/reply"
)

// healthWatch is a stream of the health of a cluster, which is told whole when it has
// changed. It belongs to the goroutine of its request.
type healthWatch struct {
	server *Server
	query  *healthQuery
	rights *rights
	out    *eventWriter
	due    time.Time
	told   []byte

	// What the last answer was made of.
	revision uint64
	missing  []unansweredItem
	again    bool // other rights are those of now
}

func (s *Server) watchHealth(w http.ResponseWriter, r *http.Request, q *healthQuery) error {
	if err := negotiate(w, r, typeEvents); err != nil {
		return err
	}
	release, err := s.takeStream(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.watchContext(r, &q.stream)
	defer cancel()
	h := &healthWatch{server: s, query: q, rights: newRights(access.From(r.Context()))}
	first, err := h.compute(ctx)
	if err != nil {
		return err
	}
	setEventHeaders(w.Header())
	if r.Method == http.MethodHead {
		return nil
	}
	h.out = newEventWriter(w, r, view{})
	if err := h.run(ctx, first); err != nil {
		return &abortError{err}
	}
	return nil
}

// same reports whether nothing has changed that the last answer was made of. A page that is
// open all day costs little in a cluster where nothing happens.
func (h *healthWatch) same(ctx context.Context) (bool, error) {
	cluster := h.query.cluster
	missing, err := h.server.checkKnown(ctx, cluster)
	if err != nil {
		return false, err
	}
	revision, err := h.server.relations.health(cluster).Revision(ctx)
	if err != nil {
		return false, err
	}
	moved, err := h.rights.moved(ctx, cluster)
	if err != nil {
		return false, err
	}
	same := h.told != nil && !moved && !h.again && revision == h.revision && slices.Equal(missing, h.missing)
	h.revision, h.missing, h.again = revision, missing, false
	return same, nil
}

// compute is the data of the next event, that told last if it would be the same. Computing
// it takes no more than a part of the time.
func (h *healthWatch) compute(ctx context.Context) ([]byte, error) {
	began := time.Now()
	h.due = began.Add(min(retoldInterval, h.server.Heartbeat))
	if same, err := h.same(ctx); same || err != nil {
		return h.told, err
	}
	answer, err := h.server.askHealth(ctx, h.query)
	if err != nil {
		return nil, err
	}
	if rest := time.Now().Add(min(retoldShare*time.Since(began), retoldPatience)); rest.After(h.due) {
		h.due = rest
	}
	body, err := reply.JSON(answer, false)
	if err != nil {
		return nil, err
	}
	audit.From(ctx).Returned(len(answer.Items))
	return append(append([]byte(`{"type":"HEALTH","object":`), body...), '}'), nil
}

// run writes until the stream ends.
func (h *healthWatch) run(ctx context.Context, data []byte) error {
	h.out.comment("informerd")
	for {
		if err := h.write(data); err != nil {
			return ended(ctx, err)
		}
		if h.wait(ctx) != nil {
			return nil
		}
		var err error
		if data, err = h.compute(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return h.out.failure(statusOf(kubeapi.Discreet(ctx, err)))
		}
	}
}

// write tells what was not told before, or gives a sign of life.
func (h *healthWatch) write(data []byte) error {
	switch {
	case !bytes.Equal(data, h.told):
		h.told = data
		if err := h.out.event("HEALTH", "", data); err != nil {
			return err
		}
	case time.Since(h.out.flushed) < h.server.Heartbeat:
		return nil
	default:
		h.out.comment("")
	}
	return h.out.flush()
}

// wait returns when the next answer is due, or, sooner, when other rights may be those of
// now. It returns the error of ctx.
func (h *healthWatch) wait(ctx context.Context) error {
	for {
		left := time.Until(h.due)
		resume := cache.Pause(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(min(left, h.rights.pause())):
		}
		resume()
		if ctx.Err() != nil || left <= h.rights.pause() {
			return ctx.Err()
		}
		if h.rights.due() {
			if moved, err := h.rights.moved(ctx, h.query.cluster); moved || err != nil {
				h.again = true
				return ctx.Err()
			}
		}
	}
}
