package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/informerd/informerd/cache"
)

// Bounds of what one statement changes.
const (
	pgRows  = 1000
	pgBytes = 4 << 20
)

// uniqueUpTo is how many records of a batch that begins anew may have a key twice, so that
// the last counts. Of a larger one, which a Store makes, none has.
const uniqueUpTo = 100_000

// Commit makes all batches and changes of ledgers durable: all or nothing; see
// cache.Snapshots. Of one batch, Delete is done before Put. A zero SavedAt becomes now.
//
// A batch without Reset is refused, with cache.ErrNoSnapshot, unless it is added to what
// this Postgres has loaded or committed last; with cache.ErrCorrupt, if what it is added to
// cannot be read or lacks a dictionary. After any other error the same batches may be
// committed again, even where nobody knows whether they were.
func (p *Postgres) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if len(batches) == 0 && len(ledgers) == 0 {
		return nil
	}
	rows := 0
	for i := range batches {
		rows += batches[i].Len() + len(batches[i].Delete)
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if len(ledgers) > 0 {
		p.noting.Lock()
		defer p.noting.Unlock()
	}
	ctx, cancel := p.within(rows)
	defer cancel()
	stamp := newStamp()
	err := p.change(ctx, func(tx pgx.Tx) error {
		for i := range batches {
			s := pgSave{p, ctx, tx, &batches[i], stamp, nil}
			if err := s.run(); err != nil {
				return fmt.Errorf("%s: %w", batches[i].Saved.Spec.Resource, err)
			}
		}
		return p.changeLedgers(ctx, tx, ledgers, stamp)
	})
	if err != nil {
		return fmt.Errorf("commit snapshots: %w", err)
	}
	for i := range batches {
		p.has(resourceStamp(batches[i].Saved.Spec.Resource), stamp)
	}
	p.hasLedgers(ledgers, stamp)
	return nil
}

// pgSave is one batch on its way to the database.
type pgSave struct {
	p     *Postgres
	ctx   context.Context //nolint:containedctx // of one call
	tx    pgx.Tx
	batch *cache.Batch
	stamp int64
	row   *pgResource
}

func (s *pgSave) run() error {
	r := s.batch.Saved.Spec.Resource
	if _, err := resourceName(r); err != nil {
		return err
	}
	row, err := s.p.find(s.ctx, s.tx, r, "FOR UPDATE")
	if err != nil && !errors.Is(err, cache.ErrNoSnapshot) {
		return err
	}
	s.row = row
	m, err := s.begin()
	if err != nil {
		return err
	}
	known, err := s.dictionaries(m)
	if err != nil {
		return err
	}
	if s.batch.Reset && s.batch.Len() > uniqueUpTo {
		err = s.copyAll(m, known)
	} else {
		err = s.putAll(m, known)
	}
	if err != nil {
		return err
	}
	value, err := encodeMeta(metaKey, m)
	if err != nil {
		return err
	}
	return s.exec(`UPDATE {resources} SET stamp = $2, meta = $3 WHERE id = $1`, s.row.id, s.stamp, value)
}

func (s *pgSave) exec(query string, args ...any) error {
	_, err := s.tx.Exec(s.ctx, s.p.in(query), args...)
	return err
}

