package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

var _ cache.Mirrors = (*Postgres)(nil)

// pgMirror is what a Postgres knows of the tables of the mirror. Whoever changes them has the
// lock of Postgres.mirroring.
type pgMirror struct {
	found map[string]bool // the tables that there are; nil: to be looked at
}

// mirrorStamp is the name under which the stamps of a mirrored resource are known.
func mirrorStamp(r cache.Resource) string { return "mirror " + r.Cluster + "/" + r.Name() }

// Mirrored lists what there are rows of, those included that nobody names in
// mirror_resources: somebody else has put them there. It makes no tables.
func (p *Postgres) Mirrored(ctx context.Context) (all []cache.Resource, err error) {
	ctx, done := p.mirrorContext(ctx, dropRows)
	defer done()
	err = p.change(ctx, p.bound(dropRows), func(tx pgx.Tx) error {
		all, p.mirror.found = nil, nil
		found, err := p.found(ctx, tx)
		if err != nil || !found["mirror_schema"] {
			return err
		}
		if err := p.ensureMirror(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, p.inMirror(`SELECT cluster, "group", version, resource FROM {mirror_resources}
			UNION SELECT cluster, "group", version, resource FROM {mirror_objects}`))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r cache.Resource, err error) {
			return r, row.Scan(&r.Cluster, &r.GVR.Group, &r.GVR.Version, &r.GVR.Resource)
		})
		return err
	})
	if err != nil {
		p.mirror.found = nil
		return nil, fmt.Errorf("list what is mirrored: %w", err)
	}
	return all, nil
}

// Mirror makes a change of one resource in one transaction: see cache.Mirrors.
func (p *Postgres) Mirror(ctx context.Context, c cache.MirrorChange) (cache.MirrorResult, error) {
	rows := len(c.Put) + len(c.Delete)
	ctx, done := p.mirrorContext(ctx, rows)
	defer done()
	m := pgMirrorSave{p: p, ctx: ctx, change: &c, key: mirrorKeyOf(c.Spec.Resource), stamp: newStamp()}
	err := p.changeMirror(ctx, rows, m.run)
	if err != nil {
		return cache.MirrorResult{}, fmt.Errorf("mirror %s: %w", c.Spec.Resource, err)
	}
	if c.Version != "" {
		p.has(mirrorStamp(c.Spec.Resource), m.stamp)
	}
	return m.result, nil
}

// Unmirror deletes all rows of a resource, and has their pages written anew.
func (p *Postgres) Unmirror(ctx context.Context, r cache.Resource) error {
	ctx, done := p.mirrorContext(ctx, dropRows)
	defer done()
	err := p.changeMirror(ctx, dropRows, func(tx pgx.Tx) error { return p.unmirror(ctx, tx, r) })
	if err != nil {
		return fmt.Errorf("delete the mirror of %s: %w", r, err)
	}
	p.has(mirrorStamp(r), absent)
	return nil
}

func (p *Postgres) unmirror(ctx context.Context, tx pgx.Tx, r cache.Resource) error {
	key := mirrorKeyOf(r)
	if table := mirrorTable(key.cluster); p.mirror.found[table] {
		if err := p.mustSweep(ctx, tx, table); err != nil {
			return err
		}
	}
	for _, table := range []string{"mirror_objects", "mirror_resources"} {
		if _, err := tx.Exec(ctx, p.inMirror(`DELETE FROM {`+table+`} WHERE cluster = $1 AND "group" = $2 AND resource = $3`), key.cluster, key.group, key.resource); err != nil {
			return err
		}
	}
	return nil
}

// mirrorContext is one for a call that has to move so many rows: it ends with the Postgres,
// too. The mirror takes the place of a reading: whoever saves has connections left.
func (p *Postgres) mirrorContext(ctx context.Context, rows int) (context.Context, func()) {
	p.mirroring.Lock()
	p.loads <- struct{}{}
	ctx, cancel := context.WithTimeout(ctx, p.mirrorBound(rows))
	unhook := context.AfterFunc(p.ctx, cancel)
	return ctx, func() {
		unhook()
		cancel()
		<-p.loads
		p.mirroring.Unlock()
	}
}

// changeMirror runs fn in a transaction of the writer, in which the tables of the mirror are
// there. What is not known after an error is looked at again.
func (p *Postgres) changeMirror(ctx context.Context, rows int, fn func(tx pgx.Tx) error) error {
	err := p.change(ctx, p.bound(0), func(tx pgx.Tx) error { return p.ensureMirror(ctx, tx) })
	if err == nil {
		err = p.changeLate(ctx, p.mirrorBound(rows), fn)
	}
	if err != nil {
		p.mirror.found = nil
	}
	return err
}

// mirrorBound is how long a change of so many rows may take: the database reads the JSON of each,
// and compresses it. Nobody waits for that but who follows it.
func (p *Postgres) mirrorBound(rows int) time.Duration {
	return p.options.patience + time.Duration(rows)*10*time.Millisecond
}

// changeLate is change that locks the row of the writer at the end: what is mirrored for the
// first time may take minutes, for which who takes over must not wait. It ends well only if
// this is still who writes by then.
func (p *Postgres) changeLate(ctx context.Context, bound time.Duration, fn func(tx pgx.Tx) error) error {
	var all []pgx.Tx
	defer func() {
		for _, tx := range all {
			p.ended(tx)
		}
	}()
	check := func(tx pgx.Tx, lock string) error {
		now, err := p.readFence(ctx, tx, lock)
		if err != nil {
			return err
		}
		return p.holds().check(now)
	}
	return p.run(ctx, pgx.TxOptions{}, bounds{bound, p.bound(0), p.options.patience / 2}, func(tx pgx.Tx) error {
		all = append(all, tx)
		if err := check(tx, ""); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		return check(tx, "FOR SHARE")
	})
}

