package replica

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// TestAgeOfASucceeded: a copy whose successor is being listed is not followed any more.
// It answers on and says so: its age is the time since its last proof, it is not live
// after the lease, and why is told. So it is for as long as it takes.
func TestAgeOfASucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("a", "1")
		d := deceive(t, l, Options{}, specOf("pods"), specOf("r1"))
		d.becomes(10*time.Second, cache.Live)
		time.Sleep(10 * time.Minute)
		proof, truth := d.pods().View().Proof, l.truth("pods")
		l.each(func(m *member) {
			m.answer = func(verb, resource string) int {
				if resource == "pods" && (verb == "list" || verb == "watchlist") {
					return 500
				}
				return 0
			}
		})
		rule := specOf("pods")
		rule.LabelSelector = "!hidden"
		if err := d.Apply("c", []cache.Spec{rule, specOf("r1")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // by now nobody follows it
		l.put("a", "2")
		time.Sleep(Lease)
		for range 10 {
			v := d.pods().View()
			if age, known := v.Age(); v.State != cache.Stale || !known || age < time.Since(proof)-time.Minute-bookmarkEvery || !strings.Contains(v.Reason, "its rule has changed") {
				t.Errorf("the copy is %s, of age %v, %q", v.State, age, v.Reason)
			}
			if got := held(v.Store(inside.Cache)); got["team-a/a"] != truth["team-a/a"] {
				t.Errorf("it answers %v, want %v", got, truth)
			}
			if other := d.of("r1").View(); other.State != cache.Live {
				t.Errorf("another resource is %s: %s", other.State, other.Reason)
			}
			time.Sleep(time.Minute)
		}
		l.each(func(m *member) { m.answer = nil })
		d.becomes(15*time.Second, cache.Live)
		d.equal(0)
	})
}

// TestRuleAndHistoryAtOnce: a history that ends between the copy of one rule and the
// listing of the next is not gone on with: who watched from before has to list, even if
// versions have passed again.
func TestRuleAndHistoryAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("a", "1")
		d := deceive(t, l, Options{})
		d.becomes(10*time.Second, cache.Live)
		i := d.pods()
		sub, err := i.View().Store(inside.Cache).Watch("")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		i.halt() // what its goroutine does is done by hand
		f := i.feedNow()
		i.cluster.rewritten(f.history, errRewritten)
		l.pass(1000)
		rule := specOf("pods")
		rule.LabelSelector = "!hidden"
		if _, err := i.adopt(rule); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for why := i.outdated(); why != nil; {
			if why = i.succeed(ctx, why); why != nil && !why.history {
				t.Fatal(why.reason)
			}
		}
		if events, err := sub.Next(ctx); !errors.Is(err, cache.ErrStopped) {
			t.Errorf("a watch of the history before: %v, %v, want it to end", events, err)
		}
	})
}

// TestRestoredBehindARuleChange: etcd is restored while the copy of another rule is
// filled, and nothing but that copy shows it: it has an object in an older version.
// Readers begin anew, here and of every other resource. They are not told of the older
// version as if it were news.
func TestRestoredBehindARuleChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, d, o := grown(t, 1, Options{})
		backup := l.backup()
		for _, name := range numbered("p", 12) {
			l.put(name, "lost")
		}
		d.equal(10 * time.Second)
		time.Sleep(time.Second)
		o.stop()
		before, other := d.pods().View().Store(inside.Cache), d.of("r1").View().Store(inside.Cache)
		sub, err := before.Watch("")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		l.each(func(m *member) {
			m.answer = func(verb, resource string) int {
				if resource == "pods" && (verb == "list" || verb == "watchlist") {
					return 500
				}
				return 0
			}
		})
		rule := specOf("pods")
		rule.LabelSelector = "!hidden"
		if err := d.Apply("c", []cache.Spec{rule, specOf("r1")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		l.restore(backup)
		l.pass(backup + 1000)
		l.restart()
		l.each(func(m *member) { m.answer = nil })
		d.equal(time.Minute)
		d.becomes(time.Minute, cache.Live)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if events, err := sub.Next(ctx); !errors.Is(err, cache.ErrStopped) {
			t.Errorf("a watch of the history before: %d events, %v, want it to end", len(events), err)
		}
		if d.of("r1").View().Store(inside.Cache) == other {
			t.Error("another resource has the store of the history before")
		}
	})
}