// begin makes the place that the batch is written to, and returns what is known of what
// is there: nothing of a batch that begins anew.
func (s *pgSave) begin() (*meta, error) {
	next := metaOf(&s.batch.Saved)
	name := resourceStamp(s.batch.Saved.Spec.Resource)
	if s.batch.Reset {
		s.p.begins(name, s.stamp)
		return next, s.reset(next)
	}
	if s.row == nil {
		return nil, cache.ErrNoSnapshot
	}
	if !s.p.mayHave(name, s.row.stamp, s.stamp) {
		return nil, fmt.Errorf("%w that this informerd has left there: the database was put back, or changed by others", cache.ErrNoSnapshot)
	}
	m, err := decodeMeta(metaKey, s.row.meta)
	if err != nil {
		return nil, fmt.Errorf("%w: meta: %w", cache.ErrCorrupt, err)
	}
	next.Indexes, next.Objects, next.Sum = m.Indexes, m.Objects, m.Sum
	for start := 0; start < len(s.batch.Delete); start += pgRows {
		if err := s.remove(next, s.batch.Delete[start:min(start+pgRows, len(s.batch.Delete))]); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// metaOf is the meta of what is saved, without anything in it yet.
func metaOf(saved *cache.Saved) *meta {
	m := &meta{
		Spec: saved.Spec, ResourceVersions: saved.ResourceVersions, ClusterUID: saved.ClusterUID, ServerVersion: saved.ServerVersion,
		Lineage: saved.Lineage, Terms: saved.Terms, SavedAt: saved.SavedAt, ProvenAt: saved.ProvenAt,
	}
	if m.SavedAt.IsZero() {
		m.SavedAt = time.Now().UTC()
	}
	return m
}

// reset empties the place of a resource, or makes one.
func (s *pgSave) reset(next *meta) error {
	if s.row == nil {
		return s.create()
	}
	if before, err := decodeMeta(metaKey, s.row.meta); err != nil || takesAway(&before.Spec, &next.Spec) {
		for _, table := range []string{s.row.objects(), "dictionaries"} {
			if err := s.p.mustSweep(s.ctx, s.tx, table); err != nil {
				return err
			}
		}
	}
	if err := s.exec(`DELETE FROM {`+s.row.objects()+`} WHERE resource = $1`, s.row.id); err != nil {
		return err
	}
	return s.exec(`DELETE FROM {dictionaries} WHERE resource = $1`, s.row.id)
}

func (s *pgSave) create() error {
	r := s.batch.Saved.Spec.Resource
	cluster, err := s.cluster(r.Cluster)
	if err != nil {
		return err
	}
	row := &pgResource{cluster: cluster}
	if err := s.tx.QueryRow(s.ctx, s.p.in(`SELECT coalesce(max(id), 0) + 1 FROM {resources}`)).Scan(&row.id); err != nil {
		return err
	}
	s.row = row
	return s.exec(`INSERT INTO {resources} (id, cluster, api_group, resource, version, stamp, meta) VALUES ($1, $2, $3, $4, $5, $6, '')`,
		row.id, cluster, r.GVR.Group, r.GVR.Resource, r.GVR.Version, s.stamp)
}

// cluster is the id of a cluster, which gets its table with the first copy.
func (s *pgSave) cluster(name string) (id int64, err error) {
	err = s.tx.QueryRow(s.ctx, s.p.in(`SELECT id FROM {clusters} WHERE name = $1`), name).Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, err
	}
	if err := s.tx.QueryRow(s.ctx, s.p.in(`SELECT coalesce(max(id), 0) + 1 FROM {clusters}`)).Scan(&id); err != nil {
		return 0, err
	}
	if err := s.exec(`INSERT INTO {clusters} VALUES ($1, $2)`, id, name); err != nil {
		return 0, err
	}
	return id, s.exec(`CREATE TABLE IF NOT EXISTS {` + objectsTable(id) + `} (
		resource bigint NOT NULL, namespace text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, sum bigint NOT NULL, value bytea NOT NULL,
		PRIMARY KEY (resource, namespace, name))`)
}

// dictionaries writes and removes dictionaries, and returns the ids of all there are.
func (s *pgSave) dictionaries(m *meta) (map[uint32]bool, error) {
	for id, data := range s.batch.Saved.Dictionaries {
		_, value := encodeDictionary(id, data)
		if err := s.exec(`DELETE FROM {dictionaries} WHERE resource = $1 AND id = $2`, s.row.id, int64(id)); err != nil {
			return nil, err
		}
		if err := s.exec(`INSERT INTO {dictionaries} VALUES ($1, $2, $3)`, s.row.id, int64(id), value); err != nil {
			return nil, err
		}
	}
	for _, id := range s.batch.Retired {
		if err := s.exec(`DELETE FROM {dictionaries} WHERE resource = $1 AND id = $2`, s.row.id, int64(id)); err != nil {
			return nil, err
		}
	}
	rows, err := s.tx.Query(s.ctx, s.p.in(`SELECT id FROM {dictionaries} WHERE resource = $1`), s.row.id)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	known := map[uint32]bool{0: true}
	for _, id := range ids {
		known[uint32(id)] = true
	}
	m.Dictionaries = len(ids)
	return known, err
}

// pgRow is a record as it is written.
type pgRow struct {
	namespace, name string
	sum             uint32
	value           []byte
}

// encode makes the row of a record.
func (s *pgSave) encode(rec *cache.Record, known map[uint32]bool, indexes *indexTable) (pgRow, error) {
	key, err := appendKey(nil, rec.Key)
	switch {
	case err != nil:
		return pgRow{}, err
	case strings.IndexByte(rec.Name, 0) >= 0:
		return pgRow{}, fmt.Errorf("key %q: NUL in its name", rec.Key)
	case !known[rec.Dictionary]:
		return pgRow{}, fmt.Errorf("%w: %s needs dictionary %d, which is not saved", cache.ErrCorrupt, rec.Key, rec.Dictionary)
	}
	value := encodeRecord(key, rec, indexes)
	return pgRow{rec.Namespace, rec.Name, storedSum(value), value}, nil
}

// putAll writes the records of a batch in parts. Of two of one key the last counts.
func (s *pgSave) putAll(m *meta, known map[uint32]bool) error {
	last := make(map[cache.Key]int, s.batch.Len())
	for i := range s.batch.Len() {
		last[s.batch.Key(i)] = i
	}
	indexes := newIndexTable(m.Indexes)
	var part []pgRow
	bytes := 0
	for i := range s.batch.Len() {
		if last[s.batch.Key(i)] != i {
			continue
		}
		rec := s.batch.Record(i)
		row, err := s.encode(&rec, known, indexes)
		if err != nil {
			return err
		}
		part, bytes = append(part, row), bytes+len(row.value)
		if len(part) == pgRows || bytes >= pgBytes {
			if err := s.put(m, part); err != nil {
				return err
			}
			part, bytes = part[:0], 0
		}
	}
	m.Indexes = indexes.names
	return s.put(m, part)
}

// put writes rows in the place of those of the same keys.
func (s *pgSave) put(m *meta, part []pgRow) error {
	if len(part) == 0 {
		return nil
	}
	keys := make([]cache.Key, len(part))
	namespaces, names := make([]string, len(part)), make([]string, len(part))
	sums, values := make([]int64, len(part)), make([][]byte, len(part))
	for i, row := range part {
		keys[i] = cache.Key{Namespace: row.namespace, Name: row.name}
		namespaces[i], names[i], sums[i], values[i] = row.namespace, row.name, int64(row.sum), row.value
		m.Sum += uint64(row.sum)
	}
	m.Objects += len(part)
	if !s.batch.Reset {
		if err := s.remove(m, keys); err != nil {
			return err
		}
	}
	return s.exec(`INSERT INTO {`+s.row.objects()+`} (resource, namespace, name, sum, value)
		SELECT $1, k.namespace, k.name, k.sum, k.value FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bytea[]) AS k(namespace, name, sum, value)`,
		s.row.id, namespaces, names, sums, values)
}

// remove deletes rows, those of them that are there.
func (s *pgSave) remove(m *meta, keys []cache.Key) error {
	namespaces, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		namespaces[i], names[i] = k.Namespace, k.Name
	}
	rows, err := s.tx.Query(s.ctx, s.p.in(`DELETE FROM {`+s.row.objects()+`} o USING unnest($2::text[], $3::text[]) AS k(namespace, name)
		WHERE o.resource = $1 AND o.namespace = k.namespace AND o.name = k.name RETURNING o.sum`), s.row.id, namespaces, names)
	if err != nil {
		return err
	}
	sums, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, sum := range sums {
		m.Sum -= uint64(sum)
	}
	m.Objects -= len(sums)
	return err
}

