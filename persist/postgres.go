package persist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
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
	// Standby has it begin as one that only reads, until Lead is called.
	Standby bool
	Log     *slog.Logger

	patience time.Duration // for a statement with little to do; default 20 s
}

// DefaultSchema is where the tables are unless it is said.
const DefaultSchema = "informerd"

// Postgres holds snapshots, ledgers and documents in tables of a PostgreSQL database: it
// is the DB of informerds that have no disk of their own. docs/postgresql.md describes the
// tables. The values in them are those of the file, see docs/FORMAT.md, sealed with the
// same checksums.
//
// The database may be away, at the start too: whoever calls meanwhile gets cache.ErrAway at
// once, and what is there stays. One Postgres writes at a time: the one that connected last.
// Any other gets ErrTakenOver from then on, until it is opened anew, or told to Lead. One that
// stands by (IsStandby) reads, and gets cache.ErrAway when it is to write. It trusts what it finds
// no more than it must: after a fail-over to a standby that was behind, what was to be added
// to is not what it was, and is refused (cache.ErrNoSnapshot) so that everything is saved
// anew.
//
// It is safe for concurrent use, as cache.Snapshots wants it.
type Postgres struct {
	options PostgresOptions
	place   string // where the tables are, for people: without the user and the password
	pool    *pgxpool.Pool
	link    *link
	writer  []byte // by which this process is told from others

	ctx  context.Context //nolint:containedctx // ends whatever runs at Close
	stop context.CancelFunc
	runs sync.WaitGroup

	// loads holds one for each reading under way that lasts as long as its reader does: they
	// leave connections to those who save.
	loads chan struct{}

	writing sync.Mutex   // one change of copies at a time
	noting  sync.Mutex   // one change of ledgers at a time; taken after writing
	reading sync.RWMutex // shared by who reads; who gives a table new pages has it alone

	mirroring sync.Mutex // one change of the mirror at a time; no other is taken with it but those below
	mirror    pgMirror   // guarded by mirroring

	attaching sync.Mutex // one attempt to take the tables over at a time; taken after all above

	mu      sync.Mutex // guards all below
	standby bool       // it only reads
	held    fence      // by which this writer may write; zero: there was no connection yet
	// stamps are those that a resource or ledger may have if nobody else wrote it: that of
	// the last commit, and of those after it of which nobody knows whether they succeeded.
	stamps map[string][]int64
	odd    map[string]bool // resources that cannot be saved as they are
	sweeps sweeps
}

var (
	_ cache.Snapshots = (*Postgres)(nil)
	_ cache.Ledgers   = (*Postgres)(nil)
)

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
	if c.MaxConns < minConns {
		return nil, fmt.Errorf("pool_max_conns must be %d at least: who loads, saves and connects has one each", minConns)
	}
	return c, nil
}

// minConns is how many connections there must be so that a reading holds up nobody.
const minConns = 3

// hasPassword reports whether a URL has one, as pgx reads it.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return true // pgx does not read it either
	}
	if _, ok := u.User.Password(); ok {
		return true
	}
	for key := range u.Query() {
		if strings.Contains(strings.ToLower(key), "password") {
			return true
		}
	}
	// A question mark in a password ends the part that has it too soon.
	before, _, _ := strings.Cut(text, "?")
	return !strings.Contains(before, "@") && strings.Contains(text, "@")
}

// withoutPassword leaves out what pgx quotes of a URL.
func withoutPassword(message string) string {
	if _, after, ok := strings.Cut(message, "`: "); ok {
		return after
	}
	return message
}

// OpenPostgres makes a Postgres, and does not wait until it is connected.
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
	o.tune(c)
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		return nil, fmt.Errorf("url of the database: %s", withoutPassword(err.Error()))
	}
	p := &Postgres{
		options: o, place: placeOf(c.ConnConfig, o.Schema), pool: pool, writer: make([]byte, 16), standby: o.Standby,
		loads:  make(chan struct{}, c.MaxConns-minConns+1),
		stamps: map[string][]int64{}, odd: map[string]bool{}, sweeps: newSweeps(),
	}
	_, _ = rand.Read(p.writer) // it never fails
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.link = newLink(p.connect, o.Log)
	p.runs.Go(func() { p.link.run(p.ctx) })
	p.runs.Go(func() { p.sweepAll(p.ctx) })
	return p, nil
}

// tune sets what does not come from the URL. The limits of statements are not among it: a
// pooler refuses what it does not know at the start of a connection, so that each
// transaction sets them for itself, see limits.
func (o PostgresOptions) tune(c *pgxpool.Config) {
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	c.ConnConfig.RuntimeParams["application_name"] = "informerd"
	// A peer that has vanished is found out while nothing is asked, too.
	if len(c.ConnConfig.Fallbacks) > 0 && c.ConnConfig.ValidateConnect == nil && len(hostsOf(c.ConnConfig)) > 1 {
		// A standby among several hosts may be behind what was saved.
		c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c.ConnConfig.DialFunc = dialer.DialContext
	// A connection that was idle is tried before it is given out, and not for ever.
	c.PingTimeout = o.patience / 4
	if o.PasswordFile == "" {
		return
	}
	c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		data, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return fmt.Errorf("read the password of the database: %w", err)
		}
		c.Password = strings.TrimRight(string(data), "\r\n")
		return nil
	}
}

// placeOf names the database and the schema in messages.
func placeOf(c *pgx.ConnConfig, schema string) string {
	return fmt.Sprintf("database %s at %s, schema %s", c.Database, strings.Join(hostsOf(c), ","), schema)
}

// hostsOf are the addresses that a connection is tried at: each once, though it may be tried
// with TLS and without.
func hostsOf(c *pgx.ConnConfig) (hosts []string) {
	add := func(host string, port uint16) {
		address := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if len(hosts) == 0 || hosts[len(hosts)-1] != address {
			hosts = append(hosts, address)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return hosts
}

// Close ends all connections, and what runs. Nothing may be called after it.
func (p *Postgres) Close() error {
	p.stop()
	p.runs.Wait()
	p.pool.Close()
	return nil
}

// Trouble is why nothing can be saved now, nil if it can.
func (p *Postgres) Trouble() error {
	if err := p.link.trouble(); err != nil && !errors.Is(err, errConnecting) {
		return err
	}
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

// bound is how long a call may take that has to move so many rows.
func (p *Postgres) bound(rows int) time.Duration {
	return p.options.patience + time.Duration(rows)*time.Millisecond/2
}

// within is a context for such a call.
func (p *Postgres) within(rows int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, p.bound(rows))
}
