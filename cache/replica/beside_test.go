package replica

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// mirror is Beside that keeps, of each object, the version that it was last told of: as a
// handler does, by polling a Subscription when a save is under way.
type mirror struct {
	t *testing.T

	mu    sync.Mutex // guards all below
	watch *cache.Subscription
	known map[string]string
	dirty map[string]bool
	anew  bool
	saves int
	news  int // calls of SaveAnew
}

func newMirror(t *testing.T) *mirror {
	return &mirror{t: t, known: map[string]string{}, dirty: map[string]bool{}, anew: true}
}

// follow begins to watch a Store with objects.
func (m *mirror) follow(s *cache.Store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	watch, err := s.Watch("")
	if err != nil {
		m.t.Fatal(err)
	}
	m.watch = watch
	for _, o := range s.Holdings("").All() {
		m.noteLocked(o.Key().String(), o.ResourceVersion())
	}
}

func (m *mirror) noteLocked(key, version string) {
	m.known[key] = version
	m.dirty[key] = true
}

func (m *mirror) pollLocked() {
	for m.watch != nil {
		events, err := m.watch.Poll()
		if err != nil {
			m.t.Errorf("Poll() = %v", err)
		}
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			key := e.Object.Key().String()
			m.noteLocked(key, e.Object.ResourceVersion())
			if e.Type == cache.Deleted {
				delete(m.known, key)
			}
		}
	}
}

func (m *mirror) Save(commit func([]cache.LedgerChange) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saves++
	m.pollLocked()
	change := cache.LedgerChange{Name: "mirror", Reset: m.anew}
	for key := range m.dirty {
		if version, ok := m.known[key]; ok {
			change.Put = append(change.Put, cache.LedgerEntry{Key: []byte(key), Value: []byte(version)})
		} else {
			change.Delete = append(change.Delete, []byte(key))
		}
	}
	var changes []cache.LedgerChange
	if change.Reset || len(m.dirty) > 0 {
		changes = append(changes, change)
	}
	err := commit(changes)
	if err == nil {
		m.anew, m.dirty = false, map[string]bool{}
	}
	return err
}

func (m *mirror) SaveAnew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.anew = true
	m.news++
	for key := range m.known {
		m.dirty[key] = true
	}
}

// together is Snapshots that look whether what is saved is never ahead of the ledger.
type together struct {
	*memory
	t *testing.T
}

func (s together) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if err := s.memory.Commit(batches, ledgers); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range batches {
		noted := s.ledgers["mirror"]
		version := b.Saved.ResourceVersions[""]
		for key, rec := range s.records[b.Saved.Spec.Resource] {
			if at, ok := noted[key.String()]; ok && cache.Newer(rec.ResourceVersion, at) {
				s.t.Errorf("%s is saved at %s, and noted at %s", key, rec.ResourceVersion, at)
			}
		}
		for key, at := range noted {
			if rec, ok := s.records[b.Saved.Spec.Resource][parseTestKey(key)]; !cache.Newer(at, version) && (!ok || rec.ResourceVersion != at) {
				s.t.Errorf("%s is noted at %s, and saved at %q of %s", key, at, rec.ResourceVersion, version)
			}
		}
	}
	return nil
}

func parseTestKey(s string) cache.Key {
	for i := range s {
		if s[i] == '/' {
			return cache.Key{Namespace: s[:i], Name: s[i+1:]}
		}
	}
	return cache.Key{Name: s}
}

// TestBesideIsNeverBehind: when a change of the copy is saved, it is saved beside it that
// the change was heard of.
func TestBesideIsNeverBehind(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(21, 22))
	churn(api, rng, 50)
	r := prepareRig(t, api, Options{Snapshots: together{db, t}, SaveInterval: time.Millisecond})
	m := newMirror(t)
	r.SaveBeside(m)
	r.begin()
	r.becomes(t, cache.Live)
	m.follow(r.pods().store())
	saves := func() int { m.mu.Lock(); defer m.mu.Unlock(); return m.saves }
	for range 20 {
		before := saves()
		churn(api, rng, 20)
		if err := r.SaveNow(); err != nil {
			t.Error(err)
		}
		eventually(t, "a save", func() bool { return saves() > before+1 })
	}
	r.equal(t)
	if err := r.stop(); err != nil { // which saves what is left
		t.Fatal(err)
	}
	want := map[string]string{}
	for key, rec := range db.records[fakeSpec.Resource] {
		want[key.String()] = rec.ResourceVersion
	}
	if len(want) != len(api.truth()) || !maps.Equal(db.ledgers["mirror"], want) {
		t.Errorf("%d objects, %d are saved, %d noted: %v, want %v", len(api.truth()), len(want), len(db.ledgers["mirror"]), db.ledgers["mirror"], want)
	}
}

