package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/informerd/informerd/cache"
)

// ErrTakenOver: another informerd uses the tables, and is the only one that may write them.
var ErrTakenOver = errors.New("another informerd has taken over the database: two must not have the same schema")

// ErrNewerSchema: a newer informerd made the tables.
var ErrNewerSchema = errors.New("the tables were made by a newer informerd")

// errLost: the row by which this process writes, or a table, is not there any more, or is
// of a time before this process came. It attaches anew.
var errLost = errors.New("the database is not what it was: it was put back, or its tables were dropped")

// damaged marks what was read and cannot be understood. Everything else that goes wrong with
// a database says nothing of what is in it.
func damaged(err error) error {
	if err == nil || errors.Is(err, cache.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", cache.ErrCorrupt, err)
}

// answered reports whether an error says what is saved, or is not.
func answered(err error) bool {
	return errors.Is(err, cache.ErrNoSnapshot) || errors.Is(err, cache.ErrCorrupt)
}

// failed is an error of a transaction as callers get it: where it was met, and what somebody
// can do about it.
func (p *Postgres) failed(err error) error {
	if err == nil || answered(err) || errors.Is(err, errStopped) {
		return err
	}
	if _, ok := errors.AsType[*oddError](err); ok {
		return err
	}
	if errors.Is(err, ErrTakenOver) {
		p.link.end(p.away(err))
	} else if p.unreachable(err) {
		p.link.lost(p.away(err))
	}
	return p.away(err)
}

// pingFor is how long the database has to answer somebody who asks for nothing.
const pingFor = 2 * time.Second

// answers reports whether the database does. A transaction that had to be given up may have
// waited for a table that is locked, or been too large for its time: that is no reason for
// others not to ask.
func (p *Postgres) answers() bool {
	ctx, cancel := context.WithTimeout(p.ctx, pingFor)
	defer cancel()
	return p.pool.Ping(ctx) == nil
}

// away says that an error is of the database, and not of what it holds.
func (p *Postgres) away(err error) error {
	if errors.Is(err, cache.ErrAway) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", cache.ErrAway, p.place, said(err))
}

// unreachable reports whether the connection is to blame: the next call would wait for it
// just as long, or another connection leads to the primary that this one is not any more.
func (p *Postgres) unreachable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return !errors.Is(err, ErrNewerSchema) && !errors.Is(err, errLost) && !p.answers()
	}
	return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300" || pg.Code == "25006"
}

// hasCode reports whether the database answered with one of the codes.
func hasCode(err error, codes ...string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, pg.Code)
}

// isGone reports whether a table or the schema is not there.
func isGone(err error) bool { return hasCode(err, "42P01", "3F000") }

// said is an error with what an operator can do about it, where that is known.
func said(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case pg.Code == "42501":
		return fmt.Errorf("the user lacks a right: %w", err)
	case pg.Code == "28P01", pg.Code == "28000":
		return fmt.Errorf("it does not let the user in: %w", err)
	case pg.Code == "3D000":
		return fmt.Errorf("there is no such database: %w", err)
	case pg.Code == "53100":
		return fmt.Errorf("its disk is full: %w", err)
	case pg.Code == "25006":
		return fmt.Errorf("it is read-only, a standby for one: %w", err)
	case pg.Code == "57014":
		return fmt.Errorf("a statement took too long: %w", err)
	case pg.Code == "55P03":
		return fmt.Errorf("somebody else has locked the tables: %w", err)
	case strings.HasPrefix(pg.Code, "42"):
		return fmt.Errorf("the tables are not as informerd made them, drop the schema to have them made anew: %w", err)
	}
	return err
}
