package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// retold is an answer over all objects found that a stream tells whole whenever
// it changed: groups, or facets. It belongs to the goroutine of its request.
type retold struct {
	pace
	teller // of GROUPS or FACETS
	query  *query
	at     string // revisionsOf what was computed last
}

func (s *Server) newRetold(q *query, event string) *retold {
	return &retold{pace: s.newPace(), teller: teller{event: event}, query: q}
}

// watchedFacets tells the facets of a stream of objects; nil if q asks for none.
func (s *Server) watchedFacets(q *query) *retold {
	if q.summary.Grouped || len(q.summary.Facets) == 0 {
		return nil
	}
	return s.newRetold(q, "FACETS")
}

// compute returns the data of the next event, nil if nothing it could be
// different for changed. It is errRights if it took long, and other rights are those of
// now.
func (t *retold) compute(ctx context.Context, kinds []*viewed) ([]byte, error) {
	began := t.begin()
	at := revisionsOf(kinds)
	if at == t.at {
		return nil, nil
	}
	a, err := askKinds(ctx, kinds, t.query.Query, false, false)
	if err != nil {
		return nil, err
	}
	for i := range a.states {
		a.states[i].ResourceVersion = "" // what stays the same is not told again
	}
	l, err := t.listing(ctx, a)
	if err != nil {
		return nil, err
	}
	if time.Since(began) >= rightsInterval && slices.ContainsFunc(kinds, func(k *viewed) bool { return k.stillSeen(ctx) != nil }) {
		return nil, errRights
	}
	t.at = at
	t.end(began)
	data, err := appendList([]byte(`{"type":"`+t.event+`","object":`), l)
	return append(bytes.TrimSuffix(data, []byte("\n")), '}'), err
}

func (t *retold) listing(ctx context.Context, a *kindsAnswer) (*listing, error) {
	if t.query.summary.Grouped {
		return t.query.groupList(ctx, a.foundObjects, listMeta{Resources: a.states})
	}
	facets, err := t.query.facets(ctx, a.foundObjects)
	return &listing{Kind: "FacetList", APIVersion: apiVersion, Metadata: listMeta{Resources: a.states}, Facets: facets}, err
}

// tellDue computes and tells what is due, of kinds. That none of them can be read
// now is no error, nor that rights have changed: the stream says so otherwise.
func (t *retold) tellDue(ctx context.Context, kinds []*viewed, out *eventWriter) error {
	if t == nil || time.Now().Before(t.due) {
		return nil
	}
	data, err := t.compute(ctx, kinds)
	if err != nil {
		if ctx.Err() == nil && (errors.Is(err, errRights) || statusOf(err).Code == http.StatusServiceUnavailable) {
			return nil
		}
		return err
	}
	_, err = t.tell(out, data)
	return err
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
