package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// begins begins a list in the background, and returns where it arrives when it has a place.
func begins(ctx context.Context, t *testing.T, in *intake, cluster string) <-chan *reading {
	t.Helper()
	began := make(chan *reading, 1)
	before := in.waiters()
	go func() {
		r, err := in.begin(ctx, cluster)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		began <- r
	}()
	eventually(t, "it waits, or has its place", func() bool { return len(began) == 1 || in.waiters() > before })
	return began
}

func (in *intake) waiters() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.waiting)
}

// looks sets the time between looks of an intake that is in use.
func (in *intake) looks(every time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.look = every
}

func (in *intake) idle() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.taken == 0 && len(in.waiting) == 0 && len(in.under) == 0
}

func (r *reading) hasPlace() bool {
	r.intake.mu.Lock()
	defer r.intake.mu.Unlock()
	return r.placed
}

// patient is an intake that looks at nothing by itself.
func patient(most int) *intake {
	in := newIntake(most)
	in.look = time.Hour
	return in
}

func mustBegin(t *testing.T, in *intake, cluster string) *reading {
	t.Helper()
	r, err := in.begin(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIntakeLimit: however many lists there are, no more have places than there are, and
// all are done in the end.
func TestIntakeLimit(t *testing.T) {
	in := newIntake(3)
	in.look = time.Millisecond // places are lost and taken again all the time
	var lists sync.WaitGroup
	for k := range 20 {
		for range 5 {
			lists.Go(func() {
				r, err := in.begin(t.Context(), fmt.Sprint("c", k))
				if err != nil {
					t.Error(err)
					return
				}
				defer r.end()
				for range 20 {
					if err := r.took(readingLeast / (1 + k%3)); err != nil {
						t.Error(err)
					}
					in.mu.Lock()
					if in.taken > in.most || in.taken < 0 {
						t.Errorf("%d places are taken of %d", in.taken, in.most)
					}
					in.mu.Unlock()
				}
			})
		}
	}
	lists.Wait()
	if !in.idle() {
		t.Errorf("after all lists: %+v", in)
	}
}

// TestIntakeHangs: a list that nothing comes of has its place for a moment, one that brings
// little goes on without one, and one that brings much again waits for a place, which it gets
// before a list that has not begun.
func TestIntakeHangs(t *testing.T) {
	in := patient(1)
	hangs := mustBegin(t, in, "hangs")
	next := begins(t.Context(), t, in, "well")
	if len(next) != 0 {
		t.Fatal("a second place of one")
	}
	hangs.looked()
	well := <-next
	if hangs.hasPlace() {
		t.Fatal("nothing came, and it has its place")
	}
	if err := hangs.took(readingLeast / 2); err != nil { // does not wait
		t.Fatal(err)
	}
	hangs.looked()
	third := begins(t.Context(), t, in, "third")
	much := make(chan error, 1)
	go func() { much <- errors.Join(hangs.took(readingLeast/2), hangs.took(readingLeast/2)) }()
	eventually(t, "it waits", func() bool { return in.waiters() == 2 })
	if err := well.took(readingLeast); err != nil {
		t.Fatal(err)
	}
	well.looked()
	if !well.hasPlace() || len(much)+len(third) != 0 {
		t.Fatal("much came, and its place is another's")
	}
	well.end()
	if err := <-much; err != nil || !hangs.hasPlace() {
		t.Fatalf("it was before the third: %v", err)
	}
	if len(third) != 0 {
		t.Fatal("a second place of one")
	}
	hangs.end()
	(<-third).end()
	if !in.idle() {
		t.Errorf("after all lists: %+v", in)
	}
}

// TestIntakePatience: a list that has begun and waits for a place again goes on without one
// after a while, before its server cuts it off, and waits no more. It still gives back what it
// has.
func TestIntakePatience(t *testing.T) {
	in := patient(1)
	in.patience = 20 * time.Millisecond
	first := mustBegin(t, in, "slow")
	first.looked() // it has lost its place
	second := mustBegin(t, in, "quick")
	for range 3 {
		if err := first.took(2 * readingLeast); err != nil {
			t.Fatal(err)
		}
	}
	if first.hasPlace() || !second.hasPlace() || in.waiters() != 0 {
		t.Error("it has a place that there is not, or waits")
	}
	in.mu.Lock()
	in.patience = time.Hour
	in.mu.Unlock()
	if err := first.took(readingLeast); err != nil { // does not wait, or this test never ends
		t.Fatal(err)
	}
	first.end()
	second.end()
	if !in.idle() {
		t.Errorf("after all lists: %+v", in)
	}
}

// TestIntakeLooksAnew: a list that gets a place again has it for a whole look.
func TestIntakeLooksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(1)
		first := mustBegin(t, in, "a")
		time.Sleep(in.look + in.look/4) // nothing came: it lost its place, and the next look is due
		second := mustBegin(t, in, "b")
		got := make(chan error, 1)
		go func() { got <- first.took(readingLeast) }()
		time.Sleep(in.look / 2)
		second.end() // a quarter of a look before the first one is looked at
		synctest.Wait()
		if err := <-got; err != nil || !first.hasPlace() {
			t.Fatalf("it has no place: %v", err)
		}
		time.Sleep(in.look / 2)
		synctest.Wait()
		if !first.hasPlace() {
			t.Error("it has lost its place before a look was over")
		}
		first.end()
	})
}

// TestIntakeLooks: that happens by itself.
func TestIntakeLooks(t *testing.T) {
	in := newIntake(1)
	in.look = 10 * time.Millisecond
	for n := range 20 { // each hangs
		defer mustBegin(t, in, fmt.Sprint("c", n)).end()
	}
}

