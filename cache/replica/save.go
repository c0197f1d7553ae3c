package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

// saver is the one writer of snapshots. Disk is never on the path of an event:
// memory is authoritative, and what changed is collected from the stores once
// an interval, however often it changed.
type saver struct {
	committing sync.Mutex // one commit or drop of copies at a time; taken before noting

	noting sync.Mutex // guards beside, and its methods; taken before mu
	beside Beside     // nil if there is nothing

	mu     sync.Mutex // guards status
	status cache.SnapshotStatus
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
	store    *cache.Store
	batch    cache.Batch
}

// save commits what changed in all stores since the last save, in one transaction, after what
// is saved beside them. The order is what the two agree by: changes of the stores are taken
// first, so that Beside is not asked before it can know of them, and committed last.
func (f *Factory) save() error {
	if f.options.Snapshots == nil || f.standsBy() {
		return nil
	}
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	var all []taken
	var batches []cache.Batch
	for _, i := range f.Informers() {
		if t, ok := i.takeBatch(); ok {
			all = append(all, t)
			batches = append(batches, t.batch)
		}
	}
	err := f.commit(batches)
	for _, t := range all {
		if err != nil {
			t.store.GiveBack(t.batch)
			continue
		}
		t.informer.mu.Lock()
		t.informer.snapshot.committed = t.batch.Saved.SavedAt
		t.informer.mu.Unlock()
	}
	f.afterCommit(err)
	if err != nil {
		return fmt.Errorf("commit snapshots: %w", err)
	}
	return f.options.Snapshots.Sweep() // and what the last save could not, or what was erased
}

// standsBy reports whether another replica writes the snapshot. What changes meanwhile waits in
// the stores, as it does while the snapshot is away.
func (f *Factory) standsBy() bool {
	s, ok := f.options.Snapshots.(interface{ IsStandby() bool })
	return ok && s.IsStandby()
}

// saveAllAnew makes the next batch of every store hold all of it: the file was
// replaced, or lost what the changes would have been added to.
func (f *Factory) saveAllAnew() {
	for _, i := range f.Informers() {
		if s := i.store(); s != nil {
			s.SaveAnew()
		}
	}
}

// note counts a commit. One of what is beside the copies does not say that they can be saved.
func (s *saver) note(start time.Time, err error, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.CommitSeconds += time.Since(start).Seconds()
	if err != nil {
		s.status.Failures++
		s.status.Err = err.Error()
		return
	}
	s.status.Commits++
	if all {
		s.status.Err = ""
		s.status.LastCommit = time.Now()
	}
}

// settle is for when there is nothing that was not saved.
func (s *saver) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Err = ""
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
	// A Store that takes over from another one has its objects at once, but the feed that
	// knows the rule they were cut by comes after that. Saved in between, they would be
	// taken for whole by a process that starts under the rule before.
	i.indexing.Lock()
	defer i.indexing.Unlock()
	i.mu.Lock()
	f, uid := i.current, i.origin
	// What was not yet found to be of this cluster, and what is known not to be, is
	// not saved.
	skip := f == nil || i.restored.ClusterUID != "" || i.lost || uid == ""
	i.mu.Unlock()
	if skip || f.spec.Aggregated || !f.synced() {
		return taken{}, false
	}
	// Before the changes: of an older server, and proven earlier, at worst.
	served, view := f.servedBy(), i.View()
	batch, ok := f.store.TakeChanges()
	if f.servedBy() != served {
		f.store.SaveVersions() // noted meanwhile: the next save says so
	}
	if !ok {
		return taken{}, false
	}
	if i.out.Load() { // after the changes: they may be the deletion of what is gone
		return taken{}, false
	}
	// The store may have got other indexes since. Terms are saved under the
	// definitions they were taken with.
	spec := f.spec
	spec.Indexes = batch.Saved.Spec.Indexes
	batch.Saved.Spec = spec
	batch.Saved.ClusterUID, batch.Saved.ServerVersion = uid, served
	batch.Saved.SavedAt, batch.Saved.ProvenAt = time.Now().UTC(), view.Proof.UTC()
	return taken{i, f.store, batch}, true
}

// forget drops the snapshot of a resource. What is not to be kept is erased with the
// next save.
func (f *Factory) forget(r cache.Resource, erase bool) error {
	if f.options.Snapshots == nil {
		return nil
	}
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	drop := f.options.Snapshots.Drop
	if erase {
		drop = f.options.Snapshots.Erase
	}
	if err := drop(r); err != nil && !errors.Is(err, cache.ErrNoSnapshot) {
		return err
	}
	return nil
}

// SnapshotStatus is what is known of the snapshots now.
func (f *Factory) SnapshotStatus() cache.SnapshotStatus {
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	s := f.saver.status
	s.Enabled = f.options.Snapshots != nil
	if !s.Enabled {
		s.Reason = f.options.SnapshotsDisabled
	}
	// What is out of reach is so before there is anything to save.
	if t, ok := f.options.Snapshots.(interface{ Trouble() error }); ok && s.Err == "" {
		if err := t.Trouble(); err != nil {
			s.Err = err.Error()
		}
	}
	if sized, ok := f.options.Snapshots.(interface{ Size() int64 }); ok {
		s.Bytes = sized.Size()
	}
	return s
}
