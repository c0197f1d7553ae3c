package replica

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestCommitFails: what could not be saved is saved later.
func TestCommitFails(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	db.fail = errors.New("disk full")
	rng := rand.New(rand.NewPCG(11, 12))
	churn(api, rng, 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	r.becomes(t, cache.Live)
	eventually(t, "a failed commit", func() bool { return r.SnapshotStatus().Failures > 0 })
	churn(api, rng, 50)
	r.equal(t)
	db.mu.Lock()
	db.fail = nil
	db.mu.Unlock()
	eventually(t, "a commit", func() bool { return r.SnapshotStatus().Commits > 0 && r.SnapshotStatus().Err == "" })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	api.set(func(f *fakeAPI) { f.requests = nil })
	again := startRig(t, api, Options{Snapshots: db})
	again.becomes(t, cache.Live)
	again.equal(t)
	if n := api.count("list") + api.count("watchlist"); n != 0 {
		t.Errorf("%d lists, want none", n)
	}
}

// distant is Snapshots that can be out of reach.
type distant struct {
	*memory
	away atomic.Bool
}

func (d *distant) trouble() error {
	if d.away.Load() {
		return fmt.Errorf("%w: no route", cache.ErrAway)
	}
	return nil
}

func (d *distant) Trouble() error { return d.trouble() }

func (d *distant) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	if err := d.trouble(); err != nil {
		_, _ = d.memory.Load(r, yield) // it is noticed at the end
		return cache.Saved{}, err
	}
	return d.memory.Load(r, yield)
}

func (d *distant) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if err := d.trouble(); err != nil {
		return err
	}
	return d.memory.Commit(batches, ledgers)
}

func (d *distant) Drop(cache.Resource) error { return errors.New("what was out of reach is dropped") }

func (d *distant) Erase(r cache.Resource) error { return d.Drop(r) }

// TestSnapshotAway: a snapshot that is out of reach at the start stays as it is: the start is
// cold, it is said, and the next one is warm.
func TestSnapshotAway(t *testing.T) {
	api, db := newFakeAPI(t), &distant{memory: newMemory()}
	rng := rand.New(rand.NewPCG(19, 20))
	churn(api, rng, 50)
	first := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	first.becomes(t, cache.Live)
	eventually(t, "a commit", func() bool { return first.SnapshotStatus().Commits > 0 })
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	saved := len(db.records[fakeSpec.Resource])
	db.away.Store(true)
	second := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	if s := second.SnapshotStatus(); !strings.Contains(s.Err, "no route") {
		t.Errorf("it is not said: %+v", s)
	}
	second.becomes(t, cache.Live)
	second.equal(t)
	if err := second.stop(); !errors.Is(err, cache.ErrAway) {
		t.Errorf("stop() = %v", err)
	}
	if n := len(db.records[fakeSpec.Resource]); n != saved || n == 0 {
		t.Fatalf("%d records, %d were saved", n, saved)
	}
	db.away.Store(false)
	api.set(func(f *fakeAPI) { f.requests = nil })
	third := startRig(t, api, Options{Snapshots: db})
	third.becomes(t, cache.Live)
	third.equal(t)
	if n := api.count("list") + api.count("watchlist"); n != 0 {
		t.Errorf("%d lists, want none", n)
	}
}

// TestSnapshotLost: when the file was replaced under a running informerd, all is
// saved anew.
func TestSnapshotLost(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(17, 18))
	churn(api, rng, 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	r.becomes(t, cache.Live)
	eventually(t, "a commit", func() bool { return r.SnapshotStatus().Commits > 0 })
	if err := db.Drop(fakeSpec.Resource); err != nil {
		t.Fatal(err)
	}
	churn(api, rng, 50)
	r.equal(t)
	eventually(t, "everything to be saved", func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return len(db.records[fakeSpec.Resource]) == len(api.truth())
	})
}

