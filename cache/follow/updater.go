package follow

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
)

// Sink is something computed from objects: from each by itself, into an R, and
// from all of those together. Its methods are called by one goroutine at a time,
// but for Read.
type Sink[R any] interface {
	// Learn tells of all resources, before any object of them. It returns false
	// if what was entered before means something else now; then all is entered
	// anew after Reset.
	Learn(deltas []Delta) bool
	Reset()
	// Stamp is that of the object entered last under a key.
	Stamp(r cache.Resource, key cache.Key) (stamp uint64, ok bool)
	// Keys are those of the objects entered of a resource. Nothing is entered meanwhile.
	Keys(r cache.Resource) iter.Seq[cache.Key]
	// Read computes what there is to enter of an object. It is called
	// concurrently.
	Read(r cache.Resource, o *cache.Object) R
	// Enter takes in objects, in place of those with the same keys, and takes
	// out others. The slices are not its own: what was read is written over afterwards.
	Enter(r cache.Resource, read []R, gone []cache.Key)
}

// Updater keeps a Sink up to date with stores: when it is asked, and then as of
// that moment. It is safe for concurrent use.
type Updater[R any] struct {
	resources func() []Resource
	sink      Sink[R]

	// entered is what the Sink is computed from. It is nil before anything was entered,
	// while something is, and after that has failed.
	entered  atomic.Pointer[moment]
	haste    haste
	prepares prepares
	ended    atomic.Pointer[chan struct{}] // closed when the next update, or the one under way, has ended

	turn     chan struct{} // held by whoever updates; guards all below
	follower Follower
	loaded   map[cache.Resource]bool // some of its objects are entered
}

// NewUpdater makes an Updater over resources, which is called each time.
func NewUpdater[R any](resources func() []Resource, sink Sink[R]) *Updater[R] {
	u := &Updater[R]{resources: resources, sink: sink, turn: make(chan struct{}, 1), loaded: map[cache.Resource]bool{}}
	ended := make(chan struct{})
	u.ended.Store(&ended)
	return u
}

var seed = maphash.MakeSeed()

// Stamp tells versions of an object apart, if it has a resourceVersion.
func Stamp(o *cache.Object) uint64 {
	return maphash.String(seed, o.UID()) ^ maphash.String(seed, o.ResourceVersion())*31
}

// Update enters what changed since the last time, and then locks held, which
// keeps the Sink from being changed: what is computed under it is of this update,
// and not of half of the next one. After an error, and when ctx ends, held is not
// locked, and what is left is entered by the next Update.
func (u *Updater[R]) Update(ctx context.Context, held sync.Locker) error {
	if _, err := u.await(ctx, nil); err != nil {
		return err
	}
	defer func() { <-u.turn }()
	return u.updateAndLock(ctx, held)
}

// updateAndLock is Update of whoever has the turn.
func (u *Updater[R]) updateAndLock(ctx context.Context, held sync.Locker) error {
	if err := u.updateAndTell(ctx); err != nil {
		return err
	}
	held.Lock() // nobody waits for us with it: only who has the turn changes the Sink
	return nil
}

// updateAndTell is update of whoever has the turn.
func (u *Updater[R]) updateAndTell(ctx context.Context) error {
	err := u.update(ctx)
	next := make(chan struct{})
	close(*u.ended.Swap(&next))
	return err
}

