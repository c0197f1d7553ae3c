package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// SnapshotStatus is what is known of the snapshots as a whole.
type SnapshotStatus struct {
	Enabled       bool
	Reason        string // why not enabled
	Err           string // of the last commit, if it failed
	LastCommit    time.Time
	Commits       uint64
	Failures      uint64
	CommitSeconds float64 // spent in all commits
	Bytes         int64   // size of the file, 0 if unknown
}

// saver is the one writer of snapshots. Disk is never on the path of an event:
// memory is authoritative, and what changed is collected from the stores once
// an interval, however often it changed.
type saver struct {
	committing sync.Mutex // one commit or drop at a time; taken before mu

	mu     sync.Mutex // guards status
	status SnapshotStatus
}

// saveLoop saves once an interval until ctx ends.
func (f *Factory) saveLoop(ctx context.Context) {
	if f.options.Snapshots == nil {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(f.options.SaveInterval)
	defer tick.Stop()
	var failing bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := f.save()
		if err != nil && !failing {
			f.log.Error("cannot save snapshots, serving on from memory and trying again", "err", err)
		}
		if err == nil && failing {
			f.log.Info("snapshots are saved again")
		}
		failing = err != nil
		if failing && !sleep(ctx, 10*f.options.SaveInterval) {
			return
		}
	}
}

// taken is a batch with the store to give it back to if it cannot be committed.
type taken struct {
	informer *Informer
	store    *Store
	batch    Batch
}

// save commits what changed in all stores since the last save, in one
// transaction.
func (f *Factory) save() error {
	if f.options.Snapshots == nil {
		return nil
	}
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	var all []taken
	var batches []Batch
	for _, i := range f.Informers() {
		if t, ok := i.takeBatch(); ok {
			all = append(all, t)
			batches = append(batches, t.batch)
		}
	}
	if len(batches) == 0 {
		return nil
	}
	start := time.Now()
	err := f.options.Snapshots.Commit(batches)
	f.saver.note(start, err)
	lost := errors.Is(err, ErrNoSnapshot) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrReplaced)
	for _, t := range all {
		if err != nil {
			t.store.GiveBack(t.batch)
			continue
		}
		t.informer.mu.Lock()
		t.informer.snapshot.committed = t.batch.Saved.SavedAt
		t.informer.mu.Unlock()
	}
	if lost {
		f.saveAllAnew()
	}
	if err != nil {
		return fmt.Errorf("commit snapshots: %w", err)
	}
	return nil
}

// saveAllAnew makes the next batch of every store hold all of it: the file was
// replaced, or lost what the changes would have been added to.
func (f *Factory) saveAllAnew() {
	for _, i := range f.Informers() {
		if s := i.Store(); s != nil {
			s.saveAnew()
		}
	}
}

func (s *saver) note(start time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.CommitSeconds += time.Since(start).Seconds()
	if err != nil {
		s.status.Failures++
		s.status.Err = err.Error()
		return
	}
	s.status.Commits++
	s.status.Err = ""
	s.status.LastCommit = time.Now()
}

// takeBatch collects what is to be saved of one informer. A resource of an
// aggregated API server is not saved, since it cannot be resumed; neither is
// one whose snapshot was not yet found to be of this cluster.
func (i *Informer) takeBatch() (taken, bool) {
	select {
	case <-i.cluster.identified:
	default:
		return taken{}, false
	}
	i.mu.Lock()
	store, spec := i.store, i.spec
	checked := i.restored.ClusterUID == ""
	of := origin{i.origin.uid, i.servedLocked()} // before the changes: older at worst
	i.mu.Unlock()
	if store == nil || spec.Aggregated || !checked || of.uid == "" || !i.synced() {
		return taken{}, false
	}
	batch, ok := store.TakeChanges()
	if !ok {
		return taken{}, false
	}
	// The store may have got other indexes since. Terms are saved under the
	// definitions they were taken with.
	spec.Indexes = batch.Saved.Spec.Indexes
	batch.Saved.Spec = spec
	batch.Saved.ClusterUID, batch.Saved.ServerVersion = of.uid, of.version
	batch.Saved.SavedAt = time.Now().UTC()
	return taken{i, store, batch}, true
}

// synced reports whether every source that may be read has delivered its
// objects. Half of a resource is never saved.
func (i *Informer) synced() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.sources {
		if h := s.get(); !h.synced && !h.forbidden {
			return false
		}
	}
	return len(i.sources) > 0
}

// forget drops the snapshot of a resource.
func (f *Factory) forget(r Resource) error {
	if f.options.Snapshots == nil {
		return nil
	}
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	if err := f.options.Snapshots.Drop(r); err != nil && !errors.Is(err, ErrNoSnapshot) {
		return err
	}
	return nil
}

// SnapshotStatus is what is known of the snapshots now.
func (f *Factory) SnapshotStatus() SnapshotStatus {
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	s := f.saver.status
	s.Enabled = f.options.Snapshots != nil
	if !s.Enabled {
		s.Reason = f.options.SnapshotsDisabled
	}
	if sized, ok := f.options.Snapshots.(interface{ Size() int64 }); ok {
		s.Bytes = sized.Size()
	}
	return s
}
