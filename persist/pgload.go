package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/informerd/informerd/cache"
)

// Saved lists the snapshots held, in the order of their resources. One whose description
// is damaged is left out: Load says what is wrong with it.
func (p *Postgres) Saved() ([]cache.Saved, error) {
	ctx, cancel := p.within(0)
	defer cancel()
	var all []cache.Saved
	err := p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, p.in(`SELECT meta FROM {resources}`))
		if err != nil {
			return err
		}
		metas, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		all = nil
		for _, value := range metas {
			m, err := decodeMeta(metaKey, value)
			if err != nil {
				p.options.Log.Warn("snapshot left out, its description is damaged", "err", err)
				continue
			}
			all = append(all, m.saved())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	slices.SortFunc(all, func(a, b cache.Saved) int { return a.Spec.Resource.Compare(b.Spec.Resource) })
	return all, nil
}

// pgResource is a row of the table of resources.
type pgResource struct {
	id, stamp int64
	objects   string // the table of its copies
	meta      []byte
}

// find finds the row of a resource; cache.ErrNoSnapshot if there is none. lock says how it
// is locked.
func (p *Postgres) find(ctx context.Context, tx pgx.Tx, name []byte, lock string) (*pgResource, error) {
	row := &pgResource{}
	err := tx.QueryRow(ctx, p.in(`SELECT id, objects, stamp, meta FROM {resources} WHERE hash = $1 `+lock), hashOf(name)).
		Scan(&row.id, &row.objects, &row.stamp, &row.meta)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, cache.ErrNoSnapshot
	}
	return row, err
}

// errStopped ends a transaction because whoever reads wants no more.
var errStopped = errors.New("the reader has ended it")

// Load reads the snapshot of r; see cache.Snapshots. A connection is in use while yield
// runs. An error of yield ends the Load and is returned as it is.
func (p *Postgres) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	name, err := resourceName(r)
	if err != nil {
		return cache.Saved{}, fmt.Errorf("%s: %w", r, cache.ErrNoSnapshot)
	}
	w := p.startReading()
	defer w.stop()
	l := pgLoad{p: p, w: w, name: name, yield: yield}
	err = p.read(w.ctx, l.run)
	switch {
	case err == nil:
		p.has(resourceStamp(r), l.stamp)
		return l.saved, nil
	case l.stopped != nil:
		return cache.Saved{}, l.stopped
	case errors.Is(err, cache.ErrCorrupt) && p.IsStandby():
		// Who writes may have been giving the table new pages, for which its own readings wait.
		err = p.away(errors.New(err.Error()))
	}
	return cache.Saved{}, fmt.Errorf("%s: %w", r, err)
}

// resourceStamp is the name under which the stamps of a resource are known.
func resourceStamp(r cache.Resource) string { return "resource " + r.String() }

// pgLoad is one Load.
type pgLoad struct {
	p       *Postgres
	w       *watchdog
	name    []byte
	yield   func(cache.Record) error
	stopped error // what yield returned
	stamp   int64
	saved   cache.Saved
}

func (l *pgLoad) run(tx pgx.Tx) error {
	row, err := l.p.find(l.w.ctx, tx, l.name, "")
	if err != nil {
		return err
	}
	m, err := decodeMeta(metaKey, row.meta)
	if err != nil {
		return damaged(fmt.Errorf("meta: %w", err))
	}
	l.stamp, l.saved = row.stamp, m.saved()
	if l.saved.Dictionaries, err = l.dictionaries(tx, row.id); err != nil {
		return err
	}
	if n := len(l.saved.Dictionaries); n != m.Dictionaries {
		return damaged(fmt.Errorf("%d dictionaries, %d were saved", n, m.Dictionaries))
	}
	return l.objects(tx, row, m)
}

func (l *pgLoad) dictionaries(tx pgx.Tx, resource int64) (map[uint32][]byte, error) {
	rows, err := tx.Query(l.w.ctx, l.p.in(`SELECT id, value FROM {dictionaries} WHERE resource = $1`), resource)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[uint32][]byte{}
	for rows.Next() {
		var id int64
		var value []byte
		if err := rows.Scan(&id, &value); err != nil {
			return nil, err
		}
		n, data, err := decodeDictionary(dictionaryKey(uint32(id)), value)
		if err != nil {
			return nil, damaged(fmt.Errorf("dictionary %d: %w", id, err))
		}
		all[n] = data
	}
	return all, rows.Err()
}

// objects reads the rows of a resource and holds them against what its meta says of them
// together: one that was deleted by hand, or added, is noticed.
//
// Values are scanned, and not taken as they come: behind a pooler they may come as text.
func (l *pgLoad) objects(tx pgx.Tx, row *pgResource, m *meta) error {
	// All of them are put in order before the first one comes.
	l.w.timer.Reset(l.p.bound(m.Objects))
	rows, err := tx.Query(l.w.ctx, l.p.in(`SELECT key, value FROM {`+row.objects+`} WHERE resource = $1 ORDER BY key`), row.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	decoder := newRecordDecoder(m.Indexes)
	var key, value pgtype.DriverBytes // good until the next row
	var sum uint64
	n := 0
	for rows.Next() {
		if n++; n%100 == 1 { // from the first on, which came after all were put in order
			l.w.alive()
		}
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		rec, err := decoder.decode(key, value)
		if err != nil {
			return damaged(fmt.Errorf("object %s: %w", parseKey(key), err))
		}
		sum += uint64(storedSum(value))
		if l.stopped = l.yield(rec); l.stopped != nil {
			return errStopped
		}
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case n != m.Objects:
		return damaged(fmt.Errorf("%d objects, %d were saved", n, m.Objects))
	case sum != m.Sum:
		return damaged(errors.New("objects are of another commit"))
	}
	return nil
}

// watchdog ends a context when nothing has come for a time.
type watchdog struct {
	ctx      context.Context
	cancel   context.CancelFunc
	patience time.Duration
	timer    *time.Timer
	ended    func()
}

// startReading waits until there is a connection for a reading, which others may have for
// long, and gives it a watchdog of its own then.
func (p *Postgres) startReading() *watchdog {
	p.loads <- struct{}{}
	return newWatchdog(p.ctx, p.options.patience, func() { <-p.loads })
}

func newWatchdog(ctx context.Context, patience time.Duration, ended func()) *watchdog {
	ctx, cancel := context.WithCancel(ctx)
	return &watchdog{ctx, cancel, patience, time.AfterFunc(patience, cancel), ended}
}

func (w *watchdog) alive() { w.timer.Reset(w.patience) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
	w.ended()
}
