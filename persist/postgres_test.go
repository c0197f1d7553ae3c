package persist

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// openPostgres opens the tables of a server; it is closed at the end of the test.
func openPostgres(t testing.TB, s *postgres.Server, change ...func(*PostgresOptions)) *Postgres {
	t.Helper()
	o := PostgresOptions{URL: s.URL(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, c := range change {
		c(&o)
	}
	p, err := OpenPostgres(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func passwordFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestPostgresModel compares the tables with a map under random operations, with restarts
// of the process and of the server.
func TestPostgresModel(t *testing.T) {
	s := postgres.Start(t)
	for seed := range 3 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			g := &generator{rng: rand.New(rand.NewPCG(uint64(seed), 11))}
			schema := func(o *PostgresOptions) { o.Schema = "s" + strconv.Itoa(seed) }
			p := openPostgres(t, s, schema)
			m := make(model)
			for step := range 120 {
				switch n := g.rng.IntN(30); {
				case n == 0:
					p = openPostgres(t, s, schema)
					m.check(t, p) // what is loaded can be added to
				case n == 1 && seed == 0:
					s.Kill()
					s.Up()
					// What is lost is found out by the first who asks.
					eventually(t, "it answers", func() bool {
						_, err := p.Saved()
						return err == nil
					})
				case n == 2:
					r := three[g.rng.IntN(len(three))]
					if err := p.Erase(r); err != nil {
						t.Fatal(err)
					}
					delete(m, r)
					if err := p.Sweep(); err != nil {
						t.Fatal(err)
					}
				default:
					batches := g.batches(m, strconv.Itoa(step))
					if err := p.Commit(batches, nil); err != nil {
						t.Fatal(err)
					}
					for _, b := range batches {
						m.apply(b)
					}
				}
				if step%10 == 0 {
					m.check(t, p)
				}
			}
			m.check(t, p)
			saved, err := p.Saved()
			if err != nil || len(saved) != len(m) {
				t.Errorf("Saved() = %d, %v, want %d", len(saved), err, len(m))
			}
		})
	}
}

// TestPostgresCopy: large batches are copied; of two records of a key the last counts.
func TestPostgresCopy(t *testing.T) {
	p := openPostgres(t, postgres.Start(t))
	for _, n := range []int{pgRows, pgRows + 1, uniqueUpTo + 1} {
		b := bulkBatch(pods, n)
		want := n
		if n <= uniqueUpTo {
			again := b.Put[0]
			again.Data = []byte("again")
			b.Put = append(b.Put, again)
		}
		if err := p.Commit([]cache.Batch{b}, nil); err != nil {
			t.Fatal(err)
		}
		got, err := tryLoad(p, pods)
		if err != nil || len(got.Records) != want {
			t.Fatalf("%d records, %v", len(got.Records), err)
		}
		if n <= uniqueUpTo && !slices.ContainsFunc(got.Records, func(r cache.Record) bool { return string(r.Data) == "again" }) {
			t.Error("the first of two counts")
		}
		if !slices.IsSortedFunc(got.Records, func(a, b cache.Record) int { return a.Key.Compare(b.Key) }) {
			t.Error("records are not in the order of keys")
		}
		if err := p.Commit([]cache.Batch{{Saved: savedOf(pods, "2"), Delete: []cache.Key{got.Records[0].Key}}}, nil); err != nil {
			t.Fatal(err)
		}
		if got, err = tryLoad(p, pods); err != nil || len(got.Records) != n-1 {
			t.Errorf("%d records, %v", len(got.Records), err)
		}
	}
}

// TestPostgresTakenOver: of two only the one that came last writes.
func TestPostgresTakenOver(t *testing.T) {
	s := postgres.Start(t)
	first := openPostgres(t, s)
	if err := first.Commit([]cache.Batch{bulkBatch(pods, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	second := openPostgres(t, s)
	if _, err := tryLoad(second, pods); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"Commit": func() error { return first.Commit([]cache.Batch{bulkBatch(pods, 1)}, nil) },
		"Note": func() error {
			return first.Note([]cache.LedgerChange{{Name: "l", Reset: true, Put: []cache.LedgerEntry{{Key: []byte("k")}}}})
		},
		"Drop":            func() error { return first.Drop(pods) },
		"SaveDocument":    func() error { return first.SaveDocument(document("", "/version", ""), nil) },
		"ForgetDocuments": func() error { return first.ForgetDocuments("") },
	} {
		if err := do(); !errors.Is(err, ErrTakenOver) {
			t.Errorf("%s() = %v", what, err)
		}
	}
	if err := second.Commit([]cache.Batch{{Saved: savedOf(pods, "2")}}, nil); err != nil {
		t.Error(err)
	}
	if got, err := tryLoad(second, pods); err != nil || len(got.Records) != 3 {
		t.Errorf("%d records, %v", len(got.Records), err)
	}
}

// TestPostgresPutBack: what others changed, a standby that was behind for one, is not added
// to.
func TestPostgresPutBack(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	note := func(value string, reset bool) error {
		return p.Note([]cache.LedgerChange{{Name: "l", Reset: reset, Put: []cache.LedgerEntry{{Key: []byte("k"), Value: []byte(value)}}}})
	}
	for _, err := range []error{p.Commit([]cache.Batch{bulkBatch(pods, 3)}, nil), note("1", true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Exec("CREATE TABLE old AS SELECT * FROM informerd.resources; CREATE TABLE books AS SELECT * FROM informerd.ledgers")
	next := cache.Batch{Saved: savedOf(pods, "2"), Delete: []cache.Key{bulkBatch(pods, 1).Put[0].Key}}
	for _, err := range []error{p.Commit([]cache.Batch{next}, nil), note("2", false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Exec("DELETE FROM informerd.resources; INSERT INTO informerd.resources SELECT * FROM old; DELETE FROM informerd.ledgers; INSERT INTO informerd.ledgers SELECT * FROM books")
	if err := p.Commit([]cache.Batch{{Saved: savedOf(pods, "3")}}, nil); !errors.Is(err, cache.ErrNoSnapshot) {
		t.Errorf("Commit() = %v", err)
	}
	if err := note("3", false); !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Note() = %v", err)
	}
	if err := p.Commit([]cache.Batch{bulkBatch(pods, 2)}, nil); err != nil {
		t.Errorf("anew: %v", err)
	}
	if err := note("4", true); err != nil {
		t.Errorf("anew: %v", err)
	}
	if _, err := tryLoad(p, pods); err != nil {
		t.Error(err)
	}
}

// TestPostgresAltered: rows that others deleted, added or changed are noticed.
func TestPostgresAltered(t *testing.T) {
	s := postgres.Start(t)
	for name, c := range map[string]struct {
		sql  string
		want error
	}{
		"a row is gone":        {"DELETE FROM informerd.objects_e3b0c44298fc1c14 WHERE key = (SELECT key FROM informerd.objects_e3b0c44298fc1c14 ORDER BY key LIMIT 1)", cache.ErrCorrupt},
		"a row is twice":       {"INSERT INTO informerd.objects_e3b0c44298fc1c14 SELECT resource, hash || 'x', key || 'x', sum, value FROM informerd.objects_e3b0c44298fc1c14 LIMIT 1", cache.ErrCorrupt},
		"a value is another's": {"UPDATE informerd.objects_e3b0c44298fc1c14 SET value = (SELECT value FROM informerd.objects_e3b0c44298fc1c14 ORDER BY key LIMIT 1)", cache.ErrCorrupt},
		"a value is cut":       {"UPDATE informerd.objects_e3b0c44298fc1c14 SET value = substring(value from 1 for 9)", cache.ErrCorrupt},
		"a dictionary is gone": {"DELETE FROM informerd.dictionaries", cache.ErrCorrupt},
		"the meta is empty":    {"UPDATE informerd.resources SET meta = ''", cache.ErrCorrupt},
		"a column is gone":     {"ALTER TABLE informerd.objects_e3b0c44298fc1c14 DROP COLUMN value", cache.ErrAway},
		"a table is gone":      {"DROP TABLE informerd.objects_e3b0c44298fc1c14", cache.ErrNoSnapshot},
	} {
		t.Run(name, func(t *testing.T) {
			s.Exec("DROP SCHEMA IF EXISTS informerd CASCADE")
			p := openPostgres(t, s)
			b := bulkBatch(pods, 3)
			b.Saved.Dictionaries = map[uint32][]byte{1: []byte("one")}
			if err := p.Commit([]cache.Batch{b}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := tryLoad(p, pods); err != nil {
				t.Fatal(err)
			}
			s.Exec(c.sql)
			if _, err := tryLoad(p, pods); !errors.Is(err, c.want) {
				t.Errorf("Load() = %v, want %v", err, c.want)
			} else if c.want == cache.ErrAway && !strings.Contains(err.Error(), "the tables are not as informerd made them") {
				t.Errorf("Load() = %v", err)
			}
		})
	}
}

// TestPostgresRefused: what is wrong with the database is said so that somebody can do
// something about it.
func TestPostgresRefused(t *testing.T) {
	s := postgres.Start(t)
	s.Exec("CREATE ROLE nobody LOGIN")
	s.Exec("CREATE SCHEMA newer; CREATE TABLE newer.store (version integer, epoch bigint); INSERT INTO newer.store VALUES (7, 0)")
	for name, c := range map[string]struct {
		change func(*PostgresOptions)
		said   string
	}{
		"nobody answers":    {func(o *PostgresOptions) { o.URL = "postgres://postgres@127.0.0.1:1/postgres" }, "connect"},
		"no database":       {func(o *PostgresOptions) { o.URL = strings.Replace(o.URL, "/postgres?", "/none?", 1) }, "there is no such database"},
		"no user":           {func(o *PostgresOptions) { o.URL = strings.Replace(o.URL, "//postgres@", "//none@", 1) }, "does not let the user in"},
		"no right":          {func(o *PostgresOptions) { o.URL = strings.Replace(o.URL, "//postgres@", "//nobody@", 1) }, "the user lacks a right"},
		"newer":             {func(o *PostgresOptions) { o.Schema = "newer" }, "made by a newer informerd"},
		"no password there": {func(o *PostgresOptions) { o.PasswordFile = "/none" }, "read the password of the database: open /none"},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPostgres(t, s, c.change)
			if _, err := p.Saved(); err == nil || !strings.Contains(err.Error(), c.said) {
				t.Errorf("Saved() = %v, want %q", err, c.said)
			}
		})
	}
	for url, said := range map[string]string{
		"":                                         "must begin with postgres://",
		"mysql://a/b":                              "must begin with postgres://",
		"postgres://user:secret@host/db":           "has a password",
		"postgres://user@host/db?password=x":       "has a password",
		"postgres://user@host/db?passwor%64=x":     "has a password",
		"postgres://user:secret?@host/db":          "has a password",
		"postgres://user@host:port/db":             "port",
		"postgres://u@h/db?sslmode=wat":            "sslmode",
		"postgres://user@host/db?pool_max_conns=x": "pool_max_conns",
		"postgres://user@host/db?pool_max_conns=2": "must be 3 at least",
	} {
		if err := CheckPostgres(PostgresOptions{URL: url}); err == nil || !strings.Contains(err.Error(), said) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", url, err, said)
		}
	}
	if err := CheckPostgres(PostgresOptions{URL: "postgres://a@b/c", Schema: "Bad-Schema"}); err == nil {
		t.Error("a bad schema is taken")
	}
}

// TestPostgresAway: while the server is away, or frozen, errors come in time, and it goes on
// when it is back.
func TestPostgresAway(t *testing.T) {
	s := postgres.Start(t)
	password := passwordFile(t, "p\n")
	p := openPostgres(t, s, func(o *PostgresOptions) { o.patience, o.PasswordFile = 2*time.Second, password })
	if err := p.Commit([]cache.Batch{bulkBatch(pods, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	change := func(version string) error { return p.Commit([]cache.Batch{{Saved: savedOf(pods, version)}}, nil) }
	again := func(version string) {
		t.Helper()
		var err error
		for range 20 { // connections that were cut are found out one by one
			if err = change(version); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tryLoad(p, pods); err != nil || got.Saved.ResourceVersions[""] != version || len(got.Records) != 3 {
			t.Errorf("%d records at %v, %v", len(got.Records), got.Saved.ResourceVersions, err)
		}
	}
	s.Kill()
	if err := change("2"); err == nil {
		t.Error("it was committed to nobody")
	}
	s.Up()
	again("3")
	s.Freeze()
	began := time.Now()
	if err := change("4"); err == nil {
		t.Error("it was committed to a server that is frozen")
	}
	if _, err := tryLoad(p, pods); err == nil {
		t.Error("a server that is frozen answered")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to notice", took)
	}
	s.Thaw()
	again("5")
}

// TestPostgresLedgers compares ledgers with a map under random changes.
func TestPostgresLedgers(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]map[string]string{}
	for step := range 200 {
		name := fmt.Sprint("l", rng.IntN(3))
		c := cache.LedgerChange{Name: name, Reset: want[name] == nil || rng.IntN(10) == 0, Erase: rng.IntN(20) == 0}
		if c.Reset {
			want[name] = map[string]string{}
		}
		for range rng.IntN(6) {
			key := fmt.Sprint("k", rng.IntN(20))
			if rng.IntN(3) == 0 && !c.Reset {
				c.Delete = append(c.Delete, []byte(key))
			}
		}
		for _, key := range c.Delete {
			delete(want[name], string(key))
		}
		for range rng.IntN(6) {
			key, value := fmt.Sprint("k", rng.IntN(20)), fmt.Sprint(step)
			c.Put = append(c.Put, cache.LedgerEntry{Key: []byte(key), Value: []byte(value)})
			want[name][key] = value
		}
		if c.Reset && len(c.Put) == 0 {
			delete(want, name)
		}
		if err := p.Note([]cache.LedgerChange{c}); err != nil {
			t.Fatal(err)
		}
		if step%20 == 0 {
			if err := p.Sweep(); err != nil {
				t.Fatal(err)
			}
			if step%40 == 0 {
				p = openPostgres(t, s)
			}
			names, err := p.Ledgers()
			if err != nil || !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
				t.Fatalf("Ledgers() = %v, %v", names, err)
			}
			for name := range want {
				got := map[string]string{}
				if err := p.Ledger(name, func(e cache.LedgerEntry) error {
					got[string(e.Key)] = string(e.Value)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				same(t, name, got, want[name])
			}
		}
	}
	if err := p.Ledger("none", func(cache.LedgerEntry) error { return errors.New("there is none") }); err != nil {
		t.Error(err)
	}
}

// TestPostgresDocuments: documents are kept until others take their place, or their cluster
// goes.
func TestPostgresDocuments(t *testing.T) {
	p := openPostgres(t, postgres.Start(t))
	first, second, third := document("east", "/a", "1"), document("west", "/b", "2"), document("east", "/c", "3")
	for _, d := range []cache.Document{first, second} {
		if err := p.SaveDocument(d, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.SaveDocument(third, []cache.DocumentKey{first.DocumentKey}); err != nil {
		t.Fatal(err)
	}
	all, err := p.Documents()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "documents", all, []cache.Document{third, second})
	if err := p.ForgetDocuments("east"); err != nil {
		t.Fatal(err)
	}
	if all, err = p.Documents(); err != nil {
		t.Fatal(err)
	}
	same(t, "documents", all, []cache.Document{second})
}

// TestPostgresSweep: what was taken away is in no page of the tables any more, also where
// the process ended before it came to that.
func TestPostgresSweep(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	b := bulkBatch(pods, 50)
	for i := range b.Put {
		b.Put[i].Data = []byte("taken-away-" + strconv.Itoa(i))
	}
	for _, batch := range []cache.Batch{b, bulkBatch(deployments, 3)} {
		if err := p.Commit([]cache.Batch{batch}, nil); err != nil {
			t.Fatal(err)
		}
	}
	held := func() bool {
		t.Helper()
		s.Exec("CHECKPOINT")
		return s.Holds("taken-away-")
	}
	if !held() {
		t.Fatal("the pages do not hold it before: the test proves nothing")
	}
	if err := p.Erase(pods); err != nil {
		t.Fatal(err)
	}
	if !held() {
		t.Error("the pages do not hold it after Erase: is Sweep of any use?")
	}
	next := openPostgres(t, s)
	if _, err := next.Saved(); err != nil {
		t.Fatal(err)
	}
	if err := next.Sweep(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pages do not hold it", func() bool { return !held() })
	if got, err := tryLoad(next, deployments); err != nil || len(got.Records) != 3 {
		t.Errorf("%d other objects, %v", len(got.Records), err)
	}
}