// TestIntakeFair: a cluster with many lists, which hang or not, has one more begun when
// those with fewer have had their turn.
func TestIntakeFair(t *testing.T) {
	in := patient(2)
	first, second := mustBegin(t, in, "many"), mustBegin(t, in, "many")
	var many []<-chan *reading
	for range 3 {
		many = append(many, begins(t.Context(), t, in, "many"))
	}
	few := begins(t.Context(), t, in, "few")
	first.looked() // and is under way still
	r := <-few
	if len(many[0]) != 0 {
		t.Fatal("a place of a cluster with two lists under way, where another had none")
	}
	second.end()
	another := <-many[0] // each has one under way: who came first
	r.end()
	last := <-many[1]
	another.end()
	(<-many[2]).end()
	last.end()
	first.end()
	if !in.idle() {
		t.Errorf("after all lists: %+v", in)
	}
}

// TestIntakeGivenUp: a list that is given up while it waits takes no place with it.
func TestIntakeGivenUp(t *testing.T) {
	in := patient(1)
	holder := mustBegin(t, in, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := begins(ctx, t, in, "b")
	why := errors.New("removed")
	cancel(why)
	if r := <-waits; r != nil {
		t.Fatal("it has begun")
	}
	if _, err := in.begin(ctx, "b"); !errors.Is(err, why) {
		t.Errorf("begin() = %v, want %v", err, why)
	}
	// One that had begun as well.
	ctx, cancel = context.WithCancelCause(t.Context())
	holder.looked()
	lent := <-begins(ctx, t, in, "b")
	lent.looked()
	holder.end()
	other := mustBegin(t, in, "c")
	failed := make(chan error, 1)
	go func() { failed <- lent.took(readingLeast) }()
	eventually(t, "it waits", func() bool { return in.waiters() == 1 })
	cancel(why)
	if err := <-failed; !errors.Is(err, why) {
		t.Errorf("took() = %v, want %v", err, why)
	}
	lent.end()
	lent.looked() // its timer may have been about to
	other.end()
	if !in.idle() {
		t.Errorf("after all lists: %+v", in)
	}
}

// TestListsOfManyClusters: first lists of many clusters, plain and streamed, come in some at
// a time, while those of three clusters hang.
func TestListsOfManyClusters(t *testing.T) {
	for name, version := range map[string]string{"plain": "v1.36.3", "streamed": "v1.30.0"} {
		t.Run(name, func(t *testing.T) {
			const hanging, clusters = 3, 15
			var coming, most atomic.Int32
			r := prepareRig(t, newFakeAPI(t), Options{Concurrency: 1})
			r.intake.looks(2 * time.Second) // much longer than one that does not hang takes
			apis := make([]*fakeAPI, clusters)
			for k := range apis {
				api := newFakeAPI(t)
				api.uid, api.gitVersion = fmt.Sprint("uid-", k), version
				api.put(cache.Key{Namespace: "team-a", Name: "p1"}, "v1")
				api.fault = func(_ http.ResponseWriter, q *http.Request, verb string) bool {
					if verb != "list" && verb != "watchlist" {
						return false
					}
					if k < hanging {
						<-q.Context().Done()
						return true
					}
					// As long as what is listed was not begun by a list that lost its place.
					now := coming.Add(1)
					defer coming.Add(-1)
					for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
					}
					time.Sleep(20 * time.Millisecond)
					return false
				}
				apis[k] = api
				spec := fakeSpec
				spec.Cluster = fmt.Sprint("cluster-", k)
				if err := errors.Join(r.Apply(spec.Cluster, []cache.Spec{spec}), r.Connect(spec.Cluster, api.config())); err != nil {
					t.Fatal(err)
				}
			}
			r.begin()
			for k := hanging; k < clusters; k++ {
				resource := fakeSpec.Resource
				resource.Cluster = fmt.Sprint("cluster-", k)
				eventually(t, resource.Cluster+" is live", func() bool {
					i, err := r.Informer(resource)
					return err == nil && i.View().State == cache.Live
				})
			}
			if limit := int32(r.intake.most); most.Load() > limit {
				t.Errorf("%d lists at once, of at most %d", most.Load(), limit)
			}
			verb := map[string]string{"plain": "list", "streamed": "watchlist"}[name]
			if apis[clusters-1].count(verb) != 1 {
				t.Errorf("%d %ss of the last", apis[clusters-1].count(verb), verb)
			}
		})
	}
}

// TestListDatesFromItsTurn: what a list proves is of when it was asked for, however long it
// had to wait before that.
func TestListDatesFromItsTurn(t *testing.T) {
	for name, version := range map[string]string{"plain": "v1.36.3", "streamed": "v1.30.0"} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			api.gitVersion = version
			taken := make(chan struct{}) // closed when others have all places
			api.fault = func(_ http.ResponseWriter, q *http.Request, verb string) bool {
				if verb == "identity" { // nothing is listed before it is known
					select {
					case <-taken:
					case <-q.Context().Done():
					}
				}
				return false
			}
			r := prepareRig(t, api, Options{})
			r.intake.looks(time.Hour)
			var others []*reading
			for range r.intake.most {
				others = append(others, mustBegin(t, r.intake, "others"))
			}
			close(taken)
			r.begin()
			eventually(t, "it waits", func() bool { return r.intake.waiters() == 1 })
			time.Sleep(50 * time.Millisecond)
			if n := api.count("list") + api.count("watchlist"); n != 0 {
				t.Fatalf("%d lists before its turn", n)
			}
			turn := time.Now()
			for _, o := range others {
				o.end()
			}
			r.becomes(t, cache.Live)
			if v := r.pods().View(); v.Proof.Before(turn) {
				t.Errorf("proven %v before it was asked for", turn.Sub(v.Proof))
			}
		})
	}
}
