package persist

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

func empty(r cache.Resource, version string) []cache.Batch {
	return []cache.Batch{{Saved: savedOf(r, version)}}
}

func whole(r cache.Resource, n int) []cache.Batch { return []cache.Batch{bulkBatch(r, n)} }

// putBack makes the schema what it is now again, when it is called: a backup.
func putBack(s *postgres.Server) func() {
	s.Exec(`DROP SCHEMA IF EXISTS backup CASCADE; CREATE SCHEMA backup;
		DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'informerd' LOOP
			EXECUTE format('CREATE TABLE backup.%I AS SELECT * FROM informerd.%I', t, t); END LOOP; END $$`)
	return func() {
		s.Exec(`DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'informerd' LOOP
			EXECUTE format('DELETE FROM informerd.%I', t); END LOOP;
			FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'backup' LOOP
			EXECUTE format('INSERT INTO informerd.%I SELECT * FROM backup.%I', t, t); END LOOP; END $$`)
	}
}

// TestPostgresWentBack: after a fail-over to a standby that was behind, or a backup of before
// this writer came, it goes on writing, with everything saved anew.
func TestPostgresWentBack(t *testing.T) {
	s := postgres.Start(t)
	before := openPostgres(t, s)
	if err := before.Commit(whole(pods, 3), nil); err != nil {
		t.Fatal(err)
	}
	back := putBack(s)
	p := openPostgres(t, s)
	if err := p.Commit(whole(pods, 4), nil); err != nil {
		t.Fatal(err)
	}
	back()
	if err := p.Commit(empty(pods, "2"), nil); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Fatalf("Commit() = %v", err)
	}
	if err := p.Commit(whole(pods, 5), nil); err != nil {
		t.Fatal(err)
	}
	if err := before.Commit(whole(pods, 1), nil); !errors.Is(err, ErrTakenOver) {
		t.Errorf("Commit() of the one before = %v", err)
	}
	if got, err := tryLoad(p, pods); err != nil || len(got.Records) != 5 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
}

// TestPostgresSameEpoch: a number that is given out a second time, since the database went
// back, is that of one writer: the one which came last.
func TestPostgresSameEpoch(t *testing.T) {
	s := postgres.Start(t)
	if _, err := openPostgres(t, s).Saved(); err != nil {
		t.Fatal(err)
	}
	back := putBack(s)
	first := openPostgres(t, s)
	if err := first.Commit(whole(pods, 1), nil); err != nil {
		t.Fatal(err)
	}
	back()
	second := openPostgres(t, s)
	if err := second.Commit(whole(pods, 2), nil); err != nil {
		t.Fatal(err)
	}
	if a, b := first.holds(), second.holds(); a.epoch != b.epoch {
		t.Fatalf("epochs %d and %d: the test proves nothing", a.epoch, b.epoch)
	}
	for range 3 { // for good
		if err := first.Commit(whole(pods, 3), nil); !errors.Is(err, ErrTakenOver) {
			t.Errorf("Commit() of the first = %v", err)
		}
		if err := second.Commit(empty(pods, "2"), nil); err != nil {
			t.Errorf("Commit() of the second = %v", err)
		}
	}
	if err := first.Trouble(); !errors.Is(err, ErrTakenOver) {
		t.Errorf("Trouble() = %v", err)
	}
	if got, err := tryLoad(second, pods); err != nil || len(got.Records) != 2 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
}

