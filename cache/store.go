package cache

import (
	"crypto/rand"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Store holds the objects of one resource of one cluster, indexed, with the
// resourceVersion they are complete up to.
//
// Any goroutine may read. Readers share the Objects they are given, which are
// immutable, and every answer is of one version: objects, indexes, order,
// version and events change together. Only the informer writes. No lock is held
// while objects are matched, unpacked or compressed.
type Store struct {
	epoch   string
	opts    StoreOptions
	packing packing

	extraction  atomic.Pointer[extraction] // changed under mu
	columnRules atomic.Pointer[columnRules]
	forerunner  atomic.Pointer[Store] // of a Successor that nothing can be asked of yet
	lends       bool                  // the packed JSON of the forerunner may be used
	filter      presentFilter
	outdated    atomic.Uint64
	unextracted atomic.Uint64
	subscribers atomic.Int64
	proofs      atomic.Uint64 // how often the copy was proven current
	notify      notifier
	pager       *Pager[Result] // of Results without their objects

	// writing serializes writers. Who holds it may read what mu guards, since
	// nobody else changes it; large changes are prepared under it alone. It is
	// taken before mu.
	writing sync.Mutex

	trainings, repacked atomic.Uint64 // dictionaries after the first, objects packed anew

	mu          sync.RWMutex // guards all below
	contents    *contents
	sources     map[string]*progress
	version     string // the highest of the sources'
	lineage     string
	revision    uint64
	ring        ring
	gaps        gaps
	dirty       changes
	repackedFor *dictionary // all objects were packed with, or are best left plain
	lastEvent   time.Time
	events      uint64
	closed      bool

	copying sync.Mutex // guards copied, and making copies; taken after mu
	copied  *tree      // a copy of contents.tree, nil after a change
}

// StoreOptions bound the memory of a Store beside its objects.
type StoreOptions struct {
	// Cursors is how many paged lists of one reader may be under way; default 256.
	// Those of all together may be 16 times as many.
	Cursors int
	// CursorAge is how long a paged list may rest; default 5 minutes.
	CursorAge time.Duration
	// CursorObjects bounds the objects that all of them refer to; default 2
	// million.
	CursorObjects int
	// Sound, if it is set, is asked of each object that is decoded whether its JSON, as it is
	// kept, shows at a glance that nothing is wrong with it. Objects keep the answer, so that
	// who asks for the health of all need not unpack all. It must not depend on anything
	// else, nor keep the JSON.
	Sound func(json []byte) bool
	// Alike counts the Store's objects beside those of the same resource in other clusters;
	// nil if there are no others.
	Alike *Alike
}

func (o StoreOptions) withDefaults() StoreOptions {
	if o.Cursors <= 0 {
		o.Cursors = 256
	}
	if o.CursorAge <= 0 {
		o.CursorAge = 5 * time.Minute
	}
	if o.CursorObjects <= 0 {
		o.CursorObjects = 2_000_000
	}
	return o
}

// StoreStats are counts of one moment.
type StoreStats struct {
	Objects     int
	Bytes       int64 // JSON, identity and terms as held
	RawBytes    int64 // JSON before compression
	Unextracted uint64
	// Outdated are events and lists refused because they were read under a Spec
	// that is not the present one any more.
	Outdated uint64
	Terms    int // different indexed values
	// ColumnBytes is what is kept of objects, besides them, for questions that are asked
	// again and again.
	ColumnBytes int64
	// Dictionaries that objects are compressed with now; how often one was
	// trained since the start, but for the first list, and how many objects were
	// compressed anew.
	Dictionaries        int
	Trainings, Repacked uint64
	// Templates are objects as they were, which siblings of theirs are held beside.
	Templates   int
	RingEvents  int
	LastEvent   time.Time
	Events      uint64
	Subscribers int
}

// NewStore returns an empty Store that waits for its first Replace. It returns
// an *InvalidError for paths and globs in spec that cannot be used.
func NewStore(spec Spec, opts StoreOptions) (*Store, error) {
	e, err := compileExtraction(spec)
	if err != nil {
		return nil, err
	}
	rules, err := spec.Columns.compile()
	if err != nil {
		return nil, err
	}
	s := &Store{
		epoch:   rand.Text(),
		opts:    opts.withDefaults(),
		lineage: rand.Text(),
		sources: map[string]*progress{"": {}},
	}
	s.columnRules.Store(rules)
	s.contents = s.newContents(e)
	s.filter = presentFilter{s}
	s.packing.cold.Store(true)
	s.packing.families.numbers = &templateNumbers{}
	s.packing.objects.join(s.opts.Alike, spec.Cluster)
	s.dirty = changes{reset: true, saved: map[uint32]struct{}{}}
	s.extraction.Store(e)
	s.pager = NewPager[Result](spec.Resource.String(), s.epoch, s.opts)
	return s, nil
}

// CheckSpec returns the *InvalidError that NewStore would of paths and globs that
// cannot be used.
func CheckSpec(spec Spec) error {
	if _, err := spec.Columns.compile(); err != nil {
		return err
	}
	_, err := compileExtraction(spec)
	return err
}

// Get returns the object with key k.
func (s *Store) Get(k Key) (*Object, bool) {
	p := probe(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.contents.tree.Get(p)
	return e.obj, ok
}

// GetAt is Get with the version and the revision of the Store that the answer is of.
func (s *Store) GetAt(k Key) (o *Object, version string, revision uint64, ok bool) {
	return s.whole().GetAt(k)
}

// Version is the resourceVersion the Store holds everything up to, "" before
// the first sync. With several sources it is that of the one furthest on; what
// comes late from another leaves it alone, see WaitVersion.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Revision grows with every change that a reader can see. It has a meaning only
// together with Epoch.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Epoch tells Stores apart: it is random.
func (s *Store) Epoch() string { return s.epoch }

// Lineage names the history of the copy: versions of one lineage are of one line, and
// what a reader noted at one of them can be compared with what the copy is at another. It
// is random, and made with a Store that begins without a snapshot. A snapshot keeps it, so
// that it outlives the process; so does a copy under another rule or definition that takes
// over, since the differences are told as events. When the history turns out to be another,
// the Store goes back, or another takes its place, and the lineage is a new one: then
// nothing that was noted of versions means anything any more.
func (s *Store) Lineage() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lineage
}

// Len is the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.len()
}

