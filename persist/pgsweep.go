package persist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// sweepLock is how long a sweep waits for its table, and so who wants it after the sweep.
	sweepLock = 500 * time.Millisecond
	// sweepRetry is how long it waits after that, or another error.
	sweepRetry = 5 * time.Second
)

// sweeps are the tables that have rows of what must not be kept. Guarded by Postgres.mu.
type sweeps struct {
	due    map[string]bool
	marked map[pgx.Tx][]string // by transactions that are under way
	err    error               // of the last one, unless it only has to be tried again
	wake   chan struct{}       // holds one
}

func newSweeps() sweeps {
	return sweeps{due: map[string]bool{}, marked: map[pgx.Tx][]string{}, wake: make(chan struct{}, 1)}
}

// mustSweep marks a table in the transaction that takes something away, so that a process
// that ends before the table is swept leaves it to the next. Each mark has a stamp: a sweep
// takes away those that it saw when it had the table for itself, and no others.
func (p *Postgres) mustSweep(ctx context.Context, tx pgx.Tx, table string) error {
	if _, err := tx.Exec(ctx, p.in(`INSERT INTO {sweeps} VALUES ($1, $2)`), table, newStamp()); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeps.marked[tx] = append(p.sweeps.marked[tx], table)
	return nil
}

// ended makes the tables due that a transaction has marked: before it ended a sweep could not
// see its marks.
func (p *Postgres) ended(tx pgx.Tx) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, table := range p.sweeps.marked[tx] {
		p.sweeps.due[table] = true
	}
	delete(p.sweeps.marked, tx)
}

// loadSweeps finds what another process has left to be swept.
func (p *Postgres) loadSweeps(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, p.in(`SELECT DISTINCT name FROM {sweeps}`))
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.sweeps.due[name] = true
	}
	return err
}

// Sweep has the tables written anew that hold what must not be kept, and does not wait for
// it: no question finds that any more, and nothing else may wait for a table to be had. It
// returns why the last sweep failed, if the next is not likely to do better. It knows nothing
// of copies that the database has of its pages elsewhere: its log, standbys, backups.
func (p *Postgres) Sweep() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sweeps.due) == 0 {
		return nil
	}
	select {
	case p.sweeps.wake <- struct{}{}:
	default:
	}
	if p.sweeps.err != nil {
		return fmt.Errorf("erase what rules take away: %w", p.sweeps.err)
	}
	return nil
}

// sweepAll sweeps what is due until ctx ends.
func (p *Postgres) sweepAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.sweeps.wake:
		}
		for p.sweepDue(); p.isDue() && pauseFor(ctx, sweepRetry); {
			p.sweepDue()
		}
	}
}

func (p *Postgres) isDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sweeps.due) > 0
}

// sweepDue tries to sweep each table that is due.
func (p *Postgres) sweepDue() {
	p.mu.Lock()
	due := slices.Sorted(maps.Keys(p.sweeps.due))
	p.mu.Unlock()
	var failed error
	for _, table := range due {
		if err := p.sweepTable(table); err != nil && !p.passes(err) {
			failed = errors.Join(failed, fmt.Errorf("table %s: %w", table, err))
		}
	}
	p.mu.Lock()
	said := p.sweeps.err
	p.sweeps.err = failed
	p.mu.Unlock()
	if failed != nil && (said == nil || said.Error() != failed.Error()) {
		p.options.Log.Error("the database still holds what rules take away, trying again", "err", failed)
	}
}

// errInUse: rows of the table, or of others, are being read.
var errInUse = errors.New("the tables are being read")

// passes reports whether a sweep that failed needs nobody to do something about it. That the
// database is away is said by who saves.
func (p *Postgres) passes(err error) bool {
	return errors.Is(err, errInUse) || hasCode(err, "55P03", "40P01") || p.link.trouble() != nil || p.ctx.Err() != nil
}

// sweepTable gives a table new pages, which hold the rows that there are and no others.
// Emptying it and putting them back does that: its files are new then. VACUUM FULL, which
// keeps what an older transaction could still see, does not. Nor does it fail where the user
// may not do it: it says so in a warning.
//
// A transaction of this process that began before would find the table empty: there is none,
// since it is not read meanwhile; readers of the mirror may, see docs/postgresql.md. One that changes rows, or takes the tables over, waits.
func (p *Postgres) sweepTable(table string) error {
	if !p.reading.TryLock() {
		return errInUse
	}
	defer p.reading.Unlock()
	ctx, cancel := p.within(1_000_000)
	defer cancel()
	swept := false
	err := p.change(ctx, p.bound(1_000_000), func(tx pgx.Tx) error {
		stamps, err := p.lockSwept(ctx, tx, table)
		if err != nil || len(stamps) == 0 {
			swept = err == nil
			return err
		}
		for _, query := range []string{
			`CREATE TEMPORARY TABLE informerd_kept ON COMMIT DROP AS SELECT * FROM {` + table + `}`,
			`TRUNCATE {` + table + `}`,
			`INSERT INTO {` + table + `} SELECT * FROM informerd_kept`,
		} {
			if _, err := tx.Exec(ctx, p.in(query)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, p.in(`DELETE FROM {sweeps} WHERE name = $1 AND stamp = ANY($2::bigint[])`), table, stamps)
		swept = true
		return err
	})
	if err != nil || !swept {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sweeps.due, table)
	return nil
}

// lockSwept locks a table, and returns the stamps of its marks: whoever set one of them has
// ended. There is none if the table has gone.
func (p *Postgres) lockSwept(ctx context.Context, tx pgx.Tx, table string) ([]int64, error) {
	found, err := p.found(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !found[table] {
		_, err := tx.Exec(ctx, p.in(`DELETE FROM {sweeps} WHERE name = $1`), table)
		return nil, err
	}
	if err := p.limits(ctx, tx, bounds{p.bound(1_000_000), sweepLock, p.options.patience / 2}); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, p.in(`LOCK TABLE {`+table+`} IN ACCESS EXCLUSIVE MODE`)); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, p.in(`SELECT stamp FROM {sweeps} WHERE name = $1`), table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
