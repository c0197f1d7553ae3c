package persist

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// schemaVersion is that of the tables.
const schemaVersion = 2

// pgTable is a table that every schema has.
type pgTable struct {
	name, columns string
	// of are the tables that say what is in each other: if one is lost, so is what the
	// others hold.
	of string
}

// Groups of tables.
const (
	ofCopies  = "copies"
	ofLedgers = "ledgers"
)

// pgTables are the tables of a schema. They are plain SQL. Whatever comes from a cluster is
// bytea, which takes any byte, and what is looked for by a name has the hash of it as its
// key: names may be longer than an index bears. Copies of each cluster are in a table of
// their own, made with the first of them: what is done to one cluster locks and fills no
// pages of another.
var pgTables = []pgTable{
	{name: "store", columns: `(one boolean PRIMARY KEY CHECK (one), version integer NOT NULL, epoch bigint NOT NULL, writer bytea NOT NULL, since timestamptz NOT NULL)`},
	{name: "resources", of: ofCopies, columns: `(hash bytea PRIMARY KEY, id bigint NOT NULL UNIQUE, objects text NOT NULL, name bytea NOT NULL, stamp bigint NOT NULL, meta bytea NOT NULL)`},
	{name: "dictionaries", of: ofCopies, columns: `(resource bigint NOT NULL, id bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (resource, id))`},
	{name: "ledgers", of: ofLedgers, columns: `(name bytea PRIMARY KEY, stamp bigint NOT NULL, meta bytea NOT NULL)`},
	{name: "entries", of: ofLedgers, columns: `(ledger bytea NOT NULL, hash bytea NOT NULL, key bytea NOT NULL, sum bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (ledger, hash))`},
	{name: "documents", columns: `(hash bytea PRIMARY KEY, key bytea NOT NULL, value bytea NOT NULL)`},
	{name: "sweeps", columns: `(name text NOT NULL, stamp bigint NOT NULL, PRIMARY KEY (name, stamp))`},
}

const (
	objectsPrefix  = "objects_"
	objectsColumns = `(resource bigint NOT NULL, hash bytea NOT NULL, key bytea NOT NULL, sum bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (resource, hash))`
)

// objectsTable is the table of the copies of a cluster, whose name may have any bytes.
func objectsTable(cluster string) string {
	return objectsPrefix + hex.EncodeToString(hashOf([]byte(cluster))[:8])
}

// objectsName is what such a table is called: others in the schema are somebody else's.
var objectsName = regexp.MustCompile(`^` + objectsPrefix + `[0-9a-f]{16}$`)

// ensure makes the tables that are not there, and refuses those of another version. The row
// of the writer is locked then: nobody else does the same.
func (p *Postgres) ensure(ctx context.Context, tx pgx.Tx) error {
	found, err := p.found(ctx, tx)
	if err != nil {
		return err
	}
	if found["store"] {
		if found, err = p.lockStore(ctx, tx); err != nil {
			return err
		}
	}
	if err := p.checkOwn(ctx, tx, found); err != nil {
		return err
	}
	if len(found) == 0 {
		if err := p.makeSchema(ctx, tx); err != nil {
			return err
		}
	}
	if !found["store"] {
		if err := p.make(ctx, tx, pgTables[0]); err != nil {
			return err
		}
	}
	if err := p.checkVersion(ctx, tx); err != nil {
		return err
	}
	lost, err := p.makeMissing(ctx, tx, found)
	if err != nil {
		return err
	}
	for of := range lost {
		if err := p.empty(ctx, tx, of, found); err != nil {
			return err
		}
	}
	return nil
}