// Stats returns the Store's counts.
func (s *Store) Stats() StoreStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stats := StoreStats{
		Objects:     s.contents.len(),
		Bytes:       s.contents.bytes,
		RawBytes:    s.contents.rawBytes,
		Unextracted: s.unextracted.Load(),
		Outdated:    s.outdated.Load(),
		RingEvents:  s.ring.len(),
		LastEvent:   s.lastEvent,
		Events:      s.events,
		Subscribers: int(s.subscribers.Load()),

		ColumnBytes:  s.contents.columns.held(),
		Dictionaries: len(s.contents.packed), Templates: len(s.contents.templates), Trainings: s.trainings.Load(), Repacked: s.repacked.Load(),
	}
	for name, idx := range s.contents.indexes {
		if !isLong(name) {
			stats.Terms += len(idx.postings)
		}
	}
	return stats
}

// treeLocked returns a copy of the tree that nobody modifies. Reading is enough
// of a lock: copies are made one at a time, and are shared until the next
// change.
func (s *Store) treeLocked() *tree {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied == nil {
		s.copied = s.contents.tree.Copy()
	}
	return s.copied
}

// changingLocked must be called before the contents are modified.
func (s *Store) changingLocked() { s.copied = nil }

func (s *Store) specLocked() Spec {
	e := s.extraction.Load()
	spec := e.spec
	spec.Indexes = maps.Clone(e.definitions)
	return spec
}

// Close ends all waiting with ErrStopped; subscribers read what they have not
// read before that. The Store stays readable and ignores writes.
func (s *Store) Close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	s.closed = true
	s.packing.objects.end()
	s.mu.Unlock()
	none := &columnRules{none: true} // pinned ones would outlive the Store
	s.columnRules.Store(none)
	s.contents.columns.follow(none)
	s.notify.end()
}

// presentFilter is the namespaceFilter of a Store's present Spec.
type presentFilter struct{ s *Store }

func (f presentFilter) match(namespace string) bool {
	return f.s.extraction.Load().filter.match(namespace)
}
