package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/test/postgres/installed"
	"github.com/informerd/informerd/test/standin"
)

// database is a PostgreSQL with pods in a table.
type database struct {
	*process
	dir  string
	url  string
	conn *pgx.Conn
}

// databaseSettings are what somebody would set who has this machine for that table and nothing
// else. What is on the disk need not outlive the run.
var databaseSettings = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=16GB",
	"autovacuum=off", "shared_buffers=2GB", "effective_cache_size=8GB", "work_mem=256MB", "maintenance_work_mem=1GB",
	"default_toast_compression=lz4", "random_page_cost=1.1", "jit=off", "unix_socket_directories=", "listen_addresses=127.0.0.1",
}

// startDatabase starts one in a folder of its own. close it.
func startDatabase(ctx context.Context, programs *installed.Programs) (_ *database, err error) {
	dir, err := os.MkdirTemp("", "informerd-bench-postgres-")
	if err != nil {
		return nil, err
	}
	d := &database{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start PostgreSQL: %w", err), d.close())
		}
	}()
	if err := programs.Give(dir); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if out, err := programs.InitDB(dir, data); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-p", port}
	for _, setting := range databaseSettings {
		args = append(args, "-c", setting)
	}
	d.url = "postgres://postgres@" + address + "/postgres?sslmode=disable"
	if d.process, err = startProcess(ctx, "postgres", programs.Command(dir, "postgres", args...)); err != nil {
		return nil, err
	}
	d.conn, err = d.connect(ctx, time.Minute)
	return d, err
}

// connect tries until there is an answer, for as long as atMost.
func (d *database) connect(ctx context.Context, atMost time.Duration) (*pgx.Conn, error) {
	for deadline := time.Now().Add(atMost); ; time.Sleep(50 * time.Millisecond) {
		conn, err := pgx.Connect(ctx, d.url)
		if err == nil {
			return conn, nil
		}
		if died := d.died(); died != nil {
			return nil, died
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fmt.Errorf("connect: %w\n%s", err, d.log)
		}
	}
}

// close ends the server and takes its folder away.
func (d *database) close() error {
	if d.conn != nil {
		_ = d.conn.Close(context.Background()) // the server ends, whatever becomes of it
	}
	if d.process != nil {
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // it and its children, at once
		select {
		case <-d.done:
		case <-time.After(time.Minute):
			d.kill()
		}
	}
	return os.RemoveAll(d.dir)
}

// exec runs one statement after the other.
func (d *database) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := d.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// load copies pods into the table, over as many connections as there are processors to take them.
func (d *database) load(ctx context.Context, pods *standin.Pods, connections int) error {
	g, ctx := errgroup.WithContext(ctx)
	for k := range connections {
		g.Go(func() error {
			conn, err := d.connect(ctx, time.Second)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			_, err = conn.CopyFrom(ctx, pgx.Identifier{podsTable}, []string{"data"}, podsFrom(pods, k, connections))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("copy pods: %w", err)
	}
	return nil
}

// podsFrom are the pods of which the number, divided by step, leaves first.
func podsFrom(pods *standin.Pods, first, step int) pgx.CopyFromSource {
	var text []byte
	i := first - step
	return pgx.CopyFromFunc(func() ([]any, error) {
		if i += step; i >= pods.Count {
			return nil, nil
		}
		text = pods.Append(text[:0], i, standin.Created(i))
		return []any{text}, nil
	})
}

// ask runs a query, and returns its rows as text and the seconds until they were all there.
func (d *database) ask(ctx context.Context, query string) (rows [][][]byte, seconds float64, err error) {
	start := time.Now()
	results, err := d.conn.PgConn().Exec(ctx, query).ReadAll()
	seconds = time.Since(start).Seconds()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", query, err)
	}
	for _, result := range results {
		rows = append(rows, result.Rows...)
	}
	return rows, seconds, nil
}

// number is the one number that a query answers with.
func (d *database) number(ctx context.Context, query string) (float64, error) {
	rows, _, err := d.ask(ctx, query)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, fmt.Errorf("%s: not one value but %d rows", query, len(rows))
	}
	return strconv.ParseFloat(string(rows[0][0]), 64)
}
