package cache

import (
	"errors"
	"fmt"
	"time"
)

// restore fills the store from the snapshot, if there is one that fits. It never
// fails: a snapshot that does not fit is dropped and the resource starts cold.
func (i *Informer) restore() {
	db := i.factory.options.Snapshots
	if db == nil || i.Spec().Aggregated {
		return
	}
	i.factory.loads <- struct{}{}
	defer func() { <-i.factory.loads }()
	start := time.Now()
	saved, records, err := load(db, i.resource)
	switch {
	case errors.Is(err, ErrNoSnapshot):
		return
	case err != nil:
		i.dropSnapshot(err.Error())
		return
	case !sameScope(saved.Spec, i.Spec()):
		i.dropSnapshot("it was made under another rule or definition")
		return
	}
	store := i.Store()
	if err := store.Restore(saved, records); err != nil {
		i.dropSnapshot(err.Error())
		i.replaceStore()
		return
	}
	i.mu.Lock()
	i.snapshot.committed, i.contact = saved.SavedAt, saved.SavedAt
	i.restored = saved
	i.mu.Unlock()
	i.log.Debug("snapshot loaded", "objects", len(records), "resourceVersion", store.Version(), "duration", time.Since(start))
}

func load(db Snapshots, r Resource) (Saved, []Record, error) {
	var records []Record
	saved, err := db.Load(r, func(rec Record) error {
		records = append(records, rec)
		return nil
	})
	return saved, records, err
}

// checkIdentity drops what was restored if it is not of this cluster, or was
// written by another version of its API server: equal resourceVersions do not
// mean equal bytes across an upgrade, which may add defaults or convert.
func (i *Informer) checkIdentity() {
	now := i.cluster.status()
	i.mu.Lock()
	saved := i.restored
	i.restored, i.origin = Saved{}, origin{now.UID, now.Version}
	i.mu.Unlock()
	if saved.ClusterUID == "" {
		return
	}
	switch {
	case saved.ClusterUID != now.UID:
		i.startOver(fmt.Sprintf("it is of another cluster: identity %s, not %s", saved.ClusterUID, now.UID))
	case saved.ServerVersion != now.Version:
		i.startOver(fmt.Sprintf("it was made with API server %s, which is now %s", saved.ServerVersion, now.Version))
	}
}

// startOver throws away copy and snapshot: the next sync is a cold one. The copy
// goes first, or what changed in it would be saved to a snapshot that is not
// there any more.
func (i *Informer) startOver(reason string) {
	i.replaceStore()
	i.settle()
	i.dropSnapshot(reason)
}

// replaceStore puts an empty store in the place of the old one, which is closed.
func (i *Informer) replaceStore() {
	now := i.cluster.status()
	i.mu.Lock()
	i.origin = origin{now.UID, now.Version}
	old := i.store
	i.store, i.failure = NewStore(i.spec, StoreOptions{})
	i.sources = nil
	i.mu.Unlock()
	old.Close()
}

// dropSnapshot forgets the snapshot and says so once.
func (i *Informer) dropSnapshot(reason string) {
	i.mu.Lock()
	i.snapshot.drops++
	i.snapshot.reason = reason
	i.snapshot.committed = time.Time{}
	i.mu.Unlock()
	i.log.Warn("snapshot dropped, starting cold", "reason", reason)
	if err := i.factory.forget(i.resource); err != nil {
		i.log.Warn("cannot delete the dropped snapshot", "err", err)
	}
}