// TestSnapshotReplaced: when the file was replaced by an empty one, what does not
// change is saved anew, too.
func TestSnapshotReplaced(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(17, 18)), 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
	r.becomes(t, cache.Live)
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	db.saved, db.records = newMemory().saved, newMemory().records
	db.fail = fmt.Errorf("commit: %w", cache.ErrReplaced)
	api.put(cache.Key{Namespace: "team-a", Name: "one"}, "v1")
	r.equal(t)
	if err := r.save(); !errors.Is(err, cache.ErrReplaced) {
		t.Fatalf("save() = %v, want ErrReplaced", err)
	}
	db.fail = nil
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	if got, want := len(db.records[fakeSpec.Resource]), len(api.truth()); got != want {
		t.Errorf("%d records are saved, want %d", got, want)
	}
}

// TestSavedUnderItsIndexes: terms are saved under the definitions they were taken
// with, although the informer has not adopted them yet.
func TestSavedUnderItsIndexes(t *testing.T) {
	api := newFakeAPI(t)
	api.put(cache.Key{Namespace: "team-a", Name: "a"}, "v1")
	r := startRig(t, api, Options{Snapshots: newMemory(), SaveInterval: time.Hour})
	r.becomes(t, cache.Live)
	indexes := map[string]string{"value": "spec.value"}
	if err := r.pods().store().SetIndexes(indexes); err != nil {
		t.Fatal(err)
	}
	taken, ok := r.pods().takeBatch()
	if got := taken.batch.Saved.Spec; !ok || !maps.Equal(got.Indexes, indexes) || got.Kind != "Pod" {
		t.Errorf("saved under %+v (%v), want the indexes %v", got, ok, indexes)
	}
}

// TestNothingSavedOfDropped: a save that waits while a snapshot is dropped finds
// nothing of its resource to add to it.
func TestNothingSavedOfDropped(t *testing.T) {
	for name, drop := range map[string]func(*rig) error{
		"gone": func(r *rig) error { return r.Apply("c", nil) },
		"other history": func(r *rig) error {
			r.pods().begin(&succession{reason: "it is a test", history: true}, r.pods().feedNow())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, db := newFakeAPI(t), newMemory()
			api.put(cache.Key{Namespace: "team-a", Name: "saved"}, "v1")
			r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
			r.becomes(t, cache.Live)
			if err := r.save(); err != nil {
				t.Fatal(err)
			}
			api.put(cache.Key{Namespace: "team-a", Name: "changed since"}, "v1")
			r.equal(t)
			dropped := 0
			pods := r.pods()
			db.dropping = func(cache.Resource) {
				dropped++
				if left, ok := pods.takeBatch(); ok {
					t.Errorf("something to save, %d records", len(left.batch.Put))
				}
			}
			if err := drop(r); err != nil {
				t.Fatal(err)
			}
			if dropped != 1 {
				t.Errorf("dropped %d times", dropped)
			}
		})
	}
}

// TestSavedVersionOfServer: a server's version that is noted while a batch is taken is
// saved by the next one at the latest, though nothing else changes.
func TestSavedVersionOfServer(t *testing.T) {
	r := startRig(t, newFakeAPI(t), Options{Snapshots: newMemory(), SaveInterval: time.Hour})
	r.becomes(t, cache.Live)
	pods := r.pods()
	noted := pods.feedNow().sources[0]
	for n := range 2_000 {
		version := fmt.Sprintf("v1.%d.0", n)
		var saved string
		var noting sync.WaitGroup
		noting.Go(func() { noted.servedFrom(version) })
		for range 2 {
			if taken, ok := pods.takeBatch(); ok {
				saved = taken.batch.Saved.ServerVersion
			}
		}
		noting.Wait()
		for {
			taken, ok := pods.takeBatch()
			if !ok {
				break
			}
			saved = taken.batch.Saved.ServerVersion
		}
		if saved != version {
			t.Fatalf("saved as of %q, which was noted as %q", saved, version)
		}
	}
}

// TestNotForgotten: whoever left a resource out is told that its snapshot could not be deleted.
func TestNotForgotten(t *testing.T) {
	var told atomic.Int64
	r := startRig(t, newFakeAPI(t), Options{Snapshots: &distant{memory: newMemory()}, NotForgotten: func() { told.Add(1) }})
	r.becomes(t, cache.Live)
	left := fakeSpec
	left.Watch = false
	if err := r.Apply(left.Cluster, []cache.Spec{left}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "word of it", func() bool { return told.Load() == 1 })
}
