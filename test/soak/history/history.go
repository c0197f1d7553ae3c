// Package history is what really happened: every state that etcd had of the
// resources a soak looks at, by revision. Answers are right or wrong by it alone.
//
// A backup that is restored forks the history: versions are used a second time,
// for other objects. Each fork is an Epoch, which shares its past with the epoch
// that the backup was made in.
package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one whose history is kept.
type Resource struct {
	GVR schema.GroupVersionResource
	// Prefix is where etcd has it, such as "/registry/configmaps/".
	Prefix string
	Kind   string
	// Namespaced says whether keys are NAMESPACE/NAME, else NAME.
	Namespaced bool
	// Loose resources change what they serve of an object without a new version,
	// as custom resources do whose definition is edited: only metadata is
	// compared. Their scope may change, too.
	Loose bool
}

// Name is how kubectl and informerd name it.
func (r Resource) Name() string { return r.GVR.GroupResource().String() }

// Object is one object at one of its versions.
type Object struct {
	Version int64 // the revision of the change that made it so
	UID     string
	Hash    string // of its content, see Hash
	Tier    string // its label "tier", which is selected by
}

// Change is one change of an object: to a state, or its deletion.
type Change struct {
	Object  // of a deletion: only Version, and the UID that went
	Deleted bool
	// Seen is when the history was told of it: it was committed before.
	Seen time.Time
}

// KeyedChange is a Change and the key it belongs to.
type KeyedChange struct {
	Key string
	Change
}

// Log holds all epochs. It is safe for concurrent use.
type Log struct {
	mu     sync.RWMutex // guards all below, epochs included
	epochs []*Epoch
	held   bool
	blurs  []*blur
	// compacted is when etcd last forgot what was before.
	compacted time.Time
}

// blur is a time in which what API servers serve is of no history.
type blur struct{ from, to time.Time } // to is zero while it lasts

// Blur says that, from now on, API servers serve something that etcd never had: it was
// restored under them, and they mix what they remember with what comes. Nothing that
// is told meanwhile can be judged. The function it returns says when that is over.
func (l *Log) Blur() (over func(time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &blur{from: time.Now()}
	l.blurs = append(l.blurs, b)
	return func(at time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		b.to = at
	}
}

// Blurred says whether what is told at a moment cannot be judged.
func (l *Log) Blurred(at time.Time) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.ContainsFunc(l.blurs, func(b *blur) bool {
		return !at.Before(b.from) && (b.to.IsZero() || at.Before(b.to))
	})
}

// Compacted says that etcd has just forgotten what was before.
func (l *Log) Compacted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compacted = time.Now()
}

// CompactedSince says whether etcd has forgotten anything since a moment.
func (l *Log) CompactedSince(at time.Time) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.compacted.After(at)
}

// Hold says that nothing is to be judged for a while: a backup is being restored,
// and what is answered may be of a history that is not known yet.
func (l *Log) Hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

// Held says whether nothing is to be judged.
func (l *Log) Held() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.held
}

// Epoch is one history, from the beginning to its last revision. Its contents
// are guarded by its Log; use its methods.
type Epoch struct {
	log    *Log
	Number int
	parent *Epoch
	fork   int64 // the last revision shared with parent
	began  time.Time

	head     int64 // everything up to here is known
	reached  time.Time
	byKey    map[string]map[string][]Change // by resource and key, in order
	inOrder  map[string][]KeyedChange       // by resource
	deletion map[string]int64               // revision, by UID
}

// NewLog returns a Log with a first, empty epoch.
func NewLog() *Log {
	l := &Log{}
	l.epochs = []*Epoch{l.newEpoch(nil, 0)}
	return l
}

func (l *Log) newEpoch(parent *Epoch, fork int64) *Epoch {
	return &Epoch{
		log: l, Number: len(l.epochs) + 1, parent: parent, fork: fork, began: time.Now(),
		byKey: map[string]map[string][]Change{}, inOrder: map[string][]KeyedChange{}, deletion: map[string]int64{},
	}
}

// afterEnd is how many revisions an epoch may have had beyond what is known of it when
// it ends. Nobody writes what is judged then, but API servers write leases until etcd
// stops, and bookmarks tell their versions.
const afterEnd = 30

// Fork begins an epoch that shares the past of parent up to a revision. The one that
// was the present is over.
func (l *Log) Fork(parent *Epoch, revision int64) *Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs[len(l.epochs)-1].head += afterEnd
	e := l.newEpoch(parent, revision)
	e.head = revision
	for resource, changes := range parent.inOrder {
		for _, c := range changes {
			if c.Version > revision {
				break
			}
			e.addLocked(resource, c.Key, c.Change)
		}
	}
	l.epochs = append(l.epochs, e)
	return e
}

// Epochs are all epochs, the present one last.
func (l *Log) Epochs() []*Epoch {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.epochs)
}

// Now is the present epoch.
func (l *Log) Now() *Epoch {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.epochs[len(l.epochs)-1]
}