// TestPostgresDropped: what is dropped under a running process is made anew, and saved whole.
// Ledgers are kept where their tables are.
func TestPostgresDropped(t *testing.T) {
	s := postgres.Start(t)
	for what, c := range map[string]struct {
		sql            string
		copies, ledger bool // are there afterwards
	}{
		"schema":       {sql: "DROP SCHEMA informerd CASCADE"},
		"store":        {sql: "DROP TABLE informerd.store", copies: true, ledger: true},
		"its row":      {sql: "DELETE FROM informerd.store", copies: true, ledger: true},
		"objects":      {sql: "DROP TABLE informerd.objects_e3b0c44298fc1c14", ledger: true},
		"resources":    {sql: "DROP TABLE informerd.resources", ledger: true},
		"dictionaries": {sql: "DROP TABLE informerd.dictionaries", ledger: true},
		"ledgers":      {sql: "DROP TABLE informerd.ledgers", copies: true},
		"entries":      {sql: "DROP TABLE informerd.entries", copies: true},
		"sweeps":       {sql: "DROP TABLE informerd.sweeps", copies: true, ledger: true},
		"documents":    {sql: "DROP TABLE informerd.documents", copies: true, ledger: true},
	} {
		t.Run(what, func(t *testing.T) {
			s.Exec("DROP SCHEMA IF EXISTS informerd CASCADE")
			p := openPostgres(t, s)
			note := func(reset bool) error {
				return p.Note([]cache.LedgerChange{{Name: "l", Reset: reset, Put: []cache.LedgerEntry{{Key: []byte("k")}}}})
			}
			for _, err := range []error{p.Commit(whole(pods, 3), nil), note(true)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s.Exec(c.sql)
			change := cache.Batch{Saved: savedOf(pods, "2"), Put: bulkBatch(pods, 1).Put}
			if err := p.Commit([]cache.Batch{change}, nil); (err == nil) != c.copies || !c.copies && !errors.Is(err, cache.ErrNoSnapshot) {
				t.Errorf("Commit() = %v", err)
			}
			if err := note(false); (err == nil) != c.ledger || !c.ledger && !errors.Is(err, cache.ErrCorrupt) {
				t.Errorf("Note() = %v", err)
			}
			for _, err := range []error{p.Commit(whole(pods, 4), nil), note(true), p.SaveDocument(document("", "/a", ""), nil), p.Erase(deployments), p.Sweep()} {
				if err != nil {
					t.Error(err)
				}
			}
			next := openPostgres(t, s)
			if got, err := tryLoad(next, pods); err != nil || len(got.Records) != 4 {
				t.Errorf("%d records, %v", len(got.Records), err)
			}
		})
	}
}

// TestPostgresTakenOverWhileMaking: who takes over while another makes the table of a cluster
// takes that for no table that was lost, and erases nothing.
func TestPostgresTakenOverWhileMaking(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	one, other := bulkBatch(pods, 5), bulkBatch(pods, 5)
	other.Saved.Spec.Resource.Cluster = "new"
	if err := p.Commit([]cache.Batch{one}, nil); err != nil {
		t.Fatal(err)
	}
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.readFence(t.Context(), tx, "FOR SHARE"); err != nil {
		t.Fatal(err)
	}
	save := pgSave{p: p, ctx: t.Context(), tx: tx, batch: &other, stamp: 7}
	if done, err := save.saveOr(nil); err != nil || !done {
		t.Fatal(done, err)
	}
	next := openPostgres(t, s)
	time.Sleep(500 * time.Millisecond) // until it waits, if it is quick; it has to wait all the same
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if saved, err := next.Saved(); err != nil || len(saved) != 2 {
		t.Errorf("%d snapshots, %v; want 2", len(saved), err)
	}
}

// TestPostgresBusyWriter: a writer that always has a transaction under way does not keep out
// the one that takes over.
func TestPostgresBusyWriter(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	if _, err := p.Saved(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var lanes sync.WaitGroup
	for i := range 2 {
		lanes.Go(func() {
			for pauseFor(ctx, time.Duration(i)*50*time.Millisecond); ctx.Err() == nil; {
				err := p.change(ctx, time.Minute, func(pgx.Tx) error {
					pauseFor(ctx, 100*time.Millisecond)
					return nil
				})
				if errors.Is(err, ErrTakenOver) {
					return
				}
			}
		})
	}
	next := openPostgres(t, s)
	if _, err := next.Saved(); err != nil {
		t.Errorf("the one that takes over: %v", err)
	}
	stop()
	lanes.Wait()
}
