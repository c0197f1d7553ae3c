package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/informerd/informerd/cache"
)

// PostgresOptions say where the tables of a Postgres are.
type PostgresOptions struct {
	// URL is postgres://user@host:port/database, with libpq's parameters (sslmode and
	// others) and those of pgxpool. It has no password.
	URL string
	// PasswordFile holds the password. It is read for each new connection, so that the
	// password may change. Empty: none is needed, or libpq's ways to find one (PGPASSFILE).
	PasswordFile string
	// Schema is where the tables are, DefaultSchema if it is empty. It is made, with the
	// tables, if it is not there and the user may do that.
	Schema string
	Log    *slog.Logger

	patience time.Duration // for a statement with little to do; default 20 s
}

// DefaultSchema is where the tables are unless it is said.
const DefaultSchema = "informerd"

// Postgres holds snapshots, ledgers and documents in tables of a PostgreSQL database: it
// is the DB of informerds that have no disk of their own. docs/postgresql.md describes the
// tables. The values in them are those of the file, see docs/FORMAT.md, sealed with the
// same checksums.
//
// The database may be away, at the start too: whoever calls meanwhile gets an error, and
// the next call tries again. One Postgres writes at a time: the one that connected last.
// Any other gets ErrTakenOver from then on, and from each transaction that had not ended
// by then. It trusts what it finds no more than it must: after a fail-over to a standby
// that was behind, what was to be added to is not what it was, and is refused
// (cache.ErrNoSnapshot) so that everything is saved anew.
//
// It is safe for concurrent use, as cache.Snapshots wants it.
type Postgres struct {
	options PostgresOptions
	pool    *pgxpool.Pool

	writing sync.Mutex // one change of copies at a time; taken before attaching
	noting  sync.Mutex // one change of ledgers at a time; taken before attaching, after writing

	attaching sync.Mutex // guards epoch
	epoch     int64      // by which this writer is told from others; 0: there was no connection yet

	mu sync.Mutex // guards all below
	// stamps are those that a resource or ledger may have if nobody else wrote it: that of
	// the last commit, and of those after it of which nobody knows whether they succeeded.
	stamps map[string][]int64
	sweep  map[string]bool // tables with rows of what must not be kept, those of the table sweeps
}

var (
	_ cache.Snapshots = (*Postgres)(nil)
	_ cache.Ledgers   = (*Postgres)(nil)
)

// ErrTakenOver: another informerd uses the tables, and is the only one that may write them.
var ErrTakenOver = errors.New("another informerd has taken over the database: two must not have the same schema")

// ErrNewerSchema: a newer informerd made the tables.
var ErrNewerSchema = errors.New("the tables were made by a newer informerd")

// schemaVersion is that of the tables.
const schemaVersion = 1

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// CheckPostgres says what is wrong with options; it asks nobody.
func CheckPostgres(o PostgresOptions) error {
	_, err := o.config()
	return err
}

func (o PostgresOptions) config() (*pgxpool.Config, error) {
	if o.Schema != "" && !schemaName.MatchString(o.Schema) {
		return nil, fmt.Errorf("bad schema %q: lower-case letters, digits and _", o.Schema)
	}
	if !strings.HasPrefix(o.URL, "postgres://") && !strings.HasPrefix(o.URL, "postgresql://") {
		return nil, errors.New("must begin with postgres://, as in postgres://informerd@db.example.com/informerd?sslmode=verify-full")
	}
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New(withoutPassword(err.Error()))
	}
	if hasPassword(o.URL) {
		return nil, errors.New("has a password, which whoever reads the configuration sees: put it in passwordFile")
	}
	return c, nil
}

// hasPassword reports whether a URL that can be read has one. It may name several hosts,
// which net/url does not read.
func hasPassword(url string) bool {
	_, rest, _ := strings.Cut(url, "//")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	user := ""
	if at := strings.LastIndex(rest[:end], "@"); at >= 0 {
		user = rest[:at]
	}
	return strings.Contains(user, ":") || strings.Contains(rest[end:], "password=")
}

// withoutPassword leaves out what pgx quotes of a URL.
func withoutPassword(message string) string {
	if _, after, ok := strings.Cut(message, "`: "); ok {
		return after
	}
	return message
}

// OpenPostgres makes a Postgres. It connects with the first call that needs it.
func OpenPostgres(o PostgresOptions) (*Postgres, error) {
	c, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("url of the database: %w", err)
	}
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.patience <= 0 {
		o.patience = 20 * time.Second
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	c.ConnConfig.RuntimeParams["application_name"] = "informerd"
	if o.PasswordFile != "" {
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			data, err := os.ReadFile(o.PasswordFile)
			if err != nil {
				return fmt.Errorf("read the password of the database: %w", err)
			}
			c.Password = strings.TrimRight(string(data), "\r\n")
			return nil
		}
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		return nil, fmt.Errorf("url of the database: %s", withoutPassword(err.Error()))
	}
	return &Postgres{options: o, pool: pool, stamps: map[string][]int64{}, sweep: map[string]bool{}}, nil
}

// Close ends all connections. Nothing may be called after it.
func (p *Postgres) Close() error {
	p.pool.Close()
	return nil
}

// table is the quoted name of a table.
func (p *Postgres) table(name string) string {
	return pgx.Identifier{p.options.Schema, name}.Sanitize()
}

