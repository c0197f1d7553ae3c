package persist

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mirrorVersion is that of the tables, views and functions of the mirror. Whoever asks them
// relies on it: columns are added, and none changes its meaning without another version.
const mirrorVersion = 1

// mirrorTables are the tables of the mirror. They are in the schema of the snapshot, and are
// made when something is mirrored for the first time.
//
// The key of a row has a hash, since names may be longer than an index bears.
var mirrorTables = []struct{ name, definition string }{
	{"mirror_schema", `(one boolean PRIMARY KEY CHECK (one), version integer NOT NULL)`},
	{"mirror_resources", `(cluster text NOT NULL, "group" text NOT NULL, resource text NOT NULL, version text NOT NULL, kind text NOT NULL,
		resource_version text NOT NULL, objects bigint NOT NULL, state text NOT NULL, proven_at timestamptz, updated_at timestamptz NOT NULL,
		rule jsonb NOT NULL, stamp bigint NOT NULL, PRIMARY KEY (cluster, "group", resource))`},
	{"mirror_objects", `(cluster text NOT NULL, "group" text NOT NULL, resource text NOT NULL, version text NOT NULL, kind text NOT NULL,
		namespace text NOT NULL, name text NOT NULL, uid text NOT NULL, resource_version text NOT NULL, created_at timestamptz,
		labels jsonb NOT NULL, object jsonb NOT NULL, altered text, hash bytea NOT NULL, digest bytea NOT NULL, sum bytea NOT NULL,
		PRIMARY KEY (cluster, "group", resource, hash)) PARTITION BY LIST (cluster)`},
}

// mirrorTable is the table of the rows of a cluster: what is done to one cluster locks and
// fills no pages of another.
func mirrorTable(cluster string) string {
	return "mirror_objects_" + hex.EncodeToString(hashOf([]byte(cluster))[:8])
}

var mirrorName = regexp.MustCompile(`\{(mirror_[a-z0-9_]+)\}`)

// inMirror replaces the names of the mirror's tables, views and functions in braces by the
// quoted ones. Other braces are those of JSON.
func (p *Postgres) inMirror(query string) string {
	return mirrorName.ReplaceAllStringFunc(query, func(name string) string { return p.table(strings.Trim(name, "{}")) })
}

// ensureMirror makes what is not there of the mirror, and refuses that of another version. It
// is a transaction of the writer: nobody else does the same.
func (p *Postgres) ensureMirror(ctx context.Context, tx pgx.Tx) error {
	if p.mirror.found != nil {
		return nil
	}
	found, err := p.found(ctx, tx)
	if err != nil {
		return err
	}
	if err := p.checkMirror(ctx, tx, found); err != nil {
		return err
	}
	for _, t := range mirrorTables {
		if found[t.name] {
			continue
		}
		if _, err := tx.Exec(ctx, p.inMirror(`CREATE TABLE {`+t.name+`} `+t.definition)); err != nil {
			return fmt.Errorf("make the table %s: %w", t.name, err)
		}
		found[t.name] = true
		if t.name == "mirror_objects" { // what was known of rows that are lost
			if _, err := tx.Exec(ctx, p.inMirror(`DELETE FROM {mirror_resources}`)); err != nil {
				return err
			}
		}
	}
	if _, err := tx.Exec(ctx, p.inMirror(`INSERT INTO {mirror_schema} VALUES (true, $1) ON CONFLICT DO NOTHING`), mirrorVersion); err != nil {
		return err
	}
	if err := p.makeViews(ctx, tx); err != nil {
		return err
	}
	p.mirror.found = found
	return nil
}

// checkMirror refuses tables that somebody else made, or a newer informerd.
func (p *Postgres) checkMirror(ctx context.Context, tx pgx.Tx, found map[string]bool) error {
	if !found["mirror_schema"] {
		for _, t := range mirrorTables {
			if found[t.name] {
				return fmt.Errorf("there is a table %s and none mirror_schema: drop it, and the mirror is made anew", t.name)
			}
		}
		return nil
	}
	var version int
	err := tx.QueryRow(ctx, p.inMirror(`SELECT coalesce(max(version), $1) FROM {mirror_schema}`), mirrorVersion).Scan(&version)
	if err != nil {
		return fmt.Errorf("read the version of the mirror: %w", err)
	}
	if version > mirrorVersion {
		return fmt.Errorf("%w: the mirror is of version %d, this one knows %d", ErrNewerSchema, version, mirrorVersion)
	}
	return nil
}

// makeViews makes the functions and views that are not there. Those that are stay as they
// are: to replace one locks out who reads it.
func (p *Postgres) makeViews(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT p.proname::text FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1
		UNION SELECT viewname::text FROM pg_catalog.pg_views WHERE schemaname = $1`, p.options.Schema)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, f := range mirrorFunctions {
		if there[f.name] {
			continue
		}
		if _, err := tx.Exec(ctx, p.inMirror(`CREATE FUNCTION {`+f.name+`}`+f.definition)); err != nil {
			return fmt.Errorf("make the function %s: %w", f.name, err)
		}
	}
	for _, v := range mirrorViews {
		if there[v.name] {
			continue
		}
		if _, err := tx.Exec(ctx, p.inMirror(v.create())); err != nil {
			return fmt.Errorf("make the view %s: %w", v.name, err)
		}
	}
	return nil
}

// mirrorPartition is the table of a cluster, which is made with the first rows of it. It is
// attached once it is there, which does not wait for those who read.
func (p *Postgres) mirrorPartition(ctx context.Context, tx pgx.Tx, cluster string) (string, error) {
	table := mirrorTable(cluster)
	if p.mirror.found[table] {
		return table, nil
	}
	value := `'` + strings.ReplaceAll(cluster, `'`, `''`) + `'`
	for _, query := range []string{
		`SET LOCAL standard_conforming_strings = on`,
		`CREATE TABLE {` + table + `} (LIKE {mirror_objects} INCLUDING ALL)`,
		`ALTER TABLE {mirror_objects} ATTACH PARTITION {` + table + `} FOR VALUES IN (` + value + `)`,
	} {
		if _, err := tx.Exec(ctx, p.inMirror(query)); err != nil {
			return "", fmt.Errorf("make the table of cluster %s: %w", cluster, err)
		}
	}
	p.mirror.found[table] = true
	return table, nil
}