// mirrorKey names a resource in the tables: its version is an attribute, since what is
// watched of a resource is in one version at a time.
type mirrorKey struct{ cluster, group, resource string }

func mirrorKeyOf(r cache.Resource) mirrorKey {
	return mirrorKey{sqlText(r.Cluster), sqlText(r.GVR.Group), sqlText(r.GVR.Resource)}
}

// pgMirrorSave is one change on its way to the database.
type pgMirrorSave struct {
	p      *Postgres
	ctx    context.Context //nolint:containedctx // of one call
	tx     pgx.Tx
	change *cache.MirrorChange
	key    mirrorKey
	stamp  int64
	table  string // the one of the cluster
	result cache.MirrorResult
}

// mirrorRule is what a rule leaves of objects, as mirror_resources says it.
type mirrorRule struct {
	Namespaces    []string `json:"namespaces,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
	FieldSelector string   `json:"fieldSelector,omitempty"`
	ShardSelector string   `json:"shardSelector,omitempty"`
	Drop          []string `json:"drop,omitempty"`
	Redact        []string `json:"redact,omitempty"`
}

func mirrorRuleOf(s *cache.Spec) mirrorRule {
	return mirrorRule{s.Namespaces, s.LabelSelector, s.FieldSelector, s.ShardSelector, s.Drop, s.Redact}
}

func (r mirrorRule) spec() *cache.Spec {
	return &cache.Spec{
		Namespaces: r.Namespaces, LabelSelector: r.LabelSelector, FieldSelector: r.FieldSelector,
		ShardSelector: r.ShardSelector, Drop: r.Drop, Redact: r.Redact,
	}
}

func (m *pgMirrorSave) exec(query string, args ...any) (int, error) {
	done, err := m.tx.Exec(m.ctx, m.p.inMirror(query), args...)
	return int(done.RowsAffected()), err
}

// run makes the change.
func (m *pgMirrorSave) run(tx pgx.Tx) error {
	m.tx, m.result = tx, cache.MirrorResult{}
	row, err := m.find()
	if err != nil {
		return err
	}
	if m.change.Version == "" {
		return m.tell(row)
	}
	if m.table, err = m.p.mirrorPartition(m.ctx, tx, m.key.cluster); err != nil {
		return err
	}
	objects := 0
	if m.change.Whole {
		err = m.whole(row)
		objects = len(m.change.Put)
	} else {
		objects, err = m.add(row)
	}
	if err != nil {
		return err
	}
	return m.name(objects)
}

// mirrorRow is what is there of a resource.
type mirrorRow struct {
	stamp   int64
	objects int64
	rule    []byte
}

// find finds and locks the row of the resource; nil if there is none.
func (m *pgMirrorSave) find() (*mirrorRow, error) {
	row := &mirrorRow{}
	err := m.tx.QueryRow(m.ctx, m.p.inMirror(`SELECT stamp, objects, rule::text FROM {mirror_resources}
		WHERE cluster = $1 AND "group" = $2 AND resource = $3 FOR UPDATE`), m.key.cluster, m.key.group, m.key.resource).Scan(&row.stamp, &row.objects, &row.rule)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // as it says
	}
	return row, err
}

// tell changes nothing but what the copy is worth.
func (m *pgMirrorSave) tell(row *mirrorRow) error {
	if row == nil || !m.p.mayHave(mirrorStamp(m.change.Spec.Resource), row.stamp, row.stamp) {
		return fmt.Errorf("%w that this informerd has left there", cache.ErrNoSnapshot)
	}
	_, err := m.exec(`UPDATE {mirror_resources} SET state = $4, proven_at = $5, updated_at = clock_timestamp()
		WHERE cluster = $1 AND "group" = $2 AND resource = $3`, m.key.cluster, m.key.group, m.key.resource, string(m.change.State), orNull(m.change.Proof))
	return err
}

// add writes and deletes single rows, and returns how many there are then.
func (m *pgMirrorSave) add(row *mirrorRow) (objects int, err error) {
	if row == nil || !m.p.mayHave(mirrorStamp(m.change.Spec.Resource), row.stamp, m.stamp) {
		return 0, fmt.Errorf("%w that this informerd has left there", cache.ErrNoSnapshot)
	}
	hashes := make([][]byte, len(m.change.Delete))
	for i, k := range m.change.Delete {
		hashes[i] = mirrorHash(k)
	}
	if m.result.Deleted, err = m.remove(hashes); err != nil {
		return 0, err
	}
	replaced, err := m.write(m.change.Put)
	return int(row.objects) - m.result.Deleted - replaced + len(m.change.Put), err
}

// name says which version the rows are of.
func (m *pgMirrorSave) name(objects int) error {
	spec := &m.change.Spec
	rule, err := json.Marshal(mirrorRuleOf(spec))
	if err != nil {
		return err
	}
	_, err = m.exec(`INSERT INTO {mirror_resources} (cluster, "group", resource, version, kind, resource_version, objects, state, proven_at, updated_at, rule, stamp)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp(), $10::text::jsonb, $11)
		ON CONFLICT (cluster, "group", resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, resource_version = excluded.resource_version,
		objects = excluded.objects, state = excluded.state, proven_at = excluded.proven_at, updated_at = excluded.updated_at, rule = excluded.rule, stamp = excluded.stamp`,
		m.key.cluster, m.key.group, m.key.resource, sqlText(spec.GVR.Version), sqlText(spec.Kind), sqlText(m.change.Version), int64(objects),
		string(m.change.State), orNull(m.change.Proof), string(sqlJSON(rule)), m.stamp)
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
