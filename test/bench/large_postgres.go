package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/informerd/informerd/test/postgres/installed"
	"github.com/informerd/informerd/test/standin"
)

// postgresPeer is what the table calls it.
const postgresPeer = "PostgreSQL, jsonb with GIN"

// tables is what was measured of PostgreSQL with the same pods in a table.
type tables struct {
	took map[string][]float64 // seconds of each answer, by question
	disk float64              // bytes of table and index
	file float64              // bytes of informerd's snapshot
}

// measurePostgres asks PostgreSQL what informerd was asked, when informerd has ended. It is left
// out, which is said, where it is not installed.
func (l *large) measurePostgres(ctx context.Context) (_ *tables, err error) {
	if !l.measures(postgreSQL) {
		return nil, nil //nolint:nilnil // there is none
	}
	programs, err := installed.Find()
	if errors.Is(err, installed.ErrNone) && os.Getenv(installed.Folder) == "" {
		logf("PostgreSQL is left out, since it is not on this machine: make postgres installs it")
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	d, err := startDatabase(ctx, programs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	t := &tables{took: map[string][]float64{}}
	if err := errors.Join(l.fill(ctx, d), l.query(ctx, d, t)); err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	info, err := os.Stat(l.file)
	if err != nil {
		return nil, err
	}
	t.file = float64(info.Size())
	t.disk, err = d.number(ctx, "SELECT pg_total_relation_size('pods')")
	return t, err
}

// fill loads the pods as informerd holds them.
func (l *large) fill(ctx context.Context, d *database) error {
	logf("PostgreSQL: copying %d pods", l.data.Pods)
	start := time.Now()
	if err := d.exec(ctx, podsSchema...); err != nil {
		return err
	}
	if err := d.load(ctx, standin.WithoutManagedFields(l.data.Pods), runtime.NumCPU()); err != nil {
		return err
	}
	logf("PostgreSQL: copied in %.0f s; indexing them", time.Since(start).Seconds())
	start = time.Now()
	if err := d.exec(ctx, podsIndexed...); err != nil {
		return err
	}
	logf("PostgreSQL: indexed in %.0f s", time.Since(start).Seconds())
	return nil
}

// query asks each question once, for it to be in memory what can be, and then once each round.
func (l *large) query(ctx context.Context, d *database, t *tables) error {
	for _, q := range l.questions {
		logf("PostgreSQL: question %s", q.name)
		for round := range 1 + l.rounds {
			took, err := l.queryOne(ctx, d, q)
			if err != nil {
				return fmt.Errorf("question %s: %w", q.name, err)
			}
			if round > 0 {
				t.took[q.name] = append(t.took[q.name], took)
			}
		}
	}
	return nil
}

func (l *large) queryOne(ctx context.Context, d *database, q question) (seconds float64, err error) {
	sql, err := inSQL(q)
	if err != nil {
		return 0, err
	}
	rows, took, err := d.ask(ctx, sql.query)
	if err != nil {
		return 0, err
	}
	got, err := sql.read(rows)
	if err != nil {
		return 0, err
	}
	return took, l.right(q, got, []byte(sql.query))
}

// peer is what a question took, nothing if it was not asked.
func (t *tables) peer(question string) Figure {
	if t == nil {
		return Figure{}
	}
	return newFigure(postgresPeer, t.took[question])
}

// rows are those that are not of a question.
func (t *tables) rows() []Row {
	if t == nil {
		return nil
	}
	return []Row{{What: "on disk: the snapshot file", Unit: unitBytes, Ours: newFigure("informerd", []float64{t.file}),
		Peer: newFigure(postgresPeer+", table and index", []float64{t.disk})}}
}
