package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// hold keeps a transaction open that has run a query, until it is let go.
func hold(t *testing.T, s *postgres.Server, query string) (letGo func()) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := c.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = tx.Exec(context.Background(), query)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := false
	letGo = func() {
		if !done {
			done = true
			_ = c.Close(context.Background())
		}
	}
	t.Cleanup(letGo)
	return letGo
}

// TestPostgresExecModes: however the driver is told to ask, for a pooler's sake, what is
// saved can be loaded.
func TestPostgresExecModes(t *testing.T) {
	s := postgres.Start(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			open := func() *Postgres {
				return openPostgres(t, s, func(o *PostgresOptions) {
					o.URL += "&default_query_exec_mode=" + mode
					o.Schema = mode
				})
			}
			p := open()
			useAll(t, p, open)
		})
	}
}

// TestPostgresBouncer: behind a pooler of sessions or transactions everything works, as
// docs/postgresql.md says.
func TestPostgresBouncer(t *testing.T) {
	s := postgres.Start(t)
	for _, mode := range [][2]string{{"session", "cache_statement"}, {"transaction", "exec"}, {"transaction", "simple_protocol"}} {
		t.Run(mode[0]+" "+mode[1], func(t *testing.T) {
			url := s.Bouncer(mode[0])
			open := func() *Postgres {
				return openPostgres(t, s, func(o *PostgresOptions) {
					o.URL = url + "&default_query_exec_mode=" + mode[1]
					o.Schema = mode[0] + "_" + mode[1]
				})
			}
			useAll(t, open(), open)
		})
	}
}

