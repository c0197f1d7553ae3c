package health

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/internal/inside"
)

// Index knows the health of all objects of one cluster. It is safe for concurrent use,
// has no goroutine, and does nothing until it is asked: the first question reads all
// objects, every later one what changed since. The server asks from time to time.
//
// It remembers what is not good, what will not be good for ever, and which Services
// webhooks call. Of another object that is good it holds nothing.
type Index struct {
	updater *follow.Updater[reading]
	now     func() time.Time

	mu sync.RWMutex // guards all below
	*state
}

// kindID is the position of a kind in its state.
type kindID uint16

// kind is one resource of the cluster.
type kind struct {
	view    cache.View // not Readable: cannot be read
	group   schema.GroupKind
	known   bool // the cluster has it
	records bool
	judge   Judge
	entries map[cache.Key]*entry
}

// entry is what is remembered of one object.
type entry struct {
	stamp  uint64
	health Health
	owner  owner
	over   bool // a pod that will not run again
	calls  []call
}

type state struct {
	revision   uint64 // of all that an answer is made of
	kinds      []*kind
	byResource map[schema.GroupResource]kindID
	byKind     map[schema.GroupKind]kindID
	due        time.Time // the first Until of any entry; zero: none
}

func newState() *state {
	return &state{byResource: map[schema.GroupResource]kindID{}, byKind: map[schema.GroupKind]kindID{}}
}

// NewIndex makes an Index over resources, which is called with every question and lists
// the resources of one cluster.
func NewIndex(resources func() []follow.Resource) *Index {
	x := &Index{state: newState(), now: time.Now}
	x.updater = follow.NewUpdater(resources, sink{x})
	return x
}

// Close forgets everything. The Index remains usable and begins anew.
func (x *Index) Close() { x.updater.Close() }

// Stats are counts of one moment.
type Stats struct {
	Resource string // as kubectl names it
	Objects  [statuses]int
}

// Stats counts the objects by their own verdicts, of resources that can be read. Before
// the first question there are none: counting is not what begins to read everything.
func (x *Index) Stats(ctx context.Context) []Stats {
	x.mu.RLock()
	asked := len(x.kinds) > 0
	x.mu.RUnlock()
	if !asked {
		return nil
	}
	if _, err := x.current(ctx); err != nil {
		return nil
	}
	defer x.mu.RUnlock()
	var all []Stats
	for _, k := range x.kinds {
		if !k.known || k.records || !k.view.Readable() {
			continue
		}
		s := Stats{Resource: k.view.Spec.Name()}
		s.Objects[Good] = k.view.Store(inside.Cache).Len()
		for _, e := range k.entries {
			if e.health.Status != Good {
				s.Objects[e.health.Status]++
				s.Objects[Good]--
			}
		}
		s.Objects[Good] = max(s.Objects[Good], 0) // the copy may have gone on
		all = append(all, s)
	}
	return all
}

// Revision is another one after anything has changed that an answer is made of, be it that
// time has passed.
func (x *Index) Revision(ctx context.Context) (uint64, error) {
	if _, err := x.current(ctx); err != nil {
		return 0, err
	}
	defer x.mu.RUnlock()
	return x.revision, nil
}

// Prepare brings the Index up to date with a third of a processor, as long as nobody asks: a
// first look at all objects comes right after they are there, beside events and the first save.
func (x *Index) Prepare(ctx context.Context) error { return x.updater.Prepare(ctx) }

// current brings the Index up to date and locks it for reading. After an error it is not
// locked.
func (x *Index) current(ctx context.Context) (now time.Time, err error) {
	for {
		if err := x.updater.Current(ctx, x.mu.RLocker()); err != nil {
			return now, err
		}
		if now = x.now(); x.due.IsZero() || now.Before(x.due) {
			return now, nil
		}
		x.mu.RUnlock()
		x.mu.Lock()
		x.judgeAgain(now)
		x.mu.Unlock()
	}
}

// judgeAgain judges what has not changed and is another thing now because time has
// passed.
func (x *Index) judgeAgain(now time.Time) {
	x.due = time.Time{}
	x.revision++
	for _, k := range x.kinds {
		store := k.view.Store(inside.Cache)
		if store == nil {
			continue // the next update takes its entries out
		}
		for key, e := range k.entries {
			if until := e.health.Until; !until.IsZero() && !now.Before(until) {
				e.judgeAgain(k, store, key, now)
			}
			x.due = earlier(x.due, e.health.Until)
		}
	}
}

// judgeAgain leaves an object that has changed meanwhile to the next update. It changes
// nothing that an update reads without the lock.
func (e *entry) judgeAgain(k *kind, store *cache.Store, key cache.Key, now time.Time) {
	e.health.Until = time.Time{}
	o, ok := store.Get(key)
	if !ok || follow.Stamp(o) != e.stamp {
		return
	}
	if r := read(k.judge, o, now, false); r.read {
		e.health = r.health
	}
}
