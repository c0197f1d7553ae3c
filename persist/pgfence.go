package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// fence is the row that says who writes: its number, which grows with each writer, whose it
// is, and since when by the clock of the database.
//
// The number alone does not tell: a standby that was behind, or a backup that was put back,
// has an older one, and the next writer takes a number that was given out before. The
// identity says whose it is, and the time which of two came last.
type fence struct {
	epoch  int64
	writer []byte
	since  time.Time
}

// check compares the row that is there with what this writer holds.
func (f fence) check(now fence) error {
	switch {
	case bytes.Equal(f.writer, now.writer) && f.epoch == now.epoch:
		return nil
	case bytes.Equal(f.writer, now.writer):
		return errLost
	case now.epoch > f.epoch, now.since.After(f.since):
		return ErrTakenOver
	}
	return errLost
}

const selectFence = `SELECT epoch, writer, since FROM {store} `

func (p *Postgres) readFence(ctx context.Context, tx pgx.Tx, lock string) (now fence, err error) {
	err = tx.QueryRow(ctx, p.in(selectFence+lock)).Scan(&now.epoch, &now.writer, &now.since)
	if errors.Is(err, pgx.ErrNoRows) || isGone(err) {
		return now, errLost
	}
	return now, err
}

// connect is what the link does: after it the tables are there, and this is who writes them.
func (p *Postgres) connect(ctx context.Context) error {
	// What was connected before may hang.
	p.pool.Reset()
	if err := p.attach(ctx); err != nil {
		return p.away(err)
	}
	return nil
}

// attachFor is how long it may take to take over: the writer before may be about to end.
const attachFor = 15 * time.Second

// attach takes the tables over, or finds that this is still who writes them.
func (p *Postgres) attach(ctx context.Context) error {
	p.attaching.Lock()
	defer p.attaching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attachFor)
	defer cancel()
	if p.standsBy() {
		return p.look(ctx)
	}
	held := p.holds()
	var next fence
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if err := p.limits(ctx, tx, bounds{attachFor, attachFor * 2 / 3, p.options.patience / 2}); err != nil {
			return err
		}
		p.link.hear()
		// Whoever wrote before has ended: ensure waits for the row, which it has locked.
		if err := p.ensure(ctx, tx); err != nil {
			return err
		}
		var err error
		if next, err = p.take(ctx, tx, held); err != nil {
			return err
		}
		return p.loadSweeps(ctx, tx)
	})
	if err != nil {
		return err
	}
	if held.epoch != next.epoch {
		p.options.Log.Info("the database of snapshots is taken over", "database", p.place, "epoch", next.epoch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.standby { // it was not told to meanwhile
		p.held = next
	}
	return nil
}

// look makes sure that the database can be read, and the tables in it if they are there: who
// writes makes them.
func (p *Postgres) look(ctx context.Context) error {
	var version int
	err := p.pool.QueryRow(ctx, p.in(`SELECT version FROM {store}`)).Scan(&version)
	switch {
	case isGone(err), errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return err
	case version > schemaVersion:
		return fmt.Errorf("%w: version %d, this one knows %d", ErrNewerSchema, version, schemaVersion)
	}
	p.link.hear()
	return nil
}

// take makes the row this writer's, unless it is already, or another has come since.
func (p *Postgres) take(ctx context.Context, tx pgx.Tx, held fence) (fence, error) {
	now, err := p.readFence(ctx, tx, "FOR UPDATE")
	if err != nil {
		return fence{}, err
	}
	if held.epoch != 0 {
		if err := held.check(now); !errors.Is(err, errLost) {
			return held, err
		}
	}
	next := fence{epoch: max(now.epoch, held.epoch) + 1, writer: p.writer}
	err = tx.QueryRow(ctx, p.in(`UPDATE {store} SET epoch = $1, writer = $2, since = clock_timestamp() RETURNING since`), next.epoch, next.writer).Scan(&next.since)
	return next, err
}

// holds is what this writer holds. Whoever asks may have locked the row that attach waits for,
// so that it must not wait for attach.
func (p *Postgres) holds() fence {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// bounds are what a statement, a lock and a pause between statements may take.
type bounds struct{ statement, lock, idle time.Duration }

// limits bounds what a transaction waits for, for itself alone: it may share its connection
// with others behind a pooler. The database ends what nobody waits for any more: a statement
// that takes longer than its caller has patience, a transaction of a process that is frozen,
// and one whose peer has vanished. Who takes over must not wait for those.
func (p *Postgres) limits(ctx context.Context, tx pgx.Tx, b bounds) error {
	ms := func(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
	_, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
		set_config('idle_in_transaction_session_timeout', $3, true), set_config('tcp_user_timeout', $4, true)`,
		ms(b.statement), ms(b.lock), ms(b.idle), ms(p.options.patience/2))
	return err
}

// change runs fn in a transaction that only ends well while this Postgres is the one that
// writes: whoever takes over waits until it has ended.
func (p *Postgres) change(ctx context.Context, bound time.Duration, fn func(tx pgx.Tx) error) error {
	if p.standsBy() {
		return p.away(errStandby)
	}
	var all []pgx.Tx
	defer func() {
		for _, tx := range all {
			p.ended(tx)
		}
	}()
	return p.run(ctx, pgx.TxOptions{}, bounds{bound, bound, p.options.patience / 2}, func(tx pgx.Tx) error {
		all = append(all, tx)
		now, err := p.readFence(ctx, tx, "FOR SHARE")
		if err != nil {
			return err
		}
		held := p.holds()
		if held.epoch == 0 {
			return errStandby // it is about to take over
		}
		if err := held.check(now); err != nil {
			return err
		}
		return fn(tx)
	})
}

// longest is how long one statement may take whose rows are read, and how long it may take to
// look at them: whoever reads ends it sooner when none come. It holds up nobody.
const longest = 10 * time.Minute

// read runs fn in a transaction that sees one state of everything.
func (p *Postgres) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	p.reading.RLock()
	defer p.reading.RUnlock()
	return p.run(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, bounds{longest, longest, longest}, fn)
}

// run runs a transaction. Where the tables are not what they were, it attaches anew and tries
// once more: what is missing then is found missing.
func (p *Postgres) run(ctx context.Context, o pgx.TxOptions, b bounds, fn func(tx pgx.Tx) error) error {
	if err := p.link.await(ctx); err != nil {
		return p.away(err)
	}
	once := func() error {
		return pgx.BeginTxFunc(ctx, p.pool, o, func(tx pgx.Tx) error {
			if err := p.limits(ctx, tx, b); err != nil {
				return err
			}
			return fn(tx)
		})
	}
	err := once()
	if isGone(err) && p.standsBy() {
		return p.away(errNoTables)
	}
	if errors.Is(err, errLost) || isGone(err) {
		p.options.Log.Warn("the database of snapshots is not what it was", "database", p.place, "err", err)
		if err = p.attach(ctx); err == nil {
			err = once()
		}
	}
	if err != nil && p.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return p.failed(err)
}
