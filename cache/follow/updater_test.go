package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// entered is a Sink that notes which version of each object was read last.
type entered map[cache.Resource]map[cache.Key]*cache.Object

func (e entered) Learn([]Delta) bool { return true }
func (e entered) Reset()             { clear(e) }

func (e entered) Stamp(r cache.Resource, key cache.Key) (uint64, bool) {
	o, ok := e[r][key]
	if !ok {
		return 0, false
	}
	return Stamp(o), true
}

func (e entered) Keys(r cache.Resource) iter.Seq[cache.Key] { return maps.Keys(e[r]) }

func (e entered) Read(_ cache.Resource, o *cache.Object) *cache.Object { return o }

func (e entered) Enter(r cache.Resource, read []*cache.Object, gone []cache.Key) {
	if e[r] == nil {
		e[r] = map[cache.Key]*cache.Object{}
	}
	for _, key := range gone {
		delete(e[r], key)
	}
	for _, o := range read {
		e[r][o.Key()] = o
	}
}

func (e entered) text() string {
	var all []string
	for r, objects := range e {
		for _, o := range objects {
			all = append(all, r.GVR.Resource+"/"+o.Name()+"@"+o.ResourceVersion())
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// locker calls lock; nothing has to be unlocked.
type locker func()

func (l locker) Lock()   { l() }
func (l locker) Unlock() {}

// failing is a context that has ended, of which one learns by its error alone.
type failing struct{ context.Context }

func (failing) Err() error { return context.Canceled }

// TestUpdateIsHeld: no other update begins before what this one entered is kept
// from being changed.
func TestUpdateIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newResource(t, "pods")
		defer pods.Store().Close()
		sink := entered{}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		done := make(chan string, 2)
		another := locker(func() { done <- "the other one" })
		held := locker(func() {
			go func() {
				if err := u.Update(t.Context(), another); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			done <- "this one"
		})
		if err := u.Update(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if first := <-done; first != "this one" {
			t.Errorf("first held: %s", first)
		}
		<-done
	})
}

// TestNoVersion: an object without a resourceVersion is read again whenever it
// changed.
func TestNoVersion(t *testing.T) {
	r := newResource(t, "metrics")
	sink := entered{}
	u := NewUpdater(func() []Resource { return []Resource{r} }, sink)
	defer u.Close()
	for _, usage := range []string{"1", "2"} {
		o, err := r.Store().Decode([]byte(`{"metadata":{"name":"a","uid":"u"},"usage":`+usage+`}`), "v1", "X")
		if err != nil {
			t.Fatal(err)
		}
		r.Store().Apply("", cache.Modified, o)
		if err := u.Update(t.Context(), locker(func() {})); err != nil {
			t.Fatal(err)
		}
		if sink[r.Spec().Resource][cache.Key{Name: "a"}] != o {
			t.Errorf("usage %s: it was not read", usage)
		}
	}
}

// TestGoneInFailure: what goes away while an update fails is taken out by the
// next.
func TestGoneInFailure(t *testing.T) {
	pods, maps := newResource(t, "pods"), newResource(t, "configmaps")
	apply(t, pods, cache.Added, "a", 10)
	apply(t, maps, cache.Added, "b", 10)
	resources := []Resource{pods, maps}
	sink := entered{}
	u := NewUpdater(func() []Resource { return resources }, sink)
	defer u.Close()
	held := 0
	update := func(ctx context.Context) error { return u.Update(ctx, locker(func() { held++ })) }
	if err := update(t.Context()); err != nil || sink.text() != "configmaps/b@10 pods/a@10" {
		t.Fatalf("%s (%v)", sink.text(), err)
	}
	pods.Renew(t)
	apply(t, pods, cache.Added, "a", 11)
	resources = []Resource{pods}
	if err := update(failing{t.Context()}); err == nil {
		t.Fatal("no error of a context that ended")
	}
	if held != 1 {
		t.Error("locked after an error")
	}
	if err := update(t.Context()); err != nil || sink.text() != "pods/a@11" {
		t.Errorf("%s (%v), want pods/a@11", sink.text(), err)
	}
}

// TestCurrentWaitsForNobody: where nothing changed, who asks does not wait for others that
// ask, and where something did, it is entered first.
func TestCurrentWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newResource(t, "pods")
		defer pods.Store().Close()
		sink := entered{}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		current := func(held locker) {
			t.Helper()
			if err := u.Current(t.Context(), held); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		tell := locker(func() { told++ })
		apply(t, pods, cache.Added, "a", 10)
		current(tell)
		current(locker(func() {
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				current(tell)
			}()
			<-asked
		}))
		if told != 2 || sink.text() != "pods/a@10" {
			t.Errorf("told %d times of %s", told, sink.text())
		}
		for _, step := range []struct {
			want   string
			change func()
		}{
			{"pods/a@11", func() { apply(t, pods, cache.Modified, "a", 11) }},
			{"", func() { pods.State = cache.Syncing }},
			{"pods/a@11", func() { pods.State = cache.Live }},
			{"", func() { pods.Store().Close(); pods.Renew(t) }},
			{"pods/a@12", func() { apply(t, pods, cache.Added, "a", 12) }},
		} {
			step.change()
			current(tell)
			if got := sink.text(); got != step.want {
				t.Errorf("entered is %q, want %q", got, step.want)
			}
		}
	})
}