// Add adds a change, which must be the newest of its key. One that is known is
// ignored.
func (e *Epoch) Add(resource, key string, c Change) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if c.Version <= e.fork {
		return
	}
	e.addLocked(resource, key, c)
}

func (e *Epoch) addLocked(resource, key string, c Change) {
	keys := e.byKey[resource]
	if keys == nil {
		keys = map[string][]Change{}
		e.byKey[resource] = keys
	}
	if n := len(keys[key]); n > 0 {
		last := keys[key][n-1]
		if last.Version >= c.Version {
			return
		}
		if c.Deleted {
			c.UID, c.Tier = last.UID, last.Tier
		}
	}
	if c.Deleted {
		e.deletion[c.UID] = c.Version
	}
	keys[key] = append(keys[key], c)
	e.inOrder[resource] = append(e.inOrder[resource], KeyedChange{key, c})
	e.head = max(e.head, c.Version-1) // others of this revision may follow
}

// Progress says that everything up to a revision has been added.
func (e *Epoch) Progress(revision int64) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.head = max(e.head, revision)
	e.reached = time.Now()
}

// Head is the revision up to which everything is known, and when etcd last
// confirmed that there is no more.
func (e *Epoch) Head() (int64, time.Time) {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	return e.head, e.reached
}

// Began is when the epoch began.
func (e *Epoch) Began() time.Time { return e.began }

// Common is the last revision up to which two epochs are the same history.
func Common(a, b *Epoch) int64 {
	switch {
	case a == b:
		return math.MaxInt64
	case a.Number < b.Number:
		a, b = b, a
	}
	if a.parent == nil {
		return 0
	}
	return min(a.fork, Common(a.parent, b))
}

// At is the state of an object at a version; false if there was none.
func (e *Epoch) At(resource, key string, version int64) (Object, bool) {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	return at(e.byKey[resource][key], version)
}

func at(changes []Change, version int64) (Object, bool) {
	n, _ := slices.BinarySearchFunc(changes, version+1, func(c Change, v int64) int { return cmp.Compare(c.Version, v) })
	if n == 0 || changes[n-1].Deleted {
		return Object{}, false
	}
	return changes[n-1].Object, true
}

// State are all objects of a resource at a version that keep accepts; nil
// accepts all.
func (e *Epoch) State(resource string, version int64, keep func(key string, o Object) bool) map[string]Object {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	state := map[string]Object{}
	for key, changes := range e.byKey[resource] {
		if o, ok := at(changes, version); ok && (keep == nil || keep(key, o)) {
			state[key] = o
		}
	}
	return state
}

// Between are the changes of a resource after one version and up to another, in
// order.
func (e *Epoch) Between(resource string, after, to int64) []KeyedChange {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	all := e.inOrder[resource]
	from, _ := slices.BinarySearchFunc(all, after+1, func(c KeyedChange, v int64) int { return cmp.Compare(c.Version, v) })
	end, _ := slices.BinarySearchFunc(all, to+1, func(c KeyedChange, v int64) int { return cmp.Compare(c.Version, v) })
	if from >= end {
		return nil
	}
	return slices.Clone(all[from:end])
}

// Deleted is the revision at which the object with a UID was deleted, 0 if it
// was not.
func (e *Epoch) Deleted(uid string) int64 {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	return e.deletion[uid]
}

// Changes are all changes of one object, in order.
func (e *Epoch) Changes(resource, key string) []Change {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	return slices.Clone(e.byKey[resource][key])
}

// Before is the version of the last change of a resource that was committed
// before a moment, 0 if there was none.
func (e *Epoch) Before(resource string, t time.Time) int64 {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	all := e.inOrder[resource]
	// Changes of a fork keep the time at which the first epoch saw them, so
	// times grow with versions.
	n, _ := slices.BinarySearchFunc(all, t, func(c KeyedChange, t time.Time) int { return c.Seen.Compare(t) })
	if n == 0 {
		return 0
	}
	return all[n-1].Version
}

// Reached is the highest version that any resource is known to have had before a
// moment.
func (e *Epoch) Reached(t time.Time) (version int64) {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	for _, all := range e.inOrder {
		if n, _ := slices.BinarySearchFunc(all, t, func(c KeyedChange, t time.Time) int { return c.Seen.Compare(t) }); n > 0 {
			version = max(version, all[n-1].Version)
		}
	}
	return version
}

// Keys are all keys a resource ever had.
func (e *Epoch) Keys(resource string) []string {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.byKey[resource]))
}

// Size is the number of changes known.
func (e *Epoch) Size() int {
	e.log.mu.RLock()
	defer e.log.mu.RUnlock()
	n := 0
	for _, all := range e.inOrder {
		n += len(all)
	}
	return n
}

// KeyOf is the resource and the key that an etcd key belongs to.
func KeyOf(resources []Resource, etcdKey string) (Resource, string, bool) {
	for _, r := range resources {
		if key, ok := strings.CutPrefix(etcdKey, r.Prefix); ok && (r.Loose || r.Namespaced == strings.Contains(key, "/")) {
			return r, key, true
		}
	}
	return Resource{}, "", false
}