// copyAll writes all records of a large batch that begins anew, which takes half the time
// of inserting them. Each is made when it is sent.
func (s *pgSave) copyAll(m *meta, known map[uint32]bool) error {
	indexes := newIndexTable(m.Indexes)
	n, err := s.tx.CopyFrom(s.ctx, pgx.Identifier{s.p.options.Schema, s.row.objects()}, []string{"resource", "namespace", "name", "sum", "value"},
		pgx.CopyFromSlice(s.batch.Len(), func(i int) ([]any, error) {
			rec := s.batch.Record(i)
			row, err := s.encode(&rec, known, indexes)
			m.Sum += uint64(row.sum)
			return []any{s.row.id, row.namespace, row.name, int64(row.sum), row.value}, err
		}))
	m.Objects, m.Indexes = int(n), indexes.names
	return err
}

// Drop forgets the snapshot of r.
func (p *Postgres) Drop(r cache.Resource) error {
	if err := p.drop(r, false); err != nil {
		return fmt.Errorf("drop snapshot of %s: %w", r, err)
	}
	return nil
}

// Erase is Drop of what must not be kept; see Sweep.
func (p *Postgres) Erase(r cache.Resource) error {
	if err := p.drop(r, true); err != nil {
		return fmt.Errorf("erase snapshot of %s: %w", r, err)
	}
	return nil
}