// TestCurrentIsHeld: what changes between the look and the lock is entered first.
func TestCurrentIsHeld(t *testing.T) {
	pods := newResource(t, "pods")
	sink := entered{}
	u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
	defer u.Close()
	if err := u.Update(t.Context(), locker(func() {})); err != nil {
		t.Fatal(err)
	}
	locks := 0
	err := u.Current(t.Context(), locker(func() {
		if locks++; locks == 1 { // somebody else was first
			apply(t, pods, cache.Added, "a", 10)
			if err := u.Update(t.Context(), locker(func() {})); err != nil {
				t.Error(err)
			}
			apply(t, pods, cache.Added, "b", 11)
		}
	}))
	if err != nil || locks != 2 || sink.text() != "pods/a@10 pods/b@11" {
		t.Errorf("%v after %d locks: %s", err, locks, sink.text())
	}
}

// TestCurrentWaitsForOne: of many who ask while something changed one enters it, and the
// others are no queue.
func TestCurrentWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newResource(t, "pods")
		defer pods.Store().Close()
		sink := &slowSink{entered: entered{}, enter: make(chan struct{})}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		apply(t, pods, cache.Added, "a", 10)
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				if err := u.Current(t.Context(), locker(func() {})); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(sink.enter)
		asking.Wait()
		if sink.updates != 1 {
			t.Errorf("%d updates", sink.updates)
		}
	})
}

// slowSink counts updates, which wait until they may enter something.
type slowSink struct {
	entered
	enter   chan struct{}
	updates int
}

func (s *slowSink) Learn([]Delta) bool {
	s.updates++
	<-s.enter
	return true
}

// TestLooksHoldUpNobody: while an update finds that nothing changed, who asks does not wait
// for it.
func TestLooksHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newResource(t, "pods")
		defer pods.Store().Close()
		sink := &slowSink{entered: entered{}, enter: make(chan struct{}, 1)}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		ask := func(how func(context.Context, sync.Locker) error) {
			if err := how(t.Context(), locker(func() {})); err != nil {
				t.Error(err)
			}
		}
		sink.enter <- struct{}{}
		ask(u.Current)
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			ask(u.Update)
		}()
		synctest.Wait()
		ask(u.Current)
		sink.enter <- struct{}{}
		<-looked
		if sink.updates != 2 {
			t.Errorf("%d updates", sink.updates)
		}
	})
}

// slow is a Sink that takes a moment for each object, and counts how many are read at once.
type slow struct {
	entered
	now, most atomic.Int32
	largest   int // of what was entered at a time
}

// Enter notes how much is entered at a time.
func (s *slow) Enter(r cache.Resource, read []*cache.Object, gone []cache.Key) {
	s.largest = max(s.largest, len(read))
	s.entered.Enter(r, read, gone)
}

func (s *slow) Read(r cache.Resource, o *cache.Object) *cache.Object {
	defer s.now.Add(-1)
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	time.Sleep(time.Millisecond)
	return o
}

func manyPods(t *testing.T, count int) *followtest.Resource {
	t.Helper()
	pods := newResource(t, "pods")
	for n := range count {
		apply(t, pods, cache.Added, fmt.Sprint(n), n+10)
	}
	return pods
}

// TestPrepare: what nobody waits for takes half of one processor; with somebody waiting it
// goes on like any other update at once, and is not done twice.
func TestPrepare(t *testing.T) {
	const objects = 3 * batch
	aBit := bit * time.Millisecond
	for name, arrives := range map[string]time.Duration{
		"nobody waits": 0, "while it reads": 6*aBit + aBit/2, "while it rests": 7*aBit + time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := manyPods(t, objects)
				defer pods.Store().Close()
				sink := &slow{entered: entered{}}
				u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
				defer u.Close()
				began := time.Now()
				prepared := make(chan error, 1)
				go func() { prepared <- u.Prepare(t.Context()) }()
				want, most := (1+restsFor)*objects*time.Millisecond, 1
				if arrives > 0 {
					time.Sleep(arrives)
					if err := u.Update(t.Context(), locker(func() {})); err != nil {
						t.Error(err)
					}
					most = min(cache.Workers(), batch/32) // as many as find something to read
					want = arrives + aBit + time.Duration(float64(objects-arrives.Milliseconds()/(1+restsFor))/float64(most))*time.Millisecond
				}
				if err := <-prepared; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > want {
					t.Errorf("it took %v, want %v", took, want)
				}
				if got := int(sink.most.Load()); got != most {
					t.Errorf("%d objects read at once, want %d", got, most)
				}
				if got := len(sink.entered[pods.Spec().Resource]); got != objects {
					t.Errorf("%d objects entered", got)
				}
			})
		})
	}
}