// useAll does everything that a Postgres can do, and finds it again with another.
func useAll(t *testing.T, p *Postgres, open func() *Postgres) {
	t.Helper()
	b := bulkBatch(pods, 2500)
	b.Saved.Dictionaries = map[uint32][]byte{1: {0, 1, 2, 255}}
	ledger := cache.LedgerChange{Name: "l", Put: []cache.LedgerEntry{{Key: []byte("k\x00\xff"), Value: []byte("\x00v")}}}
	for _, err := range []error{
		p.Commit([]cache.Batch{b}, []cache.LedgerChange{ledger}),
		p.Commit([]cache.Batch{{Saved: savedOf(pods, "2"), Put: b.Put[:5], Delete: []cache.Key{b.Put[7].Key}}}, nil),
		p.Note([]cache.LedgerChange{ledger}),
		p.SaveDocument(document("east", "/a", "1"), nil),
		p.Commit([]cache.Batch{bulkBatch(deployments, 3)}, nil),
		p.Erase(deployments),
		p.Sweep(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is swept", func() bool { return !p.isDue() })
	p = open()
	got, err := tryLoad(p, pods)
	if err != nil || len(got.Records) != 2499 || got.Saved.ResourceVersions[""] != "2" {
		t.Fatalf("%d records at %v, %v", len(got.Records), got.Saved.ResourceVersions, err)
	}
	same(t, "dictionaries", got.Saved.Dictionaries, b.Saved.Dictionaries)
	n := 0
	if err := p.Ledger("l", func(e cache.LedgerEntry) error {
		n++
		same(t, "entry", e, ledger.Put[0])
		return nil
	}); err != nil || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
	if all, err := p.Documents(); err != nil || len(all) != 1 {
		t.Errorf("%d documents, %v", len(all), err)
	}
	if _, err := tryLoad(p, deployments); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Load() = %v", err)
	}
}

// TestPostgresAwayAtStart: a database that nothing comes from holds up nobody for longer than
// the first connection is waited for, however much is asked. When it is back, it is used.
func TestPostgresAwayAtStart(t *testing.T) {
	s := postgres.Start(t)
	if err := openPostgres(t, s).Commit([]cache.Batch{bulkBatch(pods, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	net := newProxy(t, s)
	net.hang()
	p := openPostgres(t, s, func(o *PostgresOptions) { o.URL = net.url() })
	began := time.Now()
	for range 50 {
		if _, err := tryLoad(p, pods); !errors.Is(err, cache.ErrAway) {
			t.Fatalf("Load() = %v", err)
		}
		if _, err := p.Ledgers(); !errors.Is(err, cache.ErrAway) {
			t.Fatalf("Ledgers() = %v", err)
		}
	}
	if took := time.Since(began); took > firstWait+2*time.Second {
		t.Errorf("100 calls took %v", took)
	}
	eventually(t, "it is said", func() bool { return p.Trouble() != nil })
	if err := p.Trouble(); !strings.Contains(err.Error(), net.listener.Addr().String()) {
		t.Errorf("Trouble() = %v, which does not say where", err)
	}
	net.pass()
	eventually(t, "it is used", func() bool {
		got, err := tryLoad(p, pods)
		return err == nil && len(got.Records) == 3
	})
	if err := p.Trouble(); err != nil {
		t.Error(err)
	}
}

// TestPostgresHangs: a statement whose answer does not come ends, and says nothing of what is
// saved: that is there when the database is.
func TestPostgresHangs(t *testing.T) {
	s := postgres.Start(t)
	net := newProxy(t, s)
	p := openPostgres(t, s, func(o *PostgresOptions) { o.URL, o.patience = net.url(), 2*time.Second })
	const n = 20_000
	if err := p.Commit([]cache.Batch{bulkBatch(pods, n)}, nil); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"Load": func() error {
			records := 0
			_, err := p.Load(pods, func(cache.Record) error {
				if records++; records == 10 {
					net.hang()
				}
				return nil
			})
			return err
		},
		"Commit": func() error {
			net.hang()
			return p.Commit([]cache.Batch{{Saved: savedOf(pods, "2")}}, nil)
		},
		"Note": func() error {
			net.hang()
			return p.Note([]cache.LedgerChange{{Name: "l", Put: []cache.LedgerEntry{{Key: []byte("k")}}}})
		},
		"Ledger": func() error {
			net.hang()
			return p.Ledger("l", func(cache.LedgerEntry) error { return nil })
		},
	} {
		began := time.Now()
		if err := do(); !errors.Is(err, cache.ErrAway) || errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("%s() = %v", what, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s() took %v", what, took)
		}
		net.pass()
		eventually(t, "all is there", func() bool {
			got, err := tryLoad(p, pods)
			return err == nil && len(got.Records) == n
		})
	}
}

// TestPostgresManyLoads: who waits for the connections of others loses no patience with the
// database, and saving does not wait for them.
func TestPostgresManyLoads(t *testing.T) {
	p := openPostgres(t, postgres.Start(t), func(o *PostgresOptions) {
		o.URL += "&pool_max_conns=3"
		o.patience = time.Second
	})
	if err := p.Commit(whole(pods, 300), nil); err != nil {
		t.Fatal(err)
	}
	var loads errgroup.Group
	for range 4 {
		loads.Go(func() error {
			_, err := p.Load(pods, func(cache.Record) error {
				time.Sleep(3 * time.Millisecond)
				return nil
			})
			return err
		})
	}
	time.Sleep(50 * time.Millisecond)
	for range 5 {
		if err := p.Commit(empty(pods, "2"), nil); err != nil {
			t.Error(err)
		}
	}
	if err := loads.Wait(); err != nil {
		t.Error(err)
	}
}

// TestPostgresFrozenWriter: a writer that was cut off in the middle of a transaction holds
// up who takes over for no longer than the database has patience with it; who takes over
// waits for that, and starts warm.
func TestPostgresFrozenWriter(t *testing.T) {
	s := postgres.Start(t)
	net := newProxy(t, s)
	first := openPostgres(t, s, func(o *PostgresOptions) { o.URL, o.patience = net.url(), 10*time.Second })
	if err := first.Commit([]cache.Batch{bulkBatch(pods, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := first.within(0)
	defer cancel()
	held := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- first.change(ctx, time.Minute, func(pgx.Tx) error {
			net.hang()
			close(held)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-held
	began := time.Now()
	second := openPostgres(t, s)
	if got, err := tryLoad(second, pods); err != nil || len(got.Records) != 3 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
	if err := second.Commit(whole(pods, 2), nil); err != nil {
		t.Error(err)
	}
	if time.Since(began) < firstWait {
		t.Error("the test proves nothing")
	}
	t.Logf("it took over after %v", time.Since(began))
	net.pass()
	if err := <-ended; err == nil {
		t.Error("the first has committed")
	}
}

// TestPostgresLocked: who has locked the tables holds up a commit for no longer than it has
// patience.
func TestPostgresLocked(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s, func(o *PostgresOptions) { o.patience = time.Second })
	if err := p.Commit([]cache.Batch{bulkBatch(pods, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	letGo := hold(t, s, "LOCK TABLE informerd.resources IN ACCESS EXCLUSIVE MODE")
	began := time.Now()
	err := p.Commit([]cache.Batch{{Saved: savedOf(pods, "2")}}, nil)
	if !errors.Is(err, cache.ErrAway) || time.Since(began) > 5*time.Second {
		t.Errorf("Commit() = %v after %v", err, time.Since(began))
	}
	letGo()
	eventually(t, "it goes on", func() bool { return p.Commit([]cache.Batch{{Saved: savedOf(pods, "3")}}, nil) == nil })
}

// TestPostgresReadOnly: a database that became a standby is left, since others may be named
// that took its place, and used again when it may be written.
func TestPostgresReadOnly(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	if err := p.Commit(whole(pods, 3), nil); err != nil {
		t.Fatal(err)
	}
	s.Exec("ALTER DATABASE postgres SET default_transaction_read_only = on")
	p.pool.Reset()
	if err := p.Commit(empty(pods, "2"), nil); !errors.Is(err, cache.ErrAway) || !strings.Contains(err.Error(), "it is read-only") {
		t.Errorf("Commit() = %v", err)
	}
	eventually(t, "it is said", func() bool { return p.Trouble() != nil })
	s.Exec("BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT")
	eventually(t, "it is used again", func() bool { return p.Commit(empty(pods, "3"), nil) == nil })
}

// TestPostgresNoPassword: whatever goes wrong, the password is in no error.
func TestPostgresNoPassword(t *testing.T) {
	s := postgres.Start(t)
	s.Exec("CREATE ROLE strict LOGIN PASSWORD 'right-one'")
	s.Let("host all strict 127.0.0.1/32 scram-sha-256")
	for _, password := range []string{"wrong-one", "right-one"} {
		file := passwordFile(t, password+"\n")
		p := openPostgres(t, s, func(o *PostgresOptions) {
			o.URL, o.PasswordFile = strings.Replace(o.URL, "//postgres@", "//strict@", 1), file
		})
		_, err := p.Saved()
		want := map[string]string{"wrong-one": "it does not let the user in", "right-one": "the user lacks a right"}[password]
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(fmt.Sprintf("%+v", err), password) {
			t.Errorf("Saved() = %v, want %q", err, want)
		}
	}
}
