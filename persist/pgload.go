package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	id, cluster, stamp int64
	meta               []byte
}

// objects is the table of its copies.
func (r *pgResource) objects() string { return objectsTable(r.cluster) }

func objectsTable(cluster int64) string { return fmt.Sprintf("objects_%d", cluster) }

// find finds the row of a resource; cache.ErrNoSnapshot if there is none. lock says how it
// is locked.
func (p *Postgres) find(ctx context.Context, tx pgx.Tx, r cache.Resource, lock string) (*pgResource, error) {
	row := &pgResource{}
	err := tx.QueryRow(ctx, p.in(`SELECT r.id, r.cluster, r.stamp, r.meta FROM {resources} r
		WHERE r.cluster = (SELECT id FROM {clusters} WHERE name = $1) AND r.api_group = $2 AND r.resource = $3 AND r.version = $4 `+lock),
		r.Cluster, r.GVR.Group, r.GVR.Resource, r.GVR.Version).Scan(&row.id, &row.cluster, &row.stamp, &row.meta)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, cache.ErrNoSnapshot
	}
	return row, err
}

// Load reads the snapshot of r; see cache.Snapshots. A connection is in use while yield
// runs. An error of yield ends the Load and is returned as it is.
func (p *Postgres) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	if _, err := resourceName(r); err != nil {
		return cache.Saved{}, err
	}
	w := newWatchdog(p.options.patience)
	defer w.stop()
	var saved cache.Saved
	var stamp int64
	var stopped error // what yield returned
	err := p.read(w.ctx, func(tx pgx.Tx) error {
		row, err := p.find(w.ctx, tx, r, "")
		if err != nil {
			return err
		}
		m, err := decodeMeta(metaKey, row.meta)
		if err != nil {
			return fmt.Errorf("meta: %w", err)
		}
		stamp, saved = row.stamp, m.saved()
		if saved.Dictionaries, err = p.loadDictionaries(w.ctx, tx, row.id); err != nil {
			return err
		}
		if n := len(saved.Dictionaries); n != m.Dictionaries {
			return fmt.Errorf("%d dictionaries, %d were saved", n, m.Dictionaries)
		}
		return p.loadObjects(w, tx, row, m, func(rec cache.Record) error {
			stopped = yield(rec)
			return stopped
		})
	})
	switch {
	case err == nil:
		p.has(resourceStamp(r), stamp)
		return saved, nil
	case stopped != nil:
		return cache.Saved{}, stopped
	case errors.Is(err, cache.ErrNoSnapshot):
		return cache.Saved{}, fmt.Errorf("%s: %w", r, err)
	}
	return cache.Saved{}, corrupt(r, err)
}

// resourceStamp is the name under which the stamps of a resource are known.
func resourceStamp(r cache.Resource) string { return "resource " + r.String() }

func (p *Postgres) loadDictionaries(ctx context.Context, tx pgx.Tx, resource int64) (map[uint32][]byte, error) {
	rows, err := tx.Query(ctx, p.in(`SELECT id, value FROM {dictionaries} WHERE resource = $1`), resource)
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
		key := dictionaryKey(uint32(id))
		n, data, err := decodeDictionary(key, value)
		if err != nil {
			return nil, fmt.Errorf("dictionary %d: %w", id, err)
		}
		all[n] = data
	}
	return all, rows.Err()
}

// loadObjects reads the rows of a resource and holds them against what its meta says of
// them together: one that was deleted by hand, or added, is noticed.
func (p *Postgres) loadObjects(w *watchdog, tx pgx.Tx, row *pgResource, m *meta, yield func(cache.Record) error) error {
	rows, err := tx.Query(w.ctx, p.in(`SELECT namespace, name, value FROM {`+row.objects()+`} WHERE resource = $1 ORDER BY namespace, name`), row.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	decoder := newRecordDecoder(m.Indexes)
	var key []byte
	var sum uint64
	n := 0
	for rows.Next() {
		if n++; n%1000 == 0 {
			w.alive()
		}
		columns := rows.RawValues() // good until the next row
		key = append(append(append(key[:0], columns[0]...), 0), columns[1]...)
		rec, err := decoder.decode(key, columns[2])
		if err != nil {
			return fmt.Errorf("object %s: %w", parseKey(key), err)
		}
		sum += uint64(storedSum(columns[2]))
		if err := yield(rec); err != nil {
			return err
		}
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case n != m.Objects:
		return fmt.Errorf("%d objects, %d were saved", n, m.Objects)
	case sum != m.Sum:
		return errors.New("objects are of another commit")
	}
	return nil
}

// watchdog ends a context when nothing has come for a time.
type watchdog struct {
	ctx      context.Context
	cancel   context.CancelFunc
	patience time.Duration
	timer    *time.Timer
}

func newWatchdog(patience time.Duration) *watchdog {
	ctx, cancel := context.WithCancel(context.Background())
	return &watchdog{ctx, cancel, patience, time.AfterFunc(patience, cancel)}
}

func (w *watchdog) alive() { w.timer.Reset(w.patience) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}