// scripted is Beside that saves what a test says.
type scripted struct {
	mu      sync.Mutex // guards all below
	changes []cache.LedgerChange
	before  func() // is called at the begin of a Save
	calls   int
	errs    []error
	anew    int
}

func (s *scripted) Save(commit func([]cache.LedgerChange) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.before != nil {
		s.before()
	}
	err := commit(s.changes)
	if s.errs = append(s.errs, err); err == nil {
		s.changes = nil
	}
	return err
}

func (s *scripted) SaveAnew() { s.anew++ }

func noteOf(key, value string) []cache.LedgerChange {
	return []cache.LedgerChange{{Name: "notes", Put: []cache.LedgerEntry{{Key: []byte(key), Value: []byte(value)}}}}
}

// TestSavedBeside: before the copies, by itself if they did not change, and not at all if there
// is nothing. The last save has what is left.
func TestSavedBeside(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(23, 24)), 10)
	r := prepareRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
	s := &scripted{changes: noteOf("k", "first")}
	r.SaveBeside(s)
	r.begin()
	r.becomes(t, cache.Live)
	writes := func() [2]int { db.mu.Lock(); defer db.mu.Unlock(); return [2]int{db.commits, db.notes} }
	s.before = func() {
		if _, ok := r.pods().store().TakeChanges(); ok {
			t.Error("what is beside the copies is asked before their changes are taken")
		}
	}
	for n, step := range []struct {
		do        func() error
		note      string // what is to be saved
		writes    [2]int // of copies, and beside them
		lastSaved string
	}{
		{r.save, "first", [2]int{1, 1}, "first"},
		{r.save, "", [2]int{1, 1}, "first"},
		{r.save, "second", [2]int{1, 2}, "second"},
		{r.SaveNow, "", [2]int{1, 2}, "second"},
		{r.SaveNow, "third", [2]int{1, 3}, "third"},
	} {
		if s.changes = nil; step.note != "" {
			s.changes = noteOf("k", step.note)
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := db.ledgers["notes"]["k"]; writes() != step.writes || got != step.lastSaved || s.calls != n+1 {
			t.Errorf("step %d: %d writes, %q is noted, %d calls", n, writes(), got, s.calls)
		}
	}
	if len(db.records[fakeSpec.Resource]) != len(api.truth()) {
		t.Errorf("%d records, want %d", len(db.records[fakeSpec.Resource]), len(api.truth()))
	}
	s.before, s.changes = nil, noteOf("k", "last")
	if err := r.stop(); err != nil || db.ledgers["notes"]["k"] != "last" {
		t.Errorf("at the end: %v, noted %q", err, db.ledgers["notes"]["k"])
	}
}

// TestSaveNowOvertakes: who waits for what is beside the copies does not wait for a commit of
// them, which may be that of a million objects.
func TestSaveNowOvertakes(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(23, 24)), 10)
	r := prepareRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
	s := &scripted{}
	r.SaveBeside(s)
	r.begin()
	r.becomes(t, cache.Live)
	begun, end := make(chan struct{}), make(chan struct{})
	db.committing = sync.OnceFunc(func() { close(begun); <-end })
	saved := make(chan error)
	go func() { saved <- r.save() }()
	<-begun
	s.mu.Lock()
	s.changes = noteOf("k", "overtakes")
	s.mu.Unlock()
	if err := r.SaveNow(); err != nil {
		t.Error(err)
	}
	db.mu.Lock()
	if got := db.ledgers["notes"]["k"]; got != "overtakes" || db.commits != 0 {
		t.Errorf("%q is noted after %d commits", got, db.commits)
	}
	db.mu.Unlock()
	close(end)
	if err := <-saved; err != nil {
		t.Error(err)
	}
}

