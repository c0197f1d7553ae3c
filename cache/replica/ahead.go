package replica

import (
	"context"
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
)

// mostAhead is how many objects an answer ahead of the snapshot may be made of: they are in
// memory a second time, beside those that the snapshot is being read into.
const mostAhead = 10_000

// errManyAhead ends the search for more than mostAhead of them.
var errManyAhead = errors.New("too many objects to be answered ahead of the snapshot")

// Ahead is a View, warm like the one that is to come, of no more than the objects that q may
// select, while the snapshot of all is still being read: those are found in it by an indexed
// value that q asks for. It is nil where there is nothing to be read ahead, where q asks for
// no such value or for one that very many have, and while another one is being made, which
// takes a processor from the snapshot. It is good for the one answer to q.
func (i *Informer) Ahead(ctx context.Context, q cache.Query) *cache.View {
	db, ok := i.factory.options.Snapshots.(cache.Finder)
	pinned, asks := q.Pinned()
	if !ok || !asks || !i.restoring.Load() {
		return nil
	}
	select {
	case i.factory.aheads <- struct{}{}:
		defer func() { <-i.factory.aheads }()
	default:
		return nil
	}
	v, err := i.readAhead(ctx, db, pinned)
	if err != nil { // whoever reads the snapshot as a whole finds out what is wrong
		i.log.Debug("nothing was read ahead of the snapshot", "index", pinned.Index, "err", err)
		return nil
	}
	return v
}

// readAhead holds what it read in a store of its own, which nobody else knows of.
func (i *Informer) readAhead(ctx context.Context, db cache.Finder, pinned cache.Term) (*cache.View, error) {
	start, spec := time.Now(), i.Spec()
	loaded := cache.NewRestoring()
	defer loaded.Close()
	found := 0
	saved, err := db.Find(i.resource, pinned, func(rec cache.Record) error {
		if found++; found > mostAhead {
			return errManyAhead
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return loaded.Add(rec)
	})
	if err != nil {
		return nil, err
	}
	if !sameRule(saved.Spec, spec) || !saved.HasTerms(spec.Indexes) {
		return nil, errors.New("the snapshot was made under another rule")
	}
	if uid := i.cluster.status().UID; uid != "" && saved.ClusterUID != "" && uid != saved.ClusterUID {
		return nil, errors.New("the snapshot is of another cluster")
	}
	spec = definedAs(spec, saved)
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		return nil, err
	}
	if err := store.RestoreFrom(saved, loaded); err != nil {
		return nil, err
	}
	v := &cache.View{
		Spec: spec, State: cache.Warm, Reason: "the rest of the snapshot is being read",
		Since: start, Proof: provenBefore(saved.ProvenAt, start),
	}
	return v.Hold(store), nil
}
