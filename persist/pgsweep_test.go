package persist

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

func secretBatch(n int) cache.Batch {
	b := bulkBatch(pods, n)
	for i := range b.Put {
		b.Put[i].Data = []byte("taken-away-" + strconv.Itoa(i))
	}
	return b
}

// TestPostgresSweepOldTransaction: what an older transaction could still see is in no page
// any more either.
func TestPostgresSweepOldTransaction(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	for _, b := range []cache.Batch{secretBatch(50), bulkBatch(deployments, 3)} {
		if err := p.Commit([]cache.Batch{b}, nil); err != nil {
			t.Fatal(err)
		}
	}
	hold(t, s, "SELECT count(*) FROM informerd.store") // it has seen the rows, and locks nothing of them
	if err := p.Erase(pods); err != nil {
		t.Fatal(err)
	}
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pages do not hold it", func() bool {
		s.Exec("CHECKPOINT")
		return !s.Holds("taken-away-")
	})
	if got, err := tryLoad(p, deployments); err != nil || len(got.Records) != 3 {
		t.Errorf("%d other objects, %v", len(got.Records), err)
	}
	eventually(t, "nothing is due", func() bool { return !p.isDue() })
}

// TestPostgresSweepHoldsUpNobody: while the table cannot be had, saving goes on; and it is
// swept when it can.
func TestPostgresSweepHoldsUpNobody(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	if err := p.Commit([]cache.Batch{secretBatch(50)}, nil); err != nil {
		t.Fatal(err)
	}
	letGo := hold(t, s, "SELECT count(*) FROM informerd.objects_e3b0c44298fc1c14")
	if err := p.Erase(pods); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range 20 {
		began := time.Now()
		for _, err := range []error{p.Sweep(), p.Commit(whole(deployments, i), nil)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > sweepLock+2*time.Second {
			t.Errorf("a save took %v", took)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("20 saves took %v", took)
	}
	if !p.isDue() {
		t.Fatal("it is swept: the test proves nothing")
	}
	letGo()
	eventually(t, "it is swept", func() bool { return !p.isDue() })
}

// TestPostgresSweepMarks: what is marked while a sweep is under way stays marked.
func TestPostgresSweepMarks(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	if err := p.Commit([]cache.Batch{secretBatch(5)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Erase(pods); err != nil {
		t.Fatal(err)
	}
	// Another mark, of a transaction that has not ended yet.
	letGo := hold(t, s, "INSERT INTO informerd.sweeps VALUES ('objects_e3b0c44298fc1c14', 1)")
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is swept", func() bool { return !p.isDue() })
	letGo()
	s.Exec("INSERT INTO informerd.sweeps VALUES ('objects_e3b0c44298fc1c14', 2)")
	next := openPostgres(t, s)
	if _, err := next.Saved(); err != nil {
		t.Fatal(err)
	}
	if !next.isDue() {
		t.Error("the mark was taken away by a sweep of before")
	}
}

// TestPostgresSweepFenced: who was taken over sweeps nothing.
func TestPostgresSweepFenced(t *testing.T) {
	s := postgres.Start(t)
	first := openPostgres(t, s)
	if err := first.Commit([]cache.Batch{secretBatch(5)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.Erase(pods); err != nil {
		t.Fatal(err)
	}
	second := openPostgres(t, s)
	if _, err := second.Saved(); err != nil {
		t.Fatal(err)
	}
	if err := first.sweepTable("objects_e3b0c44298fc1c14"); !errors.Is(err, ErrTakenOver) {
		t.Errorf("sweepTable() = %v", err)
	}
	if !second.isDue() {
		t.Error("the mark is gone")
	}
}

// TestPostgresSweepRefused: a user who may not empty a table is told of, and the table stays
// marked.
func TestPostgresSweepRefused(t *testing.T) {
	s := postgres.Start(t)
	s.Exec("CREATE ROLE guest LOGIN")
	p := openPostgres(t, s)
	if err := p.Commit([]cache.Batch{secretBatch(5)}, nil); err != nil {
		t.Fatal(err)
	}
	s.Exec("GRANT USAGE ON SCHEMA informerd TO guest; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA informerd TO guest")
	guest := openPostgres(t, s, func(o *PostgresOptions) { o.URL = strings.Replace(o.URL, "//postgres@", "//guest@", 1) })
	if err := guest.Erase(pods); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is said", func() bool {
		err := guest.Sweep()
		return err != nil && strings.Contains(err.Error(), "the user lacks a right") && strings.Contains(err.Error(), "objects_e3b0c44298fc1c14")
	})
	if !guest.isDue() {
		t.Error("the mark is gone")
	}
	s.Exec("GRANT TRUNCATE ON ALL TABLES IN SCHEMA informerd TO guest")
	eventually(t, "it is swept", func() bool { return !guest.isDue() })
}
