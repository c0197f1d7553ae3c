package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/informerd/informerd/server/access"
)

// groupWatch is a retelling of groups.
type groupWatch struct {
	*retold
	rights *rights
	kinds  func() ([]*viewed, error)
	seen   []*viewed // that the last groups are of
}

// watchGroups streams the groups of what q selects of some resources.
func (s *Server) watchGroups(w http.ResponseWriter, r *http.Request, q *query, kinds func() ([]*viewed, error)) error {
	g := &groupWatch{retold: s.newRetold(q, "GROUPS"), rights: newRights(access.From(r.Context())), kinds: kinds}
	return s.tellAgain(w, r, q, g.rights, g)
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

func (g *groupWatch) revoked(ctx context.Context) bool { return g.rights.changed(ctx, g.seen...) }
