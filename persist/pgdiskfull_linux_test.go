package persist

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// diskMegabytes hold an empty database and the two segments of its log that there are, and
// what the test saves.
const diskMegabytes = 150

// TestPostgresDiskFull: where the disk of the database is full nothing is saved, and it is said
// why. What was saved can be loaded all the while, whole and of one version, and with room
// made, saving goes on; also when the server did not survive that its log could not grow.
func TestPostgresDiskFull(t *testing.T) {
	s := postgres.StartOnDisk(t, diskMegabytes)
	p := openPostgres(t, s)
	if err := p.Commit([]cache.Batch{bulkBatch(pods, 500)}, nil); err != nil {
		t.Fatal(err)
	}
	saved := 1 // the version of the latest commit that succeeded
	isSaved := func(p *Postgres) error {
		got, err := tryLoad(p, pods)
		if err != nil {
			return err
		}
		if v := got.Saved.ResourceVersions[""]; v != fmt.Sprint(saved) || len(got.Records) != 500 {
			return fmt.Errorf("%d objects of version %s, want 500 of version %d", len(got.Records), v, saved)
		}
		changed := 0
		for _, r := range got.Records {
			if strings.HasSuffix(string(r.Data), padding(saved)) {
				changed++
			}
		}
		if saved > 1 && changed != 100 {
			return fmt.Errorf("%d of 100 objects are of version %d", changed, saved)
		}
		return nil
	}
	change := func() error {
		b := cache.Batch{Saved: savedOf(pods, fmt.Sprint(saved+1)), Put: bulk(500)[:100]}
		for i := range b.Put {
			b.Put[i].Data = []byte(incompressible(60<<10) + padding(saved+1))
		}
		err := p.Commit([]cache.Batch{b}, nil)
		if err == nil {
			saved++
		}
		return err
	}

	makeRoom := s.Fill()
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = change()
	}
	if !errors.Is(err, cache.ErrAway) || !strings.Contains(err.Error(), "its disk is full") {
		t.Fatalf("Commit() = %v, want an error about the disk", err)
	}
	if err := isSaved(p); err != nil {
		t.Errorf("while the disk is full: %v", err)
	}
	makeRoom()
	eventually(t, "saving goes on", func() bool { return change() == nil })
	if err := isSaved(p); err != nil {
		t.Errorf("with room made: %v", err)
	}

	makeRoom = s.Fill()
	fillLog(t, s)
	if err := change(); !errors.Is(err, cache.ErrAway) {
		t.Errorf("Commit() = %v without a log, want %v", err, cache.ErrAway)
	}
	makeRoom()
	eventually(t, "saving goes on after the server has come back", func() bool {
		if !s.Running() { // it may end only now
			s.Up()
		}
		return change() == nil
	})
	for _, p := range []*Postgres{p, openPostgres(t, s)} {
		if err := isSaved(p); err != nil {
			t.Errorf("after the server has come back: %v", err)
		}
	}
}

// padding ends the data of what was saved with a version.
func padding(version int) string { return fmt.Sprintf(" of version %d", version) }

// fillLog writes to the log of a server whose disk is full until it does not survive that.
func fillLog(t *testing.T, s *postgres.Server) {
	t.Helper()
	for range 1000 {
		if s.Try("SELECT pg_logical_emit_message(false, 'test', repeat('x', 500000))") != nil {
			return
		}
	}
	t.Fatal("the log of the server grows on a full disk")
}