// found are the tables that there are.
func (p *Postgres) found(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1`, p.options.Schema)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	return found, err
}

// lockStore keeps every writer out until the transaction ends, and returns the tables that
// there are then: what a writer was about to make is there by now. Those who lock the row of
// the writer for themselves alone could wait for ever, while others share it in turn; a lock
// on its table is given in the order in which it was asked for.
func (p *Postgres) lockStore(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	if _, err := tx.Exec(ctx, p.in(`LOCK TABLE {store} IN EXCLUSIVE MODE`)); err != nil {
		return nil, err
	}
	return p.found(ctx, tx)
}

// columnName finds the columns in the definition of a table.
var columnName = regexp.MustCompile(`(\w+) (?:boolean|integer|bigint|bytea|text|timestamptz)\b`)

// checkOwn refuses tables that somebody else made under the names of informerd's: what is in
// them must not be touched.
func (p *Postgres) checkOwn(ctx context.Context, tx pgx.Tx, found map[string]bool) error {
	rows, err := tx.Query(ctx, `SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = $1`, p.options.Schema)
	if err != nil {
		return err
	}
	type column struct{ Table, Name string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		return err
	}
	there := map[column]bool{}
	for _, c := range all {
		there[c] = true
	}
	for _, t := range pgTables {
		if !found[t.name] || t.name == "store" { // whose version is looked at
			continue
		}
		for _, c := range columnName.FindAllStringSubmatch(t.columns, -1) {
			if !there[column{t.name, c[1]}] {
				return fmt.Errorf("the table %s has no column %s, so that informerd did not make it: name another schema, or drop this one if it is nobody else's", t.name, c[1])
			}
		}
	}
	return nil
}

// makeSchema makes the schema: who may not make one may use one that somebody made.
func (p *Postgres) makeSchema(ctx context.Context, tx pgx.Tx) error {
	var there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)`, p.options.Schema).Scan(&there)
	if err != nil || there {
		return err
	}
	if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{p.options.Schema}.Sanitize()); err != nil {
		return fmt.Errorf("make the schema: %w", err)
	}
	return nil
}

func (p *Postgres) make(ctx context.Context, tx pgx.Tx, t pgTable) error {
	if _, err := tx.Exec(ctx, p.in(`CREATE TABLE {`+t.name+`} `+t.columns)); err != nil {
		return fmt.Errorf("make the table %s: %w", t.name, err)
	}
	return nil
}

// checkVersion locks the row of the writer, which it makes if it is not there.
func (p *Postgres) checkVersion(ctx context.Context, tx pgx.Tx) error {
	var version int
	read := func() error { return tx.QueryRow(ctx, p.in(`SELECT version FROM {store} FOR UPDATE`)).Scan(&version) }
	err := read()
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, p.in(`INSERT INTO {store} VALUES (true, $1, 0, '', 'epoch') ON CONFLICT DO NOTHING`), schemaVersion)
		if err == nil {
			err = read()
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the version of the tables: %w", err)
	case version > schemaVersion:
		return fmt.Errorf("%w: version %d, this one knows %d", ErrNewerSchema, version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("the tables are of version %d, which was never released: drop the schema to have them made anew", version)
	}
	return nil
}

// makeMissing makes the other tables, and returns the groups that are not whole any more.
func (p *Postgres) makeMissing(ctx context.Context, tx pgx.Tx, found map[string]bool) (lost map[string]bool, err error) {
	lost = map[string]bool{}
	for _, t := range pgTables[1:] {
		if found[t.name] {
			continue
		}
		if err := p.make(ctx, tx, t); err != nil {
			return nil, err
		}
		if t.of != "" {
			lost[t.of] = true
		}
	}
	rows, err := tx.Query(ctx, p.in(`SELECT DISTINCT objects FROM {resources}`))
	if err != nil {
		return nil, err
	}
	named, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range named {
		if !found[name] {
			lost[ofCopies] = true
		}
	}
	return lost, err
}

// empty takes everything out of the tables of a group.
func (p *Postgres) empty(ctx context.Context, tx pgx.Tx, of string, found map[string]bool) error {
	for _, t := range pgTables {
		if t.of != of {
			continue
		}
		if _, err := tx.Exec(ctx, p.in(`DELETE FROM {`+t.name+`}`)); err != nil {
			return err
		}
	}
	for name := range found {
		if of == ofCopies && objectsName.MatchString(name) {
			if _, err := tx.Exec(ctx, p.in(`DROP TABLE {`+name+`}`)); err != nil {
				return err
			}
		}
	}
	return nil
}
