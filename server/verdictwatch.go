package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

// healthWatch is a retelling of the health of a cluster.
type healthWatch struct {
	pace
	teller
	server *Server
	query  *healthQuery
	rights *rights

	// What the last answer was made of.
	revision uint64
	missing  []unansweredItem
	again    bool // it was not told, or other rights are those of now
}

func (s *Server) watchHealth(w http.ResponseWriter, r *http.Request, q *healthQuery) error {
	h := &healthWatch{
		pace: s.newPace(), teller: teller{event: "HEALTH"}, server: s, query: q, rights: newRights(access.From(r.Context())),
	}
	return s.tellAgain(w, r, &q.stream, h.rights, h)
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
	h.revision, h.missing = revision, missing
	return same, nil
}

// answer computes the health of now, and again if other rights are those of now when it
// has. It is nil while nothing has changed that it is made of.
func (h *healthWatch) answer(ctx context.Context) ([]byte, error) {
	for {
		data, err := h.compute(ctx)
		h.again = err != nil // nothing of it was told
		if !errors.Is(err, errRights) || ctx.Err() != nil {
			return data, err
		}
	}
}

func (h *healthWatch) compute(ctx context.Context) ([]byte, error) {
	began := h.begin()
	if same, err := h.same(ctx); same || err != nil {
		return nil, err
	}
	answer, err := h.server.askHealth(ctx, h.query)
	if err != nil {
		return nil, err
	}
	if time.Since(began) >= rightsInterval {
		if moved, err := h.rights.moved(ctx, h.query.cluster); moved || err != nil {
			return nil, errRights
		}
	}
	h.end(began)
	body, err := reply.JSON(answer, false)
	if err != nil {
		return nil, err
	}
	audit.From(ctx).Returned(len(answer.Items))
	return append(append([]byte(`{"type":"HEALTH","object":`), body...), '}'), nil
}

func (h *healthWatch) revoked(ctx context.Context) bool {
	if !h.rights.due() {
		return false
	}
	moved, err := h.rights.moved(ctx, h.query.cluster)
	h.again = h.again || moved || err != nil
	return h.again
}