// TestPrepareInterrupted: what is to be forgotten is not prepared to its end first.
func TestPrepareInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(t, 2*batch)
		defer pods.Store().Close()
		u := NewUpdater(func() []Resource { return []Resource{pods} }, &slow{entered: entered{}})
		defer u.Close()
		u.Interrupt()() // nothing
		prepared := make(chan error, 1)
		go func() { prepared <- u.Prepare(t.Context()) }()
		time.Sleep(bit * 3 / 2 * time.Millisecond)
		began := time.Now()
		done := u.Interrupt()
		if err := <-prepared; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > bit*time.Millisecond {
			t.Errorf("it took %v more", took)
		}
		if err := u.Prepare(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("one that begins meanwhile: error %v", err)
		}
		done()
		if err := u.Prepare(t.Context()); err != nil {
			t.Errorf("one that begins after it: error %v", err)
		}
	})
}

// TestPrepareWaitsInterrupted: one that waits for somebody else's update is interrupted, too.
func TestPrepareWaitsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(t, 2*batch)
		defer pods.Store().Close()
		u := NewUpdater(func() []Resource { return []Resource{pods} }, &slow{entered: entered{}})
		defer u.Close()
		ctx, cancel := context.WithCancel(t.Context())
		updated, prepared := make(chan error, 1), make(chan error, 1)
		go func() { updated <- u.Update(ctx, locker(func() {})) }()
		synctest.Wait()
		go func() { prepared <- u.Prepare(t.Context()) }()
		synctest.Wait()
		defer u.Interrupt()()
		if err := <-prepared; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		cancel()
		<-updated
	})
}

// TestGoneAfterPart: of what an update entered a part of before it ended, nothing is left once
// it is gone.
func TestGoneAfterPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(t, 2*batch)
		defer pods.Store().Close()
		resources := []Resource{pods}
		sink := &slow{entered: entered{}}
		u := NewUpdater(func() []Resource { return resources }, sink)
		defer u.Close()
		ctx, cancel := context.WithTimeout(t.Context(), ((1+restsFor)*batch+batch/2)*time.Millisecond)
		defer cancel()
		if err := u.Prepare(ctx); err == nil {
			t.Fatal("no error of a context that ended")
		}
		if n := len(sink.entered[pods.Spec().Resource]); n == 0 || n == 2*batch || sink.largest > bit {
			t.Fatalf("%d objects were entered, up to %d at a time: not a part, bit by bit", n, sink.largest)
		}
		resources = nil
		if err := u.Update(t.Context(), locker(func() {})); err != nil {
			t.Fatal(err)
		}
		if n := len(sink.entered[pods.Spec().Resource]); n != 0 {
			t.Errorf("%d objects of what is gone are left", n)
		}
	})
}

// TestPrepareAfterFailure: an update of somebody else that fails has prepared nothing.
func TestPrepareAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(t, 2*batch)
		defer pods.Store().Close()
		sink := &slow{entered: entered{}}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- u.Update(ctx, locker(func() {})) }()
		synctest.Wait()
		go func() {
			time.Sleep(time.Millisecond)
			cancel()
		}()
		if err := u.Prepare(t.Context()); err != nil || len(sink.entered[pods.Spec().Resource]) != 2*batch {
			t.Errorf("%d objects entered (%v)", len(sink.entered[pods.Spec().Resource]), err)
		}
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("the first update: %v", err)
		}
	})
}

// TestPrepareEnds: it ends with its context, while it rests, too.
func TestPrepareEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(t, 2*batch)
		defer pods.Store().Close()
		sink := &slow{entered: entered{}}
		u := NewUpdater(func() []Resource { return []Resource{pods} }, sink)
		defer u.Close()
		ctx, cancel := context.WithTimeout(t.Context(), batch*3/2*time.Millisecond)
		defer cancel()
		if err := u.Prepare(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if err := u.Prepare(t.Context()); err != nil || len(sink.entered[pods.Spec().Resource]) != 2*batch {
			t.Errorf("%d objects entered (%v)", len(sink.entered[pods.Spec().Resource]), err)
		}
	})
}
