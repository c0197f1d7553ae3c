package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/test/postgres"
)

// TestMirror runs what one server bears.
func TestMirror(t *testing.T) {
	t.Parallel()
	s := postgres.Start(t)
	for name, test := range map[string]func(*testing.T, *postgres.Server){
		"Restart": testRestart, "RowsOfNobody": testRowsOfNobody, "Dropped": testDropped, "Fencing": testFencing, "NotNewer": testNotNewer,
		"TakenAway": testTakenAway, "Forget": testForget, "Refused": testRefused, "Nothing": testNothing, "ExecModes": testExecModes, "Odd": testOdd, "Views": testViews, "Quantities": testQuantities,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// filled is a world of some objects.
func filled(t *testing.T, n int) *world {
	w := newWorld(t, podSpec)
	for i := range n {
		w.put(cache.Key{Namespace: "a", Name: fmt.Sprintf("n%d", i)}, `{"app":"a"}`, `,"spec":{"secret":{"a":"hidden"},"node":"n1"}`)
	}
	return w
}

// value is what a query answers with, one value.
func (r *rig) value(query string, args ...any) (v string) {
	r.t.Helper()
	c := r.connect()
	defer c.Close(context.Background())
	if err := c.QueryRow(context.Background(), query, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	return v
}

// compared waits until something was compared.
func (r *rig) compared() {
	r.t.Helper()
	eventually(r.t, "it is compared", func() error {
		if st := r.mirror.Status(); st.Commits == 0 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
}

// testRestart: a mirror is compared with the copy after a restart, and not written again; what
// somebody altered by hand is as it was then.
func testRestart(t *testing.T, s *postgres.Server) {
	w := filled(t, 1100)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	if n := r.mirror.Status().Written; n != 1100 {
		t.Errorf("%d rows were written", n)
	}
	for _, c := range []struct {
		alter   string
		written uint64
		deleted uint64
	}{
		{"SELECT 1", 0, 0},
		{`UPDATE mirror_objects SET object = jsonb_set(object, '{spec,node}', '"n2"') WHERE name = 'n7'`, 1, 0},
		{`UPDATE mirror_objects SET labels = '{"app":"b"}' WHERE name IN ('n7', 'n1099')`, 2, 0},
		{`UPDATE mirror_objects SET name = 'other', namespace = 'b' WHERE name = 'n0'`, 1, 0},
		{`UPDATE mirror_objects SET created_at = now(), altered = 'x', kind = 'Other', uid = 'x' WHERE name = 'n1'`, 1, 0},
		{`UPDATE mirror_objects SET digest = '', sum = '' WHERE name = 'n1'`, 1, 0},
		{`DELETE FROM mirror_objects WHERE name LIKE 'n1%'`, 211, 0},
		{`DELETE FROM mirror_resources`, 0, 0},
		{`INSERT INTO mirror_objects SELECT cluster, "group", resource, version, kind, namespace, 'more', uid, resource_version, created_at, labels, object, altered, 'more', digest, sum
			FROM mirror_objects WHERE name = 'n3'`, 0, 1},
		{`UPDATE mirror_resources SET resource_version = '1', objects = 3`, 0, 0},
		{`DROP TABLE mirror_objects CASCADE`, 1100, 0},
		{`DROP TABLE mirror_objects, mirror_resources, mirror_schema CASCADE`, 1100, 0},
		{`DROP VIEW mirror_pods`, 0, 0},
	} {
		r.end()
		r.exec(c.alter)
		r.begin()
		r.compared()
		r.settle(w)
		if st := r.mirror.Status(); st.Written != c.written || st.Deleted != c.deleted || st.Failures != 0 {
			t.Errorf("after %s: %+v", c.alter, st)
		}
		if n := r.value(`SELECT count(*)::text FROM mirror_pods WHERE NOT ready`); n != "1100" {
			t.Errorf("after %s: %s pods", c.alter, n)
		}
	}
}

// testRowsOfNobody: rows that nothing names are found.
func testRowsOfNobody(t *testing.T, s *postgres.Server) {
	w := filled(t, 3)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	r.end()
	r.exec(`INSERT INTO mirror_objects SELECT cluster, 'x', resource, version, kind, namespace, name, uid, resource_version, created_at, labels, object, altered, hash, digest, sum FROM mirror_objects`)
	r.gone["east/pods.x"] = true
	r.begin()
	eventually(t, "they are deleted", func() error {
		if n := r.value(`SELECT count(*)::text FROM mirror_objects`); n != "3" {
			return errors.New(n)
		}
		return nil
	})
}

// testDropped: tables that go while it runs are made anew.
func testDropped(t *testing.T, s *postgres.Server) {
	w := filled(t, 3)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	for _, query := range []string{
		`DROP TABLE mirror_objects CASCADE`, `DROP SCHEMA ` + r.schema + ` CASCADE`, `TRUNCATE mirror_objects, mirror_resources`,
	} {
		r.exec(query)
		w.put(cache.Key{Namespace: "a", Name: "more"}, "{}", "")
		r.settle(w)
	}
}

// TestOutage: what happened while the database was away, deletions included, is there when it
// is back, whether informerd was killed meanwhile or not.
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			w := filled(t, 100)
			r := newRig(t, postgres.Start(t), w)
			r.begin()
			r.settle(w)
			r.server.Kill()
			for i := range 50 {
				w.drop(cache.Key{Namespace: "a", Name: fmt.Sprintf("n%d", i)})
			}
			w.put(cache.Key{Namespace: "a", Name: "n77"}, `{"app":"b"}`, "")
			w.put(cache.Key{Namespace: "a", Name: "new"}, "{}", "")
			eventually(t, "it is said", func() error {
				if st := r.mirror.Status(); st.Err == "" || st.Pending != 52 && st.Failures == 0 {
					return fmt.Errorf("%+v", st)
				}
				return nil
			})
			if killed {
				r.end()
			}
			r.server.Up()
			if killed {
				r.begin()
			}
			r.settle(w)
			eventually(t, "nothing is wrong", func() error {
				if st := r.mirror.Status(); st.Err != "" {
					return errors.New(st.Err)
				}
				return nil
			})
			if st := r.mirror.Status(); killed && st.Written != 2 || st.Deleted != 50 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// testFencing: who came before writes nothing any more.
func testFencing(t *testing.T, s *postgres.Server) {
	w := filled(t, 5)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	second := r.open()
	defer second.Close()
	other := r.newMirror(second)
	other.follow()
	if err := other.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer other.close()
	w.put(cache.Key{Namespace: "a", Name: "late"}, "{}", "")
	eventually(t, "the first says so", func() error {
		if st := r.mirror.Status(); !strings.Contains(st.Err, "another informerd has taken over") {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	if n := r.value(`SELECT objects::text FROM mirror_resources`); n != "5" {
		t.Errorf("%s objects", n)
	}
	other.follow()
	if err := other.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.settle(w)
}

// testNotNewer: a copy that was not proven current since the start is not mirrored: it may be
// older than its mirror. One that is not kept current any more says so.
func testNotNewer(t *testing.T, s *postgres.Server) {
	w := filled(t, 5)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	before := r.value(`SELECT resource_version FROM mirror_resources`)
	r.end()
	w.set(cache.Warm)
	w.put(cache.Key{Namespace: "a", Name: "more"}, "{}", "")
	r.begin()
	time.Sleep(100 * time.Millisecond)
	if got := r.value(`SELECT resource_version FROM mirror_resources`); got != before {
		t.Errorf("it is at %s, was at %s", got, before)
	}
	w.set(cache.Live)
	r.settle(w)
	for _, state := range []cache.State{cache.Stale, cache.Forbidden, cache.Live} {
		w.set(state)
		eventually(t, "it is said", func() error {
			if got := r.value(`SELECT state FROM mirror_resources`); got != string(state) {
				return errors.New(got)
			}
			return nil
		})
	}
	w.mu.Lock()
	w.proof = w.proof.Add(proofEvery)
	want := w.proof.UTC().Format(time.RFC3339)
	w.mu.Unlock()
	eventually(t, "the proof is told", func() error {
		if got := r.value(`SELECT to_char(proven_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM mirror_resources`); got != want {
			return errors.New(got)
		}
		return nil
	})
	r.settle(w)
}

// testTakenAway: what a rule takes away, and what is not mirrored any more, is not in the
// files of the database either.
func testTakenAway(t *testing.T, s *postgres.Server) {
	spec := podSpec
	spec.Redact = nil
	w := newWorld(t, spec)
	for i := range 30 {
		w.put(cache.Key{Namespace: "a", Name: fmt.Sprintf("n%d", i)}, `{"app":"a"}`, `,"spec":{"secret":{"a":"hushhush"},"node":"elsewhere"}`)
	}
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	holds := func(text string) bool {
		r.server.Exec("CHECKPOINT")
		return r.server.Holds(text)
	}
	if !holds("hushhush") {
		t.Fatal("the files never held it: the test proves nothing")
	}
	w.copy(podSpec)
	r.settleSwept(w, "hushhush", holds)
	r.mu.Lock()
	r.worlds, r.gone["east/pods"] = nil, true
	r.mu.Unlock()
	eventually(t, "the rows are deleted", func() error {
		if n := r.value(`SELECT (SELECT count(*) FROM mirror_objects) || '/' || (SELECT count(*) FROM mirror_resources)`); n != "0/0" {
			return errors.New(n)
		}
		return nil
	})
	r.settleSwept(nil, "elsewhere", holds)
}

// settleSwept waits until the tables are written anew.
func (r *rig) settleSwept(w *world, text string, holds func(string) bool) {
	r.t.Helper()
	if w != nil {
		eventually(r.t, "the rule is told", func() error {
			if got := r.value(`SELECT rule::text FROM mirror_resources`); !strings.Contains(got, "spec.secret") {
				return errors.New(got)
			}
			return nil
		})
		r.settle(w)
	}
	eventually(r.t, "the files do not hold it", func() error {
		if err := r.tables.Sweep(); err != nil {
			return err
		}
		if holds(text) {
			return errors.New("they do")
		}
		return nil
	})
	if w != nil {
		r.settle(w)
	}
}

// testForget: of a cluster that was forgotten no row stays.
func testForget(t *testing.T, s *postgres.Server) {
	west := podSpec
	west.Cluster = "it's west"
	worlds := []*world{filled(t, 3), newWorld(t, west)}
	worlds[1].put(cache.Key{Name: "x"}, "{}", "")
	r := newRig(t, s, worlds...)
	r.begin()
	for _, w := range worlds {
		r.settle(w)
	}
	r.mu.Lock()
	r.worlds = worlds[:1]
	r.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	if n := r.value(`SELECT count(*)::text FROM mirror_objects`); n != "4" {
		t.Errorf("%s rows: what is not known to be gone is gone", n)
	}
	r.mirror.Forget("it's west")
	eventually(t, "it is forgotten", func() error {
		if n := r.value(`SELECT count(*)::text FROM mirror_objects`); n != "3" {
			return errors.New(n)
		}
		return nil
	})
	r.settle(worlds[0])
}

// testRefused: tables of a newer informerd, or of somebody else, are left alone.
func testRefused(t *testing.T, s *postgres.Server) {
	w := filled(t, 3)
	r := newRig(t, s, w)
	said := func(want string) {
		t.Helper()
		r.begin()
		eventually(t, "it is said", func() error {
			if st := r.mirror.Status(); !strings.Contains(st.Err, want) || st.Commits != 0 {
				return fmt.Errorf("%+v", st)
			}
			return nil
		})
		r.end()
	}
	r.begin()
	r.settle(w)
	r.end()
	w.put(cache.Key{Name: "more"}, "{}", "")
	r.exec(`UPDATE mirror_schema SET version = 9`)
	said("the mirror is of version 9, this one knows 1")
	r.exec(`DROP TABLE mirror_schema`)
	said("there is a table mirror_resources and none mirror_schema")
}

// testNothing: who mirrors nothing has no tables of it.
func testNothing(t *testing.T, s *postgres.Server) {
	r := newRig(t, s)
	r.begin()
	eventually(t, "it has connected", func() error {
		if n := r.value(`SELECT count(*)::text FROM pg_tables WHERE schemaname = current_schema()`); n == "0" {
			return errors.New(n)
		}
		return nil
	})
	time.Sleep(50 * time.Millisecond)
	if n := r.value(`SELECT count(*)::text FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'mirror%'`); n != "0" {
		t.Errorf("%s tables", n)
	}
	if st := r.mirror.Status(); st.Err != "" {
		t.Error(st.Err)
	}
}

// testExecModes: however the driver is told to ask.
func testExecModes(t *testing.T, s *postgres.Server) {
	w := filled(t, 20)
	w.put(cache.Key{Namespace: `\ "`, Name: `{a,b}`}, `{"a\"b":"\\"}`, `,"spec":{"x":"\u0000 \\u0000 {mirror_pods} ' \""}`)
	r := newRig(t, s, w)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		p, err := persist.OpenPostgres(persist.PostgresOptions{URL: r.server.URL() + "&default_query_exec_mode=" + mode, Schema: r.schema, Log: r.log})
		if err != nil {
			t.Fatal(err)
		}
		r.exec(`DROP SCHEMA IF EXISTS ` + r.schema + ` CASCADE`)
		r.mirror = r.newMirror(p)
		for range 2 {
			r.mirror.follow()
			eventually(t, mode, func() error { return r.mirror.write(t.Context()) })
			r.settle(w)
			w.put(cache.Key{Namespace: "a", Name: "n1"}, "{}", "")
			w.drop(cache.Key{Namespace: "a", Name: "n2"})
		}
		r.mirror.close()
		_ = p.Close()
	}
}

// TestRests: while somebody else writes the tables nothing is written, and what changed meanwhile
// is found when that ends, whatever was written.
func TestRests(t *testing.T) {
	t.Parallel()
	w := filled(t, 10)
	r := newRig(t, postgres.Start(t), w)
	r.begin()
	r.settle(w)
	r.rests.Store(true)
	eventually(t, "it rests", func() error {
		if st := r.mirror.Status(); st.Resources != 0 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	before := r.mirror.Status()
	w.drop(cache.Key{Namespace: "a", Name: "n1"})
	w.put(cache.Key{Namespace: "a", Name: "n2"}, `{"app":"b"}`, "")
	time.Sleep(100 * time.Millisecond) // twenty looks
	if st := r.mirror.Status(); st.Commits != before.Commits || st.Failures != 0 {
		t.Errorf("it wrote while it rested: %+v, before %+v", st, before)
	}
	r.rests.Store(false)
	r.settle(w)
	if st := r.mirror.Status(); st.Written != before.Written+1 || st.Deleted != before.Deleted+1 {
		t.Errorf("%+v, before %+v", st, before)
	}
}
