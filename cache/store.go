package cache

import (
	"crypto/rand"
	"maps"
	"math"
	"runtime"
	"slices"
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
	spec    Spec // but for Indexes, see extraction
	filter  namespaceFilter
	epoch   string
	opts    StoreOptions
	packing packing

	extraction  atomic.Pointer[extraction]
	unextracted atomic.Uint64
	subscribers atomic.Int64
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
	revision    uint64
	ring        ring
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
	// Cursors is how many paged lists may be under way; default 256.
	Cursors int
	// CursorAge is how long a paged list may rest; default 5 minutes.
	CursorAge time.Duration
	// CursorObjects bounds the objects that all of them refer to; default 2
	// million.
	CursorObjects int
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

// progress is that of one source, a watch that feeds the Store: all namespaces or one of them.
type progress struct {
	synced  bool   // it delivered all its objects once
	refused bool   // the API server does not let it go on
	version string // complete up to here
}

// StoreStats are counts of one moment.
type StoreStats struct {
	Objects     int
	Bytes       int64 // JSON, identity and terms as held
	RawBytes    int64 // JSON before compression
	Unextracted uint64
	Terms       int // different indexed values
	// Dictionaries that objects are compressed with now; how often one was
	// trained since the start, but for the first list, and how many objects were
	// compressed anew.
	Dictionaries        int
	Trainings, Repacked uint64
	RingEvents          int
	LastEvent           time.Time
	Events              uint64
	Subscribers         int
}

// NewStore returns an empty Store that waits for its first Replace. It returns
// an *InvalidError for paths and globs in spec that cannot be used.
func NewStore(spec Spec, opts StoreOptions) (*Store, error) {
	e, err := compileExtraction(spec, 1)
	if err != nil {
		return nil, err
	}
	filter, err := newNamespaceFilter(spec.Namespaces)
	if err != nil {
		return nil, err
	}
	s := &Store{
		spec:     spec,
		filter:   filter,
		epoch:    rand.Text(),
		opts:     opts.withDefaults(),
		contents: newContents(e.names),
		sources:  map[string]*progress{"": {}},
	}
	s.packing.cold.Store(true)
	s.dirty = changes{reset: true, saved: map[uint32]struct{}{}}
	s.extraction.Store(e)
	s.pager = NewPager[Result](spec.Resource.String(), s.epoch, s.opts)
	return s, nil
}

// Get returns the object with key k.
func (s *Store) Get(k Key) (*Object, bool) {
	p := probe(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.contents.tree.Get(p)
	return e.obj, ok
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
		RingEvents:  s.ring.len(),
		LastEvent:   s.lastEvent,
		Events:      s.events,
		Subscribers: int(s.subscribers.Load()),

		Dictionaries: len(s.contents.packed), Trainings: s.trainings.Load(), Repacked: s.repacked.Load(),
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
	spec := s.spec
	spec.Indexes = maps.Clone(s.extraction.Load().definitions)
	return spec
}

func (s *Store) versionsLocked() map[string]string {
	versions := make(map[string]string, len(s.sources))
	for name, src := range s.sources {
		if src.synced {
			versions[name] = src.version
		}
	}
	return versions
}

func (s *Store) syncedLocked() bool {
	for _, src := range s.sources {
		if src.synced {
			return true
		}
	}
	return false
}

// sourceOf returns the source that watches namespace, or nil. The caller holds
// mu or writing.
func (s *Store) sourceOf(namespace string) *progress {
	if src := s.sources[""]; src != nil {
		return src
	}
	return s.sources[namespace]
}

// Decode makes an Object of raw: it finds identity and indexed values, cuts what
// the Spec drops, empties what it redacts and compresses the rest. apiVersion
// and kind are filled in where raw has none, as in lists. raw may be reused
// after. It fails if raw is no object with a name. Any goroutine may call it.
func (s *Store) Decode(raw []byte, apiVersion, kind string) (*Object, error) {
	buf := buffers.get()
	o, plain, unindexed, err := s.extraction.Load().object(raw, (*buf)[:0], apiVersion, kind)
	defer buffers.put(buf, plain)
	if err != nil {
		return nil, err
	}
	if !s.filter.match(o.Namespace()) {
		o.terms, o.size, o.foreign = nil, 0, true
		return o, nil
	}
	if unindexed > 0 {
		s.unextracted.Add(uint64(unindexed))
	}
	o.data, o.dict = s.packing.pack(plain)
	return o, nil
}

// Apply enters one event of a watch. What is not newer than the object held is
// dropped; an object with another UID replaces the old one in two events. The
// source's version advances to the object's with it.
func (s *Store) Apply(sourceName string, t EventType, o *Object) {
	s.writing.Lock()
	defer s.writing.Unlock()
	o = s.upToDate(o)

	s.mu.Lock()
	src := s.sources[sourceName]
	if s.closed || src == nil {
		s.mu.Unlock()
		return
	}
	var events []Event
	if !o.foreign {
		events = s.applyLocked(t, o)
	}
	if src.synced && newer(o.ResourceVersion(), src.version) {
		src.version = o.ResourceVersion()
	}
	s.publishLocked(events)
	s.mu.Unlock()
	s.notify.wake()
}

// upToDate returns o with terms of the present index definitions. The caller
// holds writing, so that they cannot change.
func (s *Store) upToDate(o *Object) *Object {
	e := s.extraction.Load()
	if o.generation == e.generation || o.foreign {
		return o
	}
	again, unindexed, err := e.reindex(o)
	if err != nil {
		// It was packed by this process a moment ago; without its JSON it can
		// still be found by what it was.
		s.unextracted.Add(1)
		return o.reindexed(o.terms, e.generation)
	}
	s.unextracted.Add(uint64(unindexed))
	return again
}

// applyLocked changes the contents and returns the events, without Resume.
func (s *Store) applyLocked(t EventType, o *Object) []Event {
	held := s.contents.find(o)
	if held != nil && older(o.ResourceVersion(), held.ResourceVersion()) {
		return nil
	}
	if t == Deleted {
		if held == nil {
			return nil
		}
		return s.deleteLocked(nil, held, o)
	}
	if held != nil && same(held, o) {
		return nil
	}
	return s.putLocked(nil, held, o)
}

// same reports whether o brings nothing new.
func same(held, o *Object) bool {
	if held.UID() != o.UID() || held.ResourceVersion() != o.ResourceVersion() {
		return false
	}
	if o.ResourceVersion() != "" {
		return true
	}
	// Some aggregated API servers send no resourceVersion.
	return sameJSON(held, o)
}

func sameJSON(a, b *Object) bool {
	if a.dict == b.dict {
		return slices.Equal(a.data, b.data)
	}
	x, errX := a.JSON()
	y, errY := b.JSON()
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// putLocked enters o in place of held, which may be nil.
func (s *Store) putLocked(events []Event, held, o *Object) []Event {
	s.changingLocked()
	s.dirty.add(o.Key())
	s.contents.put(o)
	switch {
	case held == nil:
		return append(events, Event{Type: Added, Object: o})
	case held.UID() != o.UID():
		return append(events, Event{Type: Deleted, Object: held, Old: held}, Event{Type: Added, Object: o})
	default:
		return append(events, Event{Type: Modified, Object: o, Old: held})
	}
}

// deleteLocked takes out held; last is the state the server gave with the
// deletion.
func (s *Store) deleteLocked(events []Event, held, last *Object) []Event {
	s.changingLocked()
	s.dirty.add(held.Key())
	s.contents.remove(held)
	if last.UID() != held.UID() {
		last = held
	}
	return append(events, Event{Type: Deleted, Object: last, Old: held})
}

// publishLocked makes events part of the ring and the sources' versions that of
// the Store. It ends every critical section that changed one of them.
func (s *Store) publishLocked(events []Event) {
	before := s.version
	for _, src := range s.sources {
		if src.synced && newer(src.version, s.version) {
			s.version = src.version
		}
	}
	raised := s.version != before
	if !raised && len(events) == 0 {
		return
	}
	s.revision++
	s.dirty.versions = true
	s.dirty.bound(s.contents.len())
	if s.ring.start == "" {
		s.ring.start = s.version
	}
	s.recordLocked(events, before, raised)
}

// recordLocked enters events that become visible together in the ring.
func (s *Store) recordLocked(events []Event, before string, raised bool) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	s.lastEvent = now
	s.events += uint64(len(events))
	for i, e := range events {
		e.Resume = before
		if i == len(events)-1 {
			e.Resume = s.version
		}
		entry := ringEntry{Event: e, at: now, after: s.version, raised: raised}
		if e.Old != nil {
			entry.bytes = e.Old.held()
		}
		if e.Type == Deleted && e.Object != e.Old {
			entry.bytes += e.Object.held()
		}
		s.ring.push(entry)
	}
}

// ReplaceStats are the differences that a Replace found.
type ReplaceStats struct {
	Added, Modified, Deleted int
}

// Replace makes the objects of a source equal to a list of them at version.
// Subscribers see only what differs, deletions first, in the order of keys. The
// list is the truth: where its versions are lower, as after a restored backup,
// the Store goes back with it.
func (s *Store) Replace(sourceName string, objs []*Object, version string) ReplaceStats {
	s.writing.Lock()
	defer s.writing.Unlock()
	objs = s.prepare(objs)
	if s.sources[sourceName] == nil || s.closed {
		return ReplaceStats{}
	}
	if s.version == "" && !s.syncedLocked() && s.contents.len() == 0 {
		return s.fill(sourceName, objs, version)
	}
	gone, come := s.diff(sourceName, objs)
	return s.exchange(sourceName, gone, come, version)
}

// Amend is a Replace that is told what differs: the keys that are not in the
// list, and the objects that are not held as it has them. All else stays.
func (s *Store) Amend(sourceName string, gone []Key, come []*Object, version string) ReplaceStats {
	s.writing.Lock()
	defer s.writing.Unlock()
	come = s.prepare(come)
	if s.sources[sourceName] == nil || s.closed {
		return ReplaceStats{}
	}
	var leave []*Object
	for _, k := range gone {
		if o := s.contents.get(k); o != nil {
			leave = append(leave, o)
		}
	}
	come = slices.DeleteFunc(come, func(o *Object) bool {
		held := s.contents.find(o)
		return held != nil && same(held, o)
	})
	return s.exchange(sourceName, leave, come, version)
}

// exchange takes out gone, enters come and moves the source to version. The
// caller holds writing.
func (s *Store) exchange(sourceName string, gone, come []*Object, version string) (stats ReplaceStats) {
	s.mu.Lock()
	src := s.sources[sourceName]
	back := src.synced && older(version, src.version)
	src.synced, src.version = true, version
	var events []Event
	for _, o := range gone {
		events = s.deleteLocked(events, o, o)
		stats.Deleted++
	}
	for _, o := range come {
		held := s.contents.find(o)
		if events = s.putLocked(events, held, o); held == nil {
			stats.Added++
		} else {
			stats.Modified++
		}
	}
	if back {
		s.goBackLocked(events)
	} else {
		s.publishLocked(events)
	}
	s.dirty.versions = true
	s.mu.Unlock()
	s.notify.wake()
	return stats
}

// prepare sorts objs by key, leaves out what does not belong here, keeps the
// last of several with one key, and brings all into the form of today. objs
// stays as it is.
func (s *Store) prepare(objs []*Object) []*Object {
	kept := slices.DeleteFunc(slices.Clone(objs), func(o *Object) bool { return o == nil || o.foreign })
	slices.SortStableFunc(kept, compareObjects)
	n := 0
	for i, o := range kept {
		if i+1 < len(kept) && compareObjects(o, kept[i+1]) == 0 {
			continue
		}
		kept[n] = s.packing.repack(s.upToDate(o))
		n++
	}
	clear(kept[n:])
	s.packing.warm()
	return kept[:n]
}

func compareObjects(a, b *Object) int {
	x, y := entry{obj: a}, entry{obj: b}
	switch {
	case x.less(y):
		return -1
	case y.less(x):
		return 1
	default:
		return 0
	}
}

// fill is a Replace of an empty Store: what is built aside becomes visible at
// once. Nobody can resume from before, so the ring is only filled for those who
// are waiting.
func (s *Store) fill(sourceName string, objs []*Object, version string) ReplaceStats {
	c := newContents(s.extraction.Load().names)
	for _, o := range objs {
		c.load(o)
	}
	var events []Event
	if s.subscribers.Load() > 0 {
		for _, o := range objs {
			events = append(events, Event{Type: Added, Object: o})
		}
	}
	s.mu.Lock()
	s.changingLocked()
	s.contents = c
	src := s.sources[sourceName]
	src.synced, src.version = true, version
	s.dirty.all()
	s.dirty.versions = true
	if s.publishLocked(events); len(events) == 0 {
		s.revision++
		s.lastEvent = time.Now()
		s.events += uint64(len(objs))
	}
	s.mu.Unlock()
	s.notify.wake()
	return ReplaceStats{Added: len(objs)}
}

// diff compares objs, sorted by key, with what is held of a source. The caller
// holds writing.
func (s *Store) diff(sourceName string, objs []*Object) (gone, come []*Object) {
	i := 0
	visit := func(e entry) bool {
		for i < len(objs) && compareObjects(objs[i], e.obj) < 0 {
			come = append(come, objs[i])
			i++
		}
		if i == len(objs) || compareObjects(objs[i], e.obj) != 0 {
			gone = append(gone, e.obj)
			return true
		}
		if !same(e.obj, objs[i]) {
			come = append(come, objs[i])
		}
		i++
		return true
	}
	scanSource(s.contents.tree, sourceName, visit)
	return gone, append(come, objs[i:]...)
}

// goBackLocked publishes events after which the version is lower than before.
// Versions of before mean nothing any more: who comes with one has to list.
func (s *Store) goBackLocked(events []Event) {
	s.version = ""
	for _, src := range s.sources {
		if src.synced && newer(src.version, s.version) {
			s.version = src.version
		}
	}
	s.revision++
	first := s.ring.next
	const expired = "1" // older than any list
	s.recordLocked(events, expired, true)
	s.ring.trim(max(first, s.ring.first), s.version)
}

// Bookmark advances a source that had no event up to version.
func (s *Store) Bookmark(sourceName, version string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	src := s.sources[sourceName]
	if s.closed || src == nil || !src.synced || !newer(version, src.version) {
		s.mu.Unlock()
		return
	}
	src.version = version
	s.dirty.versions = true
	s.publishLocked(nil)
	s.mu.Unlock()
	s.notify.wake()
}

// SetSources says which namespaces are watched, "" for all of them. Objects of
// others are deleted, with events; what is held of those that stay is kept, with
// its version. A new Store has the one source "".
func (s *Store) SetSources(names []string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return
	}
	s.mu.Lock()
	sources := make(map[string]*progress, len(names))
	for _, name := range names {
		src := &progress{}
		if before := s.sources[name]; before != nil {
			src = before
		} else if all := s.sources[""]; all != nil {
			*src = *all // all namespaces were complete, so this one was
		}
		sources[name] = src
	}
	if !maps.Equal(sources, s.sources) {
		s.dirty.versions = true
	}
	s.sources = sources
	var events []Event
	for _, o := range s.orphansLocked() {
		events = s.deleteLocked(events, o, o)
	}
	s.publishLocked(events)
	s.mu.Unlock()
	s.notify.wake()
}

// scanSource visits the objects that a source watches, in the order of keys.
func scanSource(t *tree, sourceName string, visit func(entry) bool) {
	if sourceName == "" {
		t.Scan(visit)
		return
	}
	t.Ascend(probe(Key{Namespace: sourceName}), func(e entry) bool {
		return e.obj.Namespace() == sourceName && visit(e)
	})
}

// orphansLocked lists the objects that no source watches.
func (s *Store) orphansLocked() (orphans []*Object) {
	if s.sources[""] != nil {
		return nil
	}
	s.contents.tree.Scan(func(e entry) bool {
		if s.sourceOf(e.obj.Namespace()) == nil {
			orphans = append(orphans, e.obj)
		}
		return true
	})
	return orphans
}

// DeleteAll deletes every object, with events: the resource is gone as of
// version.
func (s *Store) DeleteAll(version string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	var events []Event
	for _, e := range s.treeLocked().Items() {
		events = s.deleteLocked(events, e.obj, e.obj)
	}
	for _, src := range s.sources {
		if src.synced && newer(version, src.version) {
			src.version = version
		}
	}
	s.publishLocked(events)
	s.mu.Unlock()
	s.notify.wake()
}

// SetIndexes replaces the configured indexes. Subscribers and readers are not
// disturbed: objects of earlier events keep the terms they have, and a Matcher
// asks their JSON instead.
func (s *Store) SetIndexes(definitions map[string]string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	before := s.extraction.Load()
	if maps.Equal(before.definitions, definitions) {
		return nil
	}
	spec := s.spec
	spec.Indexes = definitions
	e, err := compileExtraction(spec, before.generation+1)
	if err != nil {
		return err
	}
	objs := s.objects()
	unindexed, err := reindexAll(e, objs)
	if err != nil {
		return err
	}
	c := newContents(e.names)
	for _, o := range objs {
		c.load(o)
	}
	s.mu.Lock()
	s.changingLocked()
	s.contents = c
	s.extraction.Store(e)
	s.unextracted.Store(unindexed)
	s.revision++
	s.dirty.all()
	s.mu.Unlock()
	return nil
}

// objects lists what is held, in order. The caller holds writing.
func (s *Store) objects() []*Object {
	objs := make([]*Object, 0, s.contents.len())
	s.contents.tree.Scan(func(e entry) bool {
		objs = append(objs, e.obj)
		return true
	})
	return objs
}

// reindexAll replaces each of objs by one with the terms of e.
func reindexAll(e *extraction, objs []*Object) (unindexed uint64, err error) {
	var count atomic.Uint64
	err = parallel(len(objs), func(i int) error {
		o, n, err := e.reindex(objs[i])
		if err != nil {
			return err
		}
		count.Add(uint64(n))
		objs[i] = o
		return nil
	})
	return count.Load(), err
}

// parallel calls f for 0 to n-1 on all processors and returns the first error.
func parallel(n int, f func(i int) error) error {
	const chunk = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(runtime.GOMAXPROCS(0), n/chunk+1))
	for w := range errs {
		wg.Go(func() {
			for {
				end := int(next.Add(chunk))
				for i := end - chunk; i < min(end, n); i++ {
					if errs[w] = f(i); errs[w] != nil {
						next.Store(math.MaxInt32)
						return
					}
				}
				if end >= n {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Indexes lists the indexes: built-in ones, then the configured ones by name.
func (s *Store) Indexes() []IndexInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.extraction.Load()
	var infos []IndexInfo
	for _, name := range builtinIndexes {
		infos = append(infos, IndexInfo{Name: name, Values: len(s.contents.indexes[name].postings)})
	}
	for i, name := range e.names {
		infos = append(infos, IndexInfo{Name: name, Path: e.paths[i].String(), Values: len(s.contents.indexes[name].postings)})
	}
	return infos
}

// Close ends all waiting with ErrStopped; subscribers read what they have not
// read before that. The Store stays readable and ignores writes.
func (s *Store) Close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.notify.wake()
}
