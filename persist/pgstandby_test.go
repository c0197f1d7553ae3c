package persist

import (
	"errors"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

func standby(o *PostgresOptions) { o.Standby = true }

// leading waits until p has taken over.
func leading(t *testing.T, p *Postgres) {
	t.Helper()
	for range 500 {
		if !p.IsStandby() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("it stands by: %v", p.Trouble())
}

// TestPostgresStandby: one that stands by reads what the writer saved, and neither writes nor
// takes over. When it leads it takes over, and the one before is refused until it leads again.
func TestPostgresStandby(t *testing.T) {
	s := postgres.Start(t)
	first, second := openPostgres(t, s, standby), openPostgres(t, s, standby)
	first.Lead()
	leading(t, first)
	if err := first.Commit(whole(pods, 3), nil); err != nil {
		t.Fatal(err)
	}
	ledger := []cache.LedgerChange{{Name: "h", Reset: true, Put: []cache.LedgerEntry{{Key: []byte("a"), Value: []byte("b")}}}}
	if err := first.Note(ledger); err != nil {
		t.Fatal(err)
	}

	if got, err := tryLoad(second, pods); err != nil || len(got.Records) != 3 {
		t.Errorf("it reads %d records, %v", len(got.Records), err)
	}
	for name, call := range map[string]func() error{
		"Commit":  func() error { return second.Commit(whole(pods, 4), nil) },
		"Note":    func() error { return second.Note(ledger) },
		"Erase":   func() error { return second.Erase(pods) },
		"Ledgers": func() error { _, err := second.Ledgers(); return err },
		"Ledger":  func() error { return second.Ledger("h", func(cache.LedgerEntry) error { return nil }) },
	} {
		if err := call(); !errors.Is(err, cache.ErrAway) {
			t.Errorf("%s() = %v of one that stands by", name, err)
		}
	}
	if err := second.Trouble(); err != nil {
		t.Errorf("Trouble() = %v of one that stands by", err)
	}
	if err := first.Commit(whole(pods, 5), nil); err != nil {
		t.Fatalf("the writer was disturbed: %v", err)
	}

	second.Lead()
	leading(t, second)
	if err := first.Commit(whole(pods, 1), nil); !errors.Is(err, cache.ErrAway) {
		t.Errorf("Commit() = %v of one that was taken over", err)
	}
	// What it has read is not what is there by now, so that nothing may be added to it.
	if err := second.Commit(empty(pods, "9"), nil); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Commit() = %v", err)
	}
	if err := second.Commit(whole(pods, 7), nil); err != nil {
		t.Fatal(err)
	}
	first.StandBy()
	for range 500 { // it may connect anew
		if _, err := first.Saved(); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got, err := tryLoad(first, pods); err != nil || len(got.Records) != 7 {
		t.Errorf("the one before reads %d records, %v", len(got.Records), err)
	}
	second.StandBy()
	first.Lead()
	leading(t, first)
	if err := first.Commit(whole(pods, 2), nil); err != nil {
		t.Fatal(err)
	}
}

// TestPostgresLeadsAgain: a leader that somebody has taken over from by mistake takes over
// again when it is told once more that it leads.
func TestPostgresLeadsAgain(t *testing.T) {
	s := postgres.Start(t)
	leader, mistaken := openPostgres(t, s, standby), openPostgres(t, s, standby)
	leader.Lead()
	leading(t, leader)
	mistaken.Lead()
	leading(t, mistaken)
	if err := leader.Commit(whole(pods, 1), nil); !errors.Is(err, ErrTakenOver) {
		t.Fatalf("Commit() = %v", err)
	}
	mistaken.StandBy()
	leader.Lead()
	leading(t, leader)
	if err := leader.Commit(whole(pods, 2), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := tryLoad(mistaken, pods); err != nil || len(got.Records) != 2 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
}

// TestPostgresStandbyFirst: one that stands by waits for tables that nobody has made yet, and
// finds them later.
func TestPostgresStandbyFirst(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s, standby)
	if saved, err := p.Saved(); !errors.Is(err, cache.ErrAway) {
		t.Errorf("Saved() = %v, %v without tables", saved, err)
	}
	writer := openPostgres(t, s)
	if err := writer.Commit(whole(pods, 3), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := tryLoad(p, pods); err != nil || len(got.Records) != 3 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
}

// TestPostgresStandbyDamage: what one that stands by cannot understand is for who writes to judge.
func TestPostgresStandbyDamage(t *testing.T) {
	s := postgres.Start(t)
	if err := openPostgres(t, s).Commit(whole(pods, 3), nil); err != nil {
		t.Fatal(err)
	}
	s.Exec(`DELETE FROM informerd.` + objectsTable(pods.Cluster))
	if _, err := tryLoad(openPostgres(t, s, standby), pods); !errors.Is(err, cache.ErrAway) || errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Load() = %v of one that stands by", err)
	}
	if _, err := tryLoad(openPostgres(t, s), pods); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Load() = %v of the writer", err)
	}
}