func (p *Postgres) drop(r cache.Resource, erase bool) error {
	if _, err := resourceName(r); err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	ctx, cancel := p.within(100_000)
	defer cancel()
	err := p.change(ctx, func(tx pgx.Tx) error {
		row, err := p.find(ctx, tx, r, "FOR UPDATE")
		if errors.Is(err, cache.ErrNoSnapshot) {
			return nil
		}
		for _, query := range []string{
			`DELETE FROM {objects} WHERE resource = $1`, `DELETE FROM {dictionaries} WHERE resource = $1`, `DELETE FROM {resources} WHERE id = $1`,
		} {
			if err == nil {
				_, err = tx.Exec(ctx, p.in(strings.ReplaceAll(query, "{objects}", "{"+row.objects()+"}")), row.id)
			}
		}
		for _, table := range []string{row.objects(), "dictionaries"} {
			if err == nil && erase {
				err = p.mustSweep(ctx, tx, table)
			}
		}
		return err
	})
	if err == nil {
		p.has(resourceStamp(r), 0)
	}
	return err
}

// mustSweep marks a table in the transaction that takes something away, so that a process
// that ends before Sweep leaves it to the next.
func (p *Postgres) mustSweep(ctx context.Context, tx pgx.Tx, table string) error {
	if _, err := tx.Exec(ctx, p.in(`INSERT INTO {sweeps} VALUES ($1) ON CONFLICT DO NOTHING`), table); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep[table] = true
	return nil
}

// loadSweeps finds what another process has left to be swept.
func (p *Postgres) loadSweeps(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, p.in(`SELECT name FROM {sweeps}`))
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.sweep[name] = true
	}
	return err
}

// Sweep has the database give the rows free that hold what must not be kept: no question
// finds them, and their pages are written anew. It knows nothing of copies that the
// database has of its pages elsewhere: its log, standbys, backups.
func (p *Postgres) Sweep() error {
	p.mu.Lock()
	var due []string
	for table := range p.sweep {
		due = append(due, table)
	}
	p.mu.Unlock()
	for _, table := range due {
		if err := p.sweepTable(table); err != nil {
			return fmt.Errorf("erase what rules take away: %w", said(err))
		}
	}
	return nil
}

func (p *Postgres) sweepTable(table string) error {
	ctx, cancel := p.within(1_000_000)
	defer cancel()
	_, err := p.pool.Exec(ctx, p.in(`VACUUM FULL {`+table+`}`))
	if pg, refused := errors.AsType[*pgconn.PgError](err); refused && slices.Contains(noVacuum, pg.Code) {
		p.options.Log.Warn("what rules take away is deleted from the database, and cannot be vacuumed", "table", table, "err", err)
		err = nil
	}
	if err != nil {
		return err
	}
	if _, err := p.pool.Exec(ctx, p.in(`DELETE FROM {sweeps} WHERE name = $1`), table); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sweep, table)
	return nil
}

// noVacuum are codes of errors that will be the same the next time: not every database has
// VACUUM FULL, not everybody may, and the table may have gone.
var noVacuum = []string{"42501", "0A000", "42601", "42P01"}