// TestBesideFails: whoever meets that the file was replaced or damaged, all is saved anew;
// after other errors the same is saved again.
func TestBesideFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		anew int
	}{
		{errors.New("disk full"), 0},
		{fmt.Errorf("commit: %w", cache.ErrReplaced), 1},
		{fmt.Errorf("commit: %w", cache.ErrCorrupt), 1},
		{fmt.Errorf("commit: %w", cache.ErrNoSnapshot), 1},
	} {
		for name, meets := range map[string]func(*rig) error{
			"save":    func(r *rig) error { return r.save() },
			"saveNow": func(r *rig) error { return r.SaveNow() },
		} {
			t.Run(fmt.Sprint(name, c.err), func(t *testing.T) {
				api, db := newFakeAPI(t), newMemory()
				churn(api, rand.New(rand.NewPCG(25, 26)), 30)
				r := prepareRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
				s := &scripted{}
				r.SaveBeside(s)
				r.begin()
				r.becomes(t, cache.Live)
				if err := r.save(); err != nil {
					t.Fatal(err)
				}
				if errors.Is(c.err, cache.ErrReplaced) {
					db.saved, db.records = newMemory().saved, newMemory().records
				}
				db.failing(c.err)
				s.changes = noteOf("k", "v")
				if err := meets(r); !errors.Is(err, c.err) {
					t.Errorf("it returns %v", err)
				}
				if last := s.errs[len(s.errs)-1]; !errors.Is(last, c.err) || s.anew != c.anew {
					t.Errorf("it was told %v, and %d times to save anew", last, s.anew)
				}
				if status := r.SnapshotStatus(); status.Err == "" {
					t.Errorf("the status says nothing: %+v", status)
				}
				db.failing(nil)
				if err := r.save(); err != nil {
					t.Fatal(err)
				}
				if got := db.ledgers["notes"]["k"]; got != "v" || len(db.records[fakeSpec.Resource]) != len(api.truth()) {
					t.Errorf("noted %q, %d records of %d", got, len(db.records[fakeSpec.Resource]), len(api.truth()))
				}
				if status := r.SnapshotStatus(); status.Err != "" {
					t.Errorf("the status says %+v", status)
				}
			})
		}
	}
}

// besideFunc is Beside that does what a function does.
type besideFunc func(commit func([]cache.LedgerChange) error) error

func (f besideFunc) Save(commit func([]cache.LedgerChange) error) error { return f(commit) }
func (besideFunc) SaveAnew()                                            {}

// TestBesideMisbehaves: what does not commit costs no change of the copies, and what commits
// twice does not save them twice.
func TestBesideMisbehaves(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(27, 28)), 30)
	r := prepareRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
	var does besideFunc
	r.SaveBeside(besideFunc(func(commit func([]cache.LedgerChange) error) error { return does(commit) }))
	r.begin()
	r.becomes(t, cache.Live)
	does = func(func([]cache.LedgerChange) error) error { return nil }
	if err := r.save(); !errors.Is(err, errNoCommit) || db.commits != 0 {
		t.Errorf("save() = %v after %d commits", err, db.commits)
	}
	does = func(commit func([]cache.LedgerChange) error) error {
		if err := commit(nil); err != nil {
			t.Error(err)
		}
		return commit(noteOf("k", "v"))
	}
	if err := r.save(); err != nil || db.commits != 1 || len(db.ledgers) != 0 {
		t.Errorf("save() = %v after %d commits, noted %v", err, db.commits, db.ledgers)
	}
	if got, want := len(db.records[fakeSpec.Resource]), len(api.truth()); got != want {
		t.Errorf("%d records, want %d", got, want)
	}
	does = func(commit func([]cache.LedgerChange) error) error { return commit(nil) }
}

// TestSaveNowBesideSave: many at once, each of which finds saved what it noted.
func TestSaveNowBesideSave(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	r := prepareRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	s := &scripted{}
	r.SaveBeside(s)
	r.begin()
	r.becomes(t, cache.Live)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for round := range 25 {
				key, value := strconv.Itoa(n), strconv.Itoa(round)
				s.mu.Lock()
				s.changes = append(s.changes, noteOf(key, value)...)
				s.mu.Unlock()
				if err := r.SaveNow(); err != nil {
					t.Error(err)
				}
				db.mu.Lock()
				if got := db.ledgers["notes"][key]; got != value {
					t.Errorf("%q is saved, want %q", got, value)
				}
				db.mu.Unlock()
			}
		})
	}
	all.Wait()
}

// TestNothingIsSaved: without snapshots what is beside them is taken and dropped.
func TestNothingIsSaved(t *testing.T) {
	r := prepareRig(t, newFakeAPI(t), Options{})
	s := &scripted{changes: noteOf("k", "v")}
	r.SaveBeside(s)
	r.begin()
	r.becomes(t, cache.Live)
	if err := r.SaveNow(); err != nil || s.changes != nil {
		t.Errorf("SaveNow() = %v, %d changes are left", err, len(s.changes))
	}
}
