package cache

import (
	"context"
	"slices"

	"github.com/informerd/informerd/cache/scalar"
)

// Reader reads a copy as somebody sees it: what it answers is what it would answer if
// there were no objects beyond its Scope, down to counts, plans, revisions and the number
// of objects that are left of a list. Only versions, and how far the copy is, are those
// of the resource as a whole: the API server tells them, too.
//
// Its methods are those of the same names of Store. Any goroutine may use it.
type Reader struct {
	store *Store
	scope Scope
	owner string
}

// whole is for whoever sees all.
func (s *Store) whole() *Reader { return &Reader{store: s, scope: WholeScope()} }

// For is a Reader for somebody: one reader's lists under way are not ended by those
// of another, and tokens are good for nobody else.
func (r *Reader) For(owner string) *Reader { return &Reader{r.store, r.scope, owner} }

// Scope is what is seen.
func (r *Reader) Scope() Scope { return r.scope }

// Matcher is Store.Matcher.
func (r *Reader) Matcher(q Query) (*Matcher, error) {
	return newMatcher(q, r.scope, r.store.extraction.Load())
}

// Select is Store.Select.
func (r *Reader) Select(ctx context.Context, q Query) (*Result, error) {
	m, err := r.Matcher(q)
	if err != nil {
		return nil, err
	}
	return r.store.selected(ctx, m)
}

// Get is Store.Get.
func (r *Reader) Get(k Key) (*Object, bool) {
	if !r.scope.Sees(k) {
		return nil, false
	}
	return r.store.Get(k)
}

// GetAt is Store.GetAt.
func (r *Reader) GetAt(k Key) (o *Object, version string, revision uint64, ok bool) {
	s, p := r.store, probe(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	version, revision = s.version, s.revisionLocked(r.scope)
	if !r.scope.Sees(k) {
		return nil, version, revision, false
	}
	e, ok := s.contents.tree.Get(p)
	return e.obj, version, revision, ok
}

// Watch is Store.Watch. Events of objects that are not seen are passed over.
func (r *Reader) Watch(from string) (*Subscription, error) { return r.store.watch(from, r.scope) }

// IndexValues is Store.IndexValues.
func (r *Reader) IndexValues(name, prefix string, limit int) ([]IndexValue, string, error) {
	return r.store.indexValues(name, scalar.Prefixed(prefix), r.scope, limit)
}

// IndexValuesAfter is Store.IndexValuesAfter.
func (r *Reader) IndexValuesAfter(name, prefix, after string, limit int) ([]IndexValue, string, error) {
	values := scalar.Prefixed(prefix)
	if after >= prefix {
		values.Low = &scalar.Bound{Text: after, Open: true}
	}
	return r.store.indexValues(name, values, r.scope, limit)
}

// IndexNames are those of the indexes: built-in ones, then the configured ones.
func (r *Reader) IndexNames() []string {
	return slices.Concat(builtinIndexes, r.store.extraction.Load().names)
}

// Len is Store.Len.
func (r *Reader) Len() int {
	objects, _, _ := r.Size()
	return objects
}

// Size is how many objects are seen, and their bytes: as held, and of their JSON
// before compression.
func (r *Reader) Size() (objects int, bytes, rawBytes int64) {
	s := r.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	seen := s.contents.seenBy(r.scope)
	if seen == nil {
		return s.contents.len(), s.contents.bytes, s.contents.rawBytes
	}
	for it := seen.Iterator(); it.HasNext(); {
		o := s.contents.rows[it.Next()]
		bytes += o.held()
		rawBytes += int64(o.size)
	}
	return int(seen.GetCardinality()), bytes, rawBytes
}

// Version is Store.Version.
func (r *Reader) Version() string { return r.store.Version() }

// Revision is Store.Revision of what is seen: changes of what is not leave it alone, and
// it does not grow, it only becomes another.
func (r *Reader) Revision() uint64 {
	s := r.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.contents.seenBy(r.scope) // so that changes are counted from now on
	return s.revisionLocked(r.scope)
}

// Epoch is Store.Epoch.
func (r *Reader) Epoch() string { return r.store.Epoch() }

// Lineage is Store.Lineage.
func (r *Reader) Lineage() string { return r.store.Lineage() }

// Oldest is Store.Oldest.
func (r *Reader) Oldest() string { return r.store.Oldest() }

// WaitVersion is Store.WaitVersion.
func (r *Reader) WaitVersion(ctx context.Context, version string) error {
	return r.store.WaitVersion(ctx, version)
}

// WaitVersionIn is Store.WaitVersionIn.
func (r *Reader) WaitVersionIn(ctx context.Context, namespace, version string) error {
	return r.store.WaitVersionIn(ctx, namespace, version)
}

// Covers is Store.Covers.
func (r *Reader) Covers(namespace string) bool { return r.store.Covers(namespace) }

// Watches is Store.Watches.
func (r *Reader) Watches(namespace string) bool { return r.store.Watches(namespace) }

// Sources is Store.Sources.
func (r *Reader) Sources() []StoreSource { return r.store.Sources() }
