package replica

import (
	"context"
	"errors"
	"slices"
	"time"
	"unique"

	"github.com/informerd/informerd/cache"
)

// mostAhead is how many objects an answer ahead of the snapshot may be made of, and mostAheadBytes
// what they may take: they are in memory a second time, beside those that the snapshot is being
// read into.
const (
	mostAhead      = 10_000
	mostAheadBytes = 64 << 20
)

// errManyAhead ends the search for more than that.
var errManyAhead = errors.New("too many objects to be answered ahead of the snapshot")

// Ahead is a View, warm like the one that is to come, of no more than the objects that q may
// select, while the snapshot of all is still being read: those are found in it by an indexed
// value that q asks for. It is nil where there is nothing to be read ahead, where q asks for
// no such value or for one that very many have, and while another one is being made, which
// takes a processor from the snapshot. Whether it is nil depends on nothing that is not in scope.
// It is good for the one answer to q, as scope sees it; if the snapshot has been read meanwhile,
// it is the View of the Informer.
func (i *Informer) Ahead(ctx context.Context, scope cache.Scope, q cache.Query) *cache.View {
	db, ok := i.factory.options.Snapshots.(cache.Finder)
	pinned := q.Pinned()
	if !ok || len(pinned) == 0 || !i.restoring.Load() || i.View().Readable() {
		return nil
	}
	select {
	case i.factory.aheads <- struct{}{}:
		defer func() { <-i.factory.aheads }()
	default:
		return nil
	}
	v, err := i.readAhead(ctx, db, scope, pinned)
	// What is there by now is newer, or of another history, or by another rule: Apply does not
	// return before the snapshot is read.
	if there := i.View(); there.Readable() {
		return there
	}
	if err != nil { // whoever reads the snapshot as a whole finds out what is wrong
		i.log.Debug("nothing was read ahead of the snapshot", "index", pinned[0].Index, "err", err)
		return nil
	}
	if !i.restoring.Load() {
		return nil
	}
	return v
}

// readAhead holds what it read in a store of its own, which nobody else knows of.
func (i *Informer) readAhead(ctx context.Context, db cache.Finder, scope cache.Scope, pinned []cache.Term) (*cache.View, error) {
	start := time.Now()
	terms := make([]unique.Handle[cache.Term], len(pinned))
	for n, t := range pinned {
		terms[n] = unique.Make(t)
	}
	loaded := cache.NewRestoring()
	defer loaded.Close()
	found, size := 0, 0
	saved, err := db.Find(ctx, i.resource, pinned[0], func(rec cache.Record) error {
		lacks := func(t unique.Handle[cache.Term]) bool { return !slices.Contains(rec.Terms, t) }
		if !scope.Sees(rec.Key) || slices.ContainsFunc(terms, lacks) {
			return nil
		}
		found, size = found+1, size+len(rec.Data)
		if found > mostAhead || size > mostAheadBytes {
			return errManyAhead
		}
		return loaded.Add(rec)
	})
	if err != nil {
		return nil, err
	}
	spec := i.Spec()
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
	defer store.Close() // it stays readable, and keeps nothing for further questions
	if err := store.RestoreFrom(saved, loaded); err != nil {
		return nil, err
	}
	if store.Version() == "" {
		return nil, errors.New("the snapshot does not say what it is complete up to")
	}
	v := &cache.View{
		Spec: spec, State: cache.Warm, Reason: "the rest of the snapshot is being read",
		Since: start, Proof: provenBefore(saved.ProvenAt, start),
	}
	return v.Hold(store), nil
}