// TestTakesAway: what is held is enough for a rule only if nothing of what that asks for
// was cut.
func TestTakesAway(t *testing.T) {
	with := func(drop, redact []string) cache.Spec {
		s := fakeSpec
		s.Drop, s.Redact = drop, redact
		return s
	}
	for _, c := range []struct {
		before, after cache.Spec
		enough        bool
	}{
		{with(nil, nil), with([]string{"spec.a"}, []string{"data"}), true},
		{with([]string{"spec.a"}, nil), with(nil, nil), false},
		{with(nil, []string{"data"}), with(nil, nil), false},
		{with(nil, []string{"data"}), with([]string{"metadata.annotations"}, []string{"data"}), true},
		// Where anything is redacted, the annotation of kubectl apply is cut, too.
		{with(nil, []string{"data"}), with([]string{"data"}, nil), false},
		{with(nil, []string{"data"}), with([]string{"data", "metadata.annotations"}, nil), true},
	} {
		if got := takesAway(c.before, c.after); got != c.enough {
			t.Errorf("from drop %v redact %v to drop %v redact %v: %v", c.before.Drop, c.before.Redact, c.after.Drop, c.after.Redact, got)
		}
	}
}

// TestReloadWhileTakingOver: the indexes of a reload are there whether it comes before,
// while or after a successor takes over, which was begun with the indexes of before.
func TestReloadWhileTakingOver(t *testing.T) {
	before, after := specOf("pods"), specOf("pods")
	after.Indexes = map[string]string{"value": "spec.value"}
	rule := before
	rule.LabelSelector = "!hidden"
	for range 200 {
		f := NewFactory(Options{})
		i := newInformer(f, newCluster("c", "", f.options.retry, f.log), before)
		i.store().Replace("", nil, "100")
		store, err := cache.NewStore(rule, cache.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		store.Replace("", nil, "200")
		next := i.newFeed(rule, store)
		i.begin(&succession{reason: "its rule has changed"}, next)
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			i.takeOver(&succession{reason: "its rule has changed"}, next)
		}()
		if _, err := i.adopt(after); err != nil {
			t.Fatal(err)
		}
		<-taken
		if got := i.Status().Indexes; !slices.Contains(got, "value") {
			t.Fatalf("the indexes are %v", got)
		}
	}
}

// TestTightensForTwoCopies: less garbage may lie about while a copy is made beside another, and not
// while the first one is.
func TestTightensForTwoCopies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("a", "1")
		var began, ended atomic.Int32
		d := deceive(t, l, Options{Tighten: func() func() {
			began.Add(1)
			return func() { ended.Add(1) }
		}})
		d.becomes(10*time.Second, cache.Live)
		if n := began.Load(); n > 0 {
			t.Errorf("%d times while the only copy was made", n)
		}
		rule := specOf("pods")
		rule.Drop = []string{"spec.none"}
		for want, rule := range []cache.Spec{rule, specOf("pods")} {
			if err := d.Apply("c", []cache.Spec{rule}); err != nil {
				t.Fatal(err)
			}
			within(t, time.Minute, "another copy", func() bool { return sameCopy(d.pods().View().Spec, rule) })
			synctest.Wait()
			if got := int(began.Load()); got <= want || ended.Load() != began.Load() {
				t.Errorf("after change %d it began %d times and ended %d times", want+1, got, ended.Load())
			}
		}
	})
}
