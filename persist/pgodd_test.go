package persist

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// incompressible is a text that an index cannot make shorter.
func incompressible(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rng.IntN(26))
	}
	return string(b)
}

// TestPostgresNames: names of any length and of any bytes are saved, and come back in order.
func TestPostgresNames(t *testing.T) {
	p := openPostgres(t, postgres.Start(t))
	b := bulkBatch(pods, 6)
	long := "x" + incompressible(3000)
	for i, name := range []string{long + "a", long + "b", "nul\x00in", "\xff\xfe", "", "zzz"} {
		b.Put[i].Namespace, b.Put[i].Name = "", name
	}
	if err := p.Commit([]cache.Batch{b}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Commit([]cache.Batch{{Saved: savedOf(pods, "2"), Put: b.Put[:1], Delete: []cache.Key{b.Put[1].Key}}}, nil); err != nil {
		t.Fatal(err)
	}
	key := []byte("k\x00" + long)
	if err := p.Note([]cache.LedgerChange{{Name: "l", Put: []cache.LedgerEntry{{Key: key, Value: []byte("v")}}}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Ledger("l", func(e cache.LedgerEntry) error {
		same(t, "key of an entry", string(e.Key), string(key))
		return nil
	}); err != nil {
		t.Error(err)
	}
	got, err := tryLoad(p, pods)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got.Records {
		names = append(names, r.Name)
	}
	same(t, "names", names, []string{"", "nul\x00in", long + "a", "zzz", "\xff\xfe"})
}

// TestPostgresOdd: a resource with something in it that has no place in the tables is left
// out, until it begins anew without that, and the others are saved.
func TestPostgresOdd(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	for _, batches := range [][]cache.Batch{whole(pods, 3), whole(deployments, 3)} {
		if err := p.Commit(batches, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec("ALTER TABLE informerd.objects_e3b0c44298fc1c14 ADD CHECK (length(key) < 500)")
	for what, odd := range map[string]cache.Key{
		"a namespace with a zero byte": {Namespace: "a\x00b", Name: "c"},
		"refused by the database":      {Name: strings.Repeat("x", 600)},
	} {
		t.Run(what, func(t *testing.T) {
			b := cache.Batch{Saved: savedOf(pods, "2"), Put: bulkBatch(pods, 1).Put}
			b.Put[0].Key = odd
			next := cache.Batch{Saved: savedOf(deployments, "2")}
			if err := p.Commit([]cache.Batch{next, b}, nil); err != nil {
				t.Fatal(err)
			}
			if got, err := tryLoad(p, deployments); err != nil || len(got.Records) != 3 || got.Saved.ResourceVersions[""] != "2" {
				t.Errorf("%d others at %v, %v", len(got.Records), got.Saved.ResourceVersions, err)
			}
			for range 2 { // what comes after is taken, and not saved either
				if _, err := tryLoad(p, pods); !errors.Is(err, cache.ErrNoSnapshot) {
					t.Errorf("Load() = %v", err)
				}
				if err := p.Commit(empty(pods, "3"), nil); err != nil {
					t.Error(err)
				}
			}
			if err := p.Commit(whole(pods, 3), nil); err != nil {
				t.Fatal(err)
			}
			if got, err := tryLoad(p, pods); err != nil || len(got.Records) != 3 {
				t.Errorf("%d records, %v", len(got.Records), err)
			}
		})
	}
	strange := pods
	strange.GVR.Resource = "po\x00ds"
	if err := p.Commit([]cache.Batch{bulkBatch(strange, 1), {Saved: savedOf(deployments, "4")}}, nil); err != nil {
		t.Errorf("a resource with a zero byte stops all: %v", err)
	}
}

// TestPostgresFirstNote: a first change of a ledger that fails leaves nothing that the next
// could not be added to.
func TestPostgresFirstNote(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s, func(o *PostgresOptions) { o.patience = time.Second })
	if _, err := p.Ledgers(); err != nil {
		t.Fatal(err)
	}
	note := func() error {
		return p.Note([]cache.LedgerChange{{Name: "l", Put: []cache.LedgerEntry{{Key: []byte("k")}}}})
	}
	letGo := hold(t, s, "LOCK TABLE informerd.entries IN ACCESS EXCLUSIVE MODE")
	for range 2 {
		if err := note(); !errors.Is(err, cache.ErrAway) || errors.Is(err, cache.ErrCorrupt) {
			t.Errorf("Note() = %v", err)
		}
	}
	letGo()
	eventually(t, "it is noted", func() bool {
		err := note()
		if errors.Is(err, cache.ErrCorrupt) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// TestPostgresLeftObjects: objects whose resource was deleted by hand hold up no save.
func TestPostgresLeftObjects(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s)
	b := bulkBatch(pods, 5)
	b.Saved.Dictionaries = map[uint32][]byte{1: []byte("one")}
	for range 2 {
		if err := p.Commit([]cache.Batch{b}, nil); err != nil {
			t.Fatal(err)
		}
		s.Exec("DELETE FROM informerd.resources")
	}
	if err := p.Commit([]cache.Batch{b}, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := tryLoad(p, pods); err != nil {
		t.Error(n, err)
	}
}

// TestPostgresOthersTables: tables of somebody else, of the same names, are left alone.
func TestPostgresOthersTables(t *testing.T) {
	s := postgres.Start(t)
	s.Exec("CREATE SCHEMA shared; CREATE TABLE shared.entries (id integer); INSERT INTO shared.entries VALUES (1), (2)")
	p := openPostgres(t, s, func(o *PostgresOptions) { o.Schema = "shared" })
	if _, err := p.Saved(); !errors.Is(err, cache.ErrAway) || !strings.Contains(err.Error(), "the table entries has no column ledger") {
		t.Errorf("Saved() = %v", err)
	}
	s.Exec("DO $$ BEGIN IF (SELECT count(*) FROM shared.entries) <> 2 THEN RAISE 'they are gone'; END IF; END $$")
}

// TestPostgresLockedTable: a table that somebody has locked keeps nobody from another.
func TestPostgresLockedTable(t *testing.T) {
	s := postgres.Start(t)
	p := openPostgres(t, s, func(o *PostgresOptions) { o.patience = time.Second })
	one, other := bulkBatch(pods, 5), bulkBatch(pods, 5)
	other.Saved.Spec.Resource.Cluster = "other"
	if err := p.Commit([]cache.Batch{one, other}, nil); err != nil {
		t.Fatal(err)
	}
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), p.in(`LOCK TABLE {`+objectsTable("")+`} IN ACCESS EXCLUSIVE MODE`)); err != nil {
		t.Fatal(err)
	}
	if _, err := tryLoad(p, pods); !errors.Is(err, cache.ErrAway) {
		t.Errorf("the locked one: %v", err)
	}
	if _, err := tryLoad(p, other.Saved.Spec.Resource); err != nil {
		t.Errorf("another: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
