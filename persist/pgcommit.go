package persist

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

// Commit makes all batches and changes of ledgers durable: all or nothing; see
// cache.Snapshots. Of one batch, Delete is done before Put. A zero SavedAt becomes now.
//
// A batch without Reset is refused, with cache.ErrNoSnapshot, unless it is added to what
// this Postgres has loaded or committed last; with cache.ErrCorrupt, if what it is added to
// cannot be read or lacks a dictionary. After any other error the same batches may be
// committed again, even where nobody knows whether they were.
//
// A resource with something in it that cannot be saved is left out, with what was saved of
// it, until it begins anew: the others are saved.
func (p *Postgres) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if len(batches) == 0 && len(ledgers) == 0 {
		return nil
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if len(ledgers) > 0 {
		p.noting.Lock()
		defer p.noting.Unlock()
	}
	unfit := map[cache.Resource]error{}
	for {
		err := p.commit(batches, ledgers, unfit)
		odd, ok := errors.AsType[*oddError](err)
		if ok && unfit[odd.resource] == nil {
			unfit[odd.resource] = odd.err
			continue
		}
		if err != nil {
			return fmt.Errorf("commit snapshots: %w", err)
		}
		p.noteOdd(batches, unfit)
		return nil
	}
}

// commit tries once, without the resources that are unfit.
func (p *Postgres) commit(batches []cache.Batch, ledgers []cache.LedgerChange, unfit map[cache.Resource]error) error {
	rows := rowsOf(ledgers)
	for i := range batches {
		rows += batches[i].Len() + len(batches[i].Delete)
	}
	ctx, cancel := p.within(rows)
	defer cancel()
	stamp := newStamp()
	var saved []string
	err := p.change(ctx, p.bound(rows), func(tx pgx.Tx) error {
		saved = saved[:0]
		for i := range batches {
			s := pgSave{p: p, ctx: ctx, tx: tx, batch: &batches[i], stamp: stamp}
			r := batches[i].Saved.Spec.Resource
			done, err := s.saveOr(unfit[r])
			if err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
			if done {
				saved = append(saved, resourceStamp(r))
			}
		}
		return p.changeLedgers(ctx, tx, ledgers, stamp)
	})
	if err != nil {
		return err
	}
	for _, name := range saved {
		p.has(name, stamp)
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
	known map[uint32]bool // dictionaries
	hash  []byte          // of the resource's name
	name  []byte
}

// saveOr saves the batch, unless its resource is unfit or was found odd before: then what is
// saved of it goes. It reports whether it is saved.
func (s *pgSave) saveOr(unfit error) (bool, error) {
	r := s.batch.Saved.Spec.Resource
	switch {
	case unfit != nil:
		return false, s.p.forgetIn(s.ctx, s.tx, r, true)
	case !s.batch.Reset && s.p.isOdd(r):
		return false, nil
	}
	if err := fit(s.batch); err != nil {
		return false, &oddError{r, err}
	}
	err := s.run()
	if isOddData(err) {
		err = &oddError{r, err}
	}
	return err == nil, err
}

func (s *pgSave) run() error {
	r := s.batch.Saved.Spec.Resource
	name, err := resourceName(r)
	if err != nil {
		return err
	}
	s.name, s.hash = name, hashOf(name)
	s.row, err = s.p.find(s.ctx, s.tx, name, "FOR UPDATE")
	if err != nil && !errors.Is(err, cache.ErrNoSnapshot) {
		return err
	}
	m, err := s.begin()
	if err != nil {
		return err
	}
	if err := s.dictionaries(m); err != nil {
		return err
	}
	if err := s.put(m); err != nil {
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
	return next, s.removeKeys(next, s.batch.Delete)
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
		for _, table := range []string{s.row.objects, "dictionaries"} {
			if err := s.p.mustSweep(s.ctx, s.tx, table); err != nil {
				return err
			}
		}
	}
	if err := s.exec(`DELETE FROM {`+s.row.objects+`} WHERE resource = $1`, s.row.id); err != nil {
		return err
	}
	return s.exec(`DELETE FROM {dictionaries} WHERE resource = $1`, s.row.id)
}

func (s *pgSave) create() error {
	s.row = &pgResource{objects: objectsTable(s.batch.Saved.Spec.Cluster)}
	if err := s.exec(`CREATE TABLE IF NOT EXISTS {` + s.row.objects + `} ` + objectsColumns); err != nil {
		return err
	}
	if err := s.tx.QueryRow(s.ctx, s.p.in(`SELECT coalesce(max(id), 0) + 1 FROM {resources}`)).Scan(&s.row.id); err != nil {
		return err
	}
	// Whoever deleted the row of a resource by hand may have left its objects.
	for _, table := range []string{s.row.objects, "dictionaries"} {
		if err := s.exec(`DELETE FROM {`+table+`} WHERE resource = $1`, s.row.id); err != nil {
			return err
		}
	}
	return s.exec(`INSERT INTO {resources} (hash, id, objects, name, stamp, meta) VALUES ($1, $2, $3, $4, $5, '')`,
		s.hash, s.row.id, s.row.objects, s.name, s.stamp)
}

// dictionaries writes and removes dictionaries, and notes how many there are, and which of those
// that records of the batch refer to.
func (s *pgSave) dictionaries(m *meta) error {
	if err := s.putDictionaries(); err != nil {
		return err
	}
	retired := make([]int64, len(s.batch.Retired))
	for i, id := range s.batch.Retired {
		retired[i] = int64(id)
	}
	if len(retired) > 0 {
		if err := s.exec(`DELETE FROM {dictionaries} WHERE resource = $1 AND id = ANY($2::bigint[])`, s.row.id, retired); err != nil {
			return err
		}
	}
	used := map[uint32]bool{}
	for i := range s.batch.Len() {
		used[s.batch.Dictionary(i)] = true
	}
	wanted := make([]int64, 0, len(used))
	for id := range used {
		wanted = append(wanted, int64(id))
	}
	rows, err := s.tx.Query(s.ctx, s.p.in(`SELECT id FROM {dictionaries} WHERE resource = $1 AND id = ANY($2::bigint[])`), s.row.id, wanted)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	s.known = map[uint32]bool{0: true}
	for _, id := range ids {
		s.known[uint32(id)] = true
	}
	return s.tx.QueryRow(s.ctx, s.p.in(`SELECT count(*) FROM {dictionaries} WHERE resource = $1`), s.row.id).Scan(&m.Dictionaries)
}

// putDictionaries writes those of the batch in parts.
func (s *pgSave) putDictionaries() error {
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.batch.Saved.Dictionaries)), pgRows) {
		ids, values := make([]int64, len(part)), make([][]byte, len(part))
		for i, id := range part {
			ids[i] = int64(id)
			_, values[i] = encodeDictionary(id, s.batch.Saved.Dictionaries[id])
		}
		err := s.exec(`INSERT INTO {dictionaries} (resource, id, value)
			SELECT $1, d.id, d.value FROM unnest($2::bigint[], $3::bytea[]) AS d(id, value)
			ON CONFLICT (resource, id) DO UPDATE SET value = excluded.value`, s.row.id, ids, values)
		if err != nil {
			return err
		}
	}
	return nil
}

// hashOf is what a name is looked for by.
func hashOf(name []byte) []byte {
	sum := sha256.Sum256(name)
	return sum[:]
}