// Prepare is Update before anybody asks. It reads objects with a third of a processor, until
// somebody waits for it: then it goes on like any Update.
func (u *Updater[R]) Prepare(ctx context.Context) error {
	ctx, end := u.prepares.begin(context.WithValue(ctx, unhurried{}, true))
	defer end()
	for mine := false; !mine; {
		var err error
		mine, err = u.await(ctx, *u.ended.Load())
		if err != nil || !mine && u.entered.Load() != nil { // nil: somebody else's has failed
			return err
		}
	}
	defer func() { <-u.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	return u.updateAndTell(ctx)
}

// unhurried is the key of contexts that nobody waits for.
type unhurried struct{}

// Interrupt ends a Prepare that is under way, and every other until done: what they prepare is
// to be forgotten.
func (u *Updater[R]) Interrupt() (done func()) { return u.prepares.interrupt() }

// Current is Update for a Sink whose Learn need not hear of what has not changed. Where
// nothing has, nobody waits for anybody, and where something has, all who ask wait for one
// of them: each question about rights begins like this, and the many of one user must not
// be a queue for others.
func (u *Updater[R]) Current(ctx context.Context, held sync.Locker) error {
	for {
		ended := *u.ended.Load() // before the look: none that ends after it is missed
		if u.unchanged(held) {
			return nil
		}
		mine, err := u.await(ctx, ended)
		if err != nil {
			return err
		}
		if mine {
			defer func() { <-u.turn }()
			if u.unchanged(held) {
				return nil
			}
			return u.updateAndLock(ctx, held)
		}
	}
}

// await waits until it is the caller's turn to update, or until another update has ended:
// what somebody else entered may be all there is.
func (u *Updater[R]) await(ctx context.Context, ended <-chan struct{}) (mine bool, err error) {
	select {
	case u.turn <- struct{}{}:
		return true, nil
	default:
	}
	defer cache.Pause(ctx)()
	defer u.haste.begin()()
	select {
	case u.turn <- struct{}{}:
		return true, nil
	case <-ended:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// unchanged locks held, and reports that it has, if nothing changed since the last Update.
func (u *Updater[R]) unchanged(held sync.Locker) bool {
	m := u.entered.Load()
	if m == nil || !m.is(u.resources()) {
		return false
	}
	held.Lock()
	if u.entered.Load() == m { // from now on the Sink is not changed
		return true
	}
	held.Unlock()
	return false
}

func (u *Updater[R]) update(ctx context.Context) error {
	resources := u.resources()
	deltas, err := u.follower.Read(ctx, resources)
	if err != nil {
		u.entered.Store(nil)
		return err
	}
	known := u.entered.Load()
	same := known != nil && known.equal(u.follower.moment(deltas))
	if !same {
		u.entered.Store(nil) // before the Sink is changed: see unchanged
	}
	if u.sink.Learn(deltas) {
		if same {
			return nil // it heard of the time alone, for which nobody has to wait
		}
	} else {
		u.entered.Store(nil)
		u.reset()
		if deltas, err = u.follower.Read(ctx, resources); err != nil {
			return err
		}
		u.sink.Learn(deltas)
	}
	deltas = append(u.untold(deltas), deltas...)
	for i := range deltas {
		if err := u.enter(ctx, &deltas[i]); err != nil {
			u.follower.Close() // what is left comes again
			return err
		}
	}
	u.entered.Store(u.follower.moment(deltas))
	return nil
}

// untold are the resources with objects entered that deltas do not tell of: they
// went away in an Update that failed, or before the next one began anew.
func (u *Updater[R]) untold(deltas []Delta) (gone []Delta) {
	told := make(map[cache.Resource]bool, len(deltas))
	for i := range deltas {
		told[deltas[i].View.Spec.Resource] = true
	}
	for r := range u.loaded {
		if !told[r] {
			gone = append(gone, Delta{View: unknown(r), Gone: true})
		}
	}
	return gone
}

// Close forgets everything; the next Update begins anew.
func (u *Updater[R]) Close() {
	u.turn <- struct{}{}
	defer func() { <-u.turn }()
	u.entered.Store(nil)
	u.reset()
}

func (u *Updater[R]) reset() {
	u.follower.Close()
	u.sink.Reset()
	clear(u.loaded)
}

// batch is how many objects are read before they are entered: it bounds the
// memory of the first time.
const batch = 1024

// bit is how many objects are read at a time where nobody waits for them.
const bit = 64

func (u *Updater[R]) enter(ctx context.Context, d *Delta) error {
	r := d.View.Spec.Resource
	if d.Empty() || !d.View.Readable() && !u.loaded[r] {
		return nil
	}
	gone := d.Deleted
	if d.Whole || !d.View.Readable() {
		gone = u.leftOut(r, d.Objects)
	}
	u.loaded[r] = true
	for keys := range slices.Chunk(gone, batch) { // questions about counts may come in between
		u.sink.Enter(r, nil, keys)
	}
	if err := u.enterAll(ctx, r, d.Objects); err != nil {
		return err
	}
	if !d.View.Readable() {
		delete(u.loaded, r)
	}
	return nil
}

// restsFor is how many times as long as a bit took a Prepare rests after it.
const restsFor = 2

// enterAll enters those of objects that the Sink has not: a batch at a time and as fast as it
// can, or, where nobody waits, bit by bit with a rest after each. Events need a processor now
// and then, and a goroutine that computes keeps it for 10 ms.
func (u *Updater[R]) enterAll(ctx context.Context, r cache.Resource, objects []*cache.Object) error {
	read := make([]R, 0, min(batch, len(objects)))
	for len(objects) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, began := batch, time.Now()
		hurry := u.hurry(ctx)
		if hurry != nil {
			n = bit
		}
		n = min(n, len(objects))
		read = u.enterSome(r, objects[:n], read[:0], hurry == nil)
		objects = objects[n:]
		if hurry != nil && len(objects) > 0 {
			u.rest(ctx, restsFor*time.Since(began), hurry)
		}
	}
	return nil
}

// hurry is nil if somebody waits, and else closed when somebody does.
func (u *Updater[R]) hurry(ctx context.Context) <-chan struct{} {
	if ctx.Value(unhurried{}) == nil {
		return nil
	}
	return u.haste.begun()
}

func (u *Updater[R]) rest(ctx context.Context, d time.Duration, hurry <-chan struct{}) {
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-hurry:
	case <-ctx.Done():
	}
}

// enterSome is enterAll of a few objects, which are read into read, on all processors or on this
// one. It forgets the objects: what is replaced meanwhile need not wait for the last of them.
func (u *Updater[R]) enterSome(r cache.Resource, objects []*cache.Object, read []R, everywhere bool) []R {
	changed := slices.DeleteFunc(objects, func(o *cache.Object) bool { return u.has(r, o) })
	read = read[:len(changed)]
	if everywhere {
		u.readAll(r, changed, read)
	} else {
		var others cache.Yielder
		for i, o := range changed {
			read[i] = u.sink.Read(r, o)
			others.Yield()
		}
	}
	if len(changed) > 0 {
		u.sink.Enter(r, read, nil)
	}
	clear(read)
	clear(objects)
	return read
}

// has reports whether o is entered as it is.
func (u *Updater[R]) has(r cache.Resource, o *cache.Object) bool {
	if o.ResourceVersion() == "" {
		return false // some aggregated API servers send none: it may be any version
	}
	stamp, ok := u.sink.Stamp(r, o.Key())
	return ok && stamp == Stamp(o)
}

// leftOut lists what was entered and is not among objects, which are all of a resource. They are
// in the order of their keys, and looked through for each key that was entered: a set of all
// keys would take more memory than what was entered.
func (u *Updater[R]) leftOut(r cache.Resource, objects []*cache.Object) (gone []cache.Key) {
	for key := range u.sink.Keys(r) {
		_, there := slices.BinarySearchFunc(objects, key, func(o *cache.Object, key cache.Key) int { return o.Key().Compare(key) })
		if !there {
			gone = append(gone, key)
		}
	}
	return gone
}

// readAll reads objects into all, on all processors.
func (u *Updater[R]) readAll(r cache.Resource, objects []*cache.Object, all []R) {
	const chunk = 32
	var workers errgroup.Group
	workers.SetLimit(cache.Workers())
	for start := 0; start < len(objects); start += chunk {
		workers.Go(func() error {
			for i := start; i < min(start+chunk, len(objects)); i++ {
				all[i] = u.sink.Read(r, objects[i])
			}
			return nil
		})
	}
	_ = workers.Wait() // there are no errors
}
