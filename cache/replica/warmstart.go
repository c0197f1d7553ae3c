package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/informerd/informerd/cache"
)

// restore fills the store from the snapshot, if there is one that fits. It never
// fails: a snapshot that does not fit is dropped and the resource starts cold. So it does
// where the snapshot is out of reach, which says nothing of what is saved: that stays.
func (i *Informer) restore() {
	db := i.factory.options.Snapshots
	if db == nil || i.Spec().Aggregated {
		return
	}
	i.restoring.Store(true)
	defer func() {
		i.settle() // what is there is answered from what is there
		i.restoring.Store(false)
	}()
	i.factory.loads <- struct{}{}
	defer func() { <-i.factory.loads }()
	start := time.Now()
	spec := i.Spec()
	saved, loaded, err := load(db, i.resource)
	defer loaded.Close()
	switch {
	case errors.Is(err, cache.ErrNoSnapshot):
		return
	case errors.Is(err, cache.ErrAway):
		i.cluster.sayOnce(i.log, "the snapshot cannot be read now, starting cold", err.Error())
		return
	case err != nil:
		i.dropSnapshot(err.Error())
		return
	case !sameRule(saved.Spec, spec):
		i.dropSnapshot("it was made under another rule")
		return
	}
	f := i.feedNow()
	if err := f.store.RestoreFrom(saved, loaded); err != nil {
		i.dropSnapshot(err.Error())
		i.empty(f)
		return
	}
	under := definedAs(spec, saved)
	i.mu.Lock()
	i.current = &feed{informer: i, spec: under, store: f.store, history: f.history, served: saved.ServerVersion}
	i.snapshot.committed = saved.SavedAt
	i.restored, i.restoredProof = saved, provenBefore(saved.ProvenAt, start)
	i.mu.Unlock()
	i.log.Debug("snapshot loaded", "objects", saved.Objects, "resourceVersion", f.store.Version(), "duration", time.Since(start))
}

// definedAs is spec under the definition that a snapshot was made under: a copy of another
// definition answers until one of the present one takes over.
func definedAs(spec cache.Spec, saved cache.Saved) cache.Spec {
	spec.CRDUID, spec.CRDGeneration = saved.Spec.CRDUID, saved.Spec.CRDGeneration
	return spec
}

// provenBefore is a proof of another process; zero if its clock was ahead of this
// one's, since nobody knows then how old it is.
func provenBefore(proof, now time.Time) time.Time {
	if proof.After(now) {
		return time.Time{}
	}
	return proof
}

// restoredStanding is that of sources whose objects a snapshot held.
func (i *Informer) restoredStanding() standing {
	i.mu.Lock()
	defer i.mu.Unlock()
	return standing{held: true, proof: i.restoredProof}
}

func load(db cache.Snapshots, r cache.Resource) (cache.Saved, *cache.Restoring, error) {
	loaded := cache.NewRestoring()
	saved, err := db.Load(r, func(rec cache.Record) error {
		if err := loaded.Add(rec); err != nil {
			return fmt.Errorf("restore %s: %w", r, err)
		}
		return nil
	})
	return saved, loaded, err
}

// empty puts an empty store in the place of one that holds half a snapshot. Nobody
// has seen that.
func (i *Informer) empty(f *feed) {
	i.indexing.Lock()
	defer i.indexing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	store, err := i.factory.newStore(i.specOfLocked(f))
	if err != nil {
		i.failure = err // it was made once, so it is not reached
		return
	}
	f.store.Close()
	i.current = &feed{informer: i, spec: f.spec, store: store, history: f.history}
}

// checkIdentity says that what was restored needs a successor if it is of another
// cluster. Another version of its API server is found out by the sources: equal
// resourceVersions do not mean equal bytes across an upgrade, so that everything is
// listed then, behind the copy.
func (i *Informer) checkIdentity() *succession {
	now := i.cluster.status()
	i.mu.Lock()
	saved := i.restored
	i.restored, i.origin = cache.Saved{}, now.UID
	i.mu.Unlock()
	if saved.ClusterUID != "" && saved.ClusterUID != now.UID {
		return &succession{reason: fmt.Sprintf("it is of another cluster: identity %s, not %s", saved.ClusterUID, now.UID), history: true, foreign: true}
	}
	return nil
}

// dropSnapshot forgets the snapshot. What is wrong with one is said of it; what
// concerns a cluster is said once.
func (i *Informer) dropSnapshot(reason string) {
	i.mu.Lock()
	i.snapshot.drops++
	i.snapshot.reason = reason
	i.snapshot.committed = time.Time{}
	i.mu.Unlock()
	i.cluster.sayOnce(i.log, "snapshot dropped", reason)
	if err := i.factory.forget(i.resource, true); err != nil {
		i.log.Warn("cannot delete the dropped snapshot", "err", err)
	}
}