// in replaces the names of tables in braces by the quoted ones.
func (p *Postgres) in(query string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(query, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(p.table(name))
		query = after
	}
}

// within is a context for a call that has to move so many rows.
func (p *Postgres) within(rows int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), p.options.patience+time.Duration(rows)*time.Millisecond/2)
}

// attach makes sure that the tables are there and that this is who writes them.
func (p *Postgres) attach(ctx context.Context) (epoch int64, err error) {
	p.attaching.Lock()
	defer p.attaching.Unlock()
	if p.epoch != 0 {
		return p.epoch, nil
	}
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if err := p.ensure(ctx, tx); err != nil {
			return err
		}
		if err := p.loadSweeps(ctx, tx); err != nil {
			return err
		}
		// Whoever wrote before has ended: this waits for the rows that it has locked.
		return tx.QueryRow(ctx, p.in(`UPDATE {store} SET epoch = epoch + 1 RETURNING epoch`)).Scan(&epoch)
	})
	if err != nil {
		return 0, err
	}
	p.epoch = epoch
	p.options.Log.Info("connected to the database of snapshots", "schema", p.options.Schema, "epoch", epoch)
	return epoch, nil
}

// ensure makes the tables if there are none, and refuses those of a newer informerd.
func (p *Postgres) ensure(ctx context.Context, tx pgx.Tx) error {
	var there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = $1 AND table_name = 'store')`, p.options.Schema).Scan(&there)
	if err != nil {
		return err
	}
	if !there {
		return p.create(ctx, tx)
	}
	var version int
	if err := tx.QueryRow(ctx, p.in(`SELECT version FROM {store}`)).Scan(&version); err != nil {
		return fmt.Errorf("read the version of the tables: %w", err)
	}
	if version > schemaVersion {
		return fmt.Errorf("%w: version %d, this one knows %d", ErrNewerSchema, version, schemaVersion)
	}
	return nil
}

// tables of a schema. Plain SQL, so that databases that speak PostgreSQL's protocol have
// it, too. Copies of each cluster are in a table of their own, made with the first of them:
// what is done to one cluster locks and fills no pages of another.
var tables = []string{
	`CREATE TABLE {store} (version integer NOT NULL, epoch bigint NOT NULL)`,
	`CREATE TABLE {clusters} (id bigint PRIMARY KEY, name text NOT NULL UNIQUE)`,
	`CREATE TABLE {resources} (
		id bigint PRIMARY KEY, cluster bigint NOT NULL, api_group text NOT NULL, resource text NOT NULL, version text NOT NULL,
		stamp bigint NOT NULL, meta bytea NOT NULL, UNIQUE (cluster, api_group, resource, version))`,
	`CREATE TABLE {dictionaries} (resource bigint NOT NULL, id bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (resource, id))`,
	`CREATE TABLE {ledgers} (name text PRIMARY KEY, stamp bigint NOT NULL, meta bytea NOT NULL)`,
	`CREATE TABLE {entries} (ledger text NOT NULL, key bytea NOT NULL, sum bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (ledger, key))`,
	`CREATE TABLE {documents} (key bytea PRIMARY KEY, value bytea NOT NULL)`,
	`CREATE TABLE {sweeps} (name text PRIMARY KEY)`,
}

func (p *Postgres) create(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = $1)`, p.options.Schema).Scan(&there); err != nil {
		return err
	}
	if !there { // who may not make one may use one that somebody made
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{p.options.Schema}.Sanitize()); err != nil {
			return fmt.Errorf("make the schema %s: %w", p.options.Schema, err)
		}
	}
	for _, t := range tables {
		if _, err := tx.Exec(ctx, p.in(t)); err != nil {
			return fmt.Errorf("make the tables of schema %s: %w", p.options.Schema, err)
		}
	}
	_, err := tx.Exec(ctx, p.in(`INSERT INTO {store} VALUES ($1, 0)`), schemaVersion)
	return err
}

// change runs fn in a transaction that only ends well while this Postgres is the one that
// writes: whoever takes over waits until it has ended.
func (p *Postgres) change(ctx context.Context, fn func(tx pgx.Tx) error) error {
	epoch, err := p.attach(ctx)
	if err != nil {
		return said(err)
	}
	return said(pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// Who takes over must not wait for ever for one that was frozen meanwhile.
		if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 60000`); err != nil {
			return err
		}
		var now int64
		if err := tx.QueryRow(ctx, p.in(`SELECT epoch FROM {store} FOR SHARE`)).Scan(&now); err != nil {
			return err
		}
		if now != epoch {
			return ErrTakenOver
		}
		return fn(tx)
	}))
}

// read runs fn in a transaction that sees one state of everything.
func (p *Postgres) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if _, err := p.attach(ctx); err != nil {
		return said(err)
	}
	return said(pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}

// said is an error with what an operator can do about it, where that is known.
func said(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case pg.Code == "42501":
		return fmt.Errorf("the user lacks a right in the database: %w", err)
	case pg.Code == "28P01", pg.Code == "28000":
		return fmt.Errorf("the database does not let the user in: %w", err)
	case pg.Code == "3D000":
		return fmt.Errorf("there is no such database: %w", err)
	case pg.Code == "53100":
		return fmt.Errorf("the disk of the database is full: %w", err)
	case strings.HasPrefix(pg.Code, "42"):
		return fmt.Errorf("the tables are not as informerd made them, drop the schema to have them made anew: %w", err)
	}
	return err
}
