package replica

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// TestAgeOfASecondTier: what another informerd answers is as old as it says.
func TestAgeOfASecondTier(t *testing.T) {
	asked := time.Now()
	for name, c := range map[string]struct {
		header http.Header
		want   time.Time
	}{
		"an API server":       {http.Header{}, asked},
		"a live informerd":    {http.Header{cache.StateHeader: {"live"}, cache.AgeHeader: {"12.500"}}, asked.Add(-12500 * time.Millisecond)},
		"one without a proof": {http.Header{cache.StateHeader: {"warm"}}, time.Time{}},
	} {
		if got := (&answer{header: c.header}).proof(asked); !got.Equal(c.want) {
			t.Errorf("%s: proven at %v, want %v", name, got, c.want)
		}
	}
	for annotation, want := range map[string]time.Duration{"3.250": 3250 * time.Millisecond, cache.AgeUnknown: 24 * time.Hour, "-1": 24 * time.Hour} {
		if got := toldAge(map[string]string{cache.AgeAnnotation: annotation}); got != want {
			t.Errorf("%q is %v, want %v", annotation, got, want)
		}
	}
	if got := toldAge(nil); got != 0 {
		t.Errorf("no annotation is %v", got)
	}
}

// TestBegins: each namespace begins by itself, and nothing begins anew that was never
// there, or has versions of its own.
func TestBegins(t *testing.T) {
	spec := specOf("pods")
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.SetSources([]string{"a", "b"})
	store.Replace("a", nil, "10")
	aggregated := spec
	aggregated.Aggregated = true
	for name, c := range map[string]struct {
		source *source
		want   bool
	}{
		"listed":              {&source{namespace: "a", spec: spec, store: store, after: time.Now()}, false},
		"not listed":          {&source{namespace: "b", spec: spec, store: store, after: time.Now()}, true},
		"the first":           {&source{namespace: "b", spec: spec, store: store}, false},
		"an aggregated API's": {&source{namespace: "b", spec: aggregated, store: store, after: time.Now()}, false},
	} {
		if got := c.source.begins(); got != c.want {
			t.Errorf("%s: begins() = %v", name, got)
		}
	}
}

// TestUndatedListTakesNothingBack: a first tier that does not know how old its copy is,
// since the clock was set back after it was saved, cannot prove anything by a list. It is
// no less behind for that.
func TestUndatedListTakesNothingBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("p0", "1")
		tt := twoTiers(t, l, Options{})
		before := l.backup()
		l.put("p0", "2")
		tt.equal(10 * time.Second)
		i, err := tt.second.Informer(specOf("pods").Resource)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for its goroutine, which reads what is set here
		s := i.feedNow().sources[0]
		s.copied, s.asked = true, time.Time{}
		if err := (sink{s}).goesBack(nil, fmt.Sprint(before)); !errors.Is(err, errBehind) {
			t.Errorf("a list of version %v over a copy of %s: %v", before, i.View().Store(inside.Cache).Version(), err)
		}
		if err := (sink{s}).goesBack(nil, fmt.Sprint(before+10)); err != nil {
			t.Errorf("a later list: %v", err)
		}
	})
}

// TestSecondTierTakesNothingOlder: while the history of the second turns out to be over,
// or a resource goes and comes back, the first is started again with what it saved long
// before. That is not what takes the place of a copy that was further.
func TestSecondTierTakesNothingOlder(t *testing.T) {
	for name, c := range map[string]struct {
		restored bool
		when     func(t *testing.T, f *Factory, specs []cache.Spec)
	}{
		"history": {true, func(t *testing.T, f *Factory, _ []cache.Spec) {
			c, err := f.cluster("c")
			if err != nil {
				t.Fatal(err)
			}
			c.rewritten(c.presentHistory(), errRewritten)
		}},
		"gone and back": {false, func(t *testing.T, f *Factory, specs []cache.Spec) {
			for _, specs := range [][]cache.Spec{specs[1:], specs} {
				if err := f.Apply("c", specs); err != nil {
					t.Fatal(err)
				}
			}
		}},
		"another rule": {false, func(t *testing.T, f *Factory, specs []cache.Spec) {
			other := slices.Clone(specs)
			other[0].LabelSelector = "app!=none"
			if err := f.Apply("c", other); err != nil {
				t.Fatal(err)
			}
		}},
		"gone and back, under another rule": {false, func(t *testing.T, f *Factory, specs []cache.Spec) {
			other := slices.Clone(specs)
			other[0].Drop = []string{"spec.other"}
			for _, specs := range [][]cache.Spec{specs[1:], specs, other} {
				time.Sleep(5 * time.Second)
				if err := f.Apply("c", specs); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, db := newLiar(1), newMemory()
				for _, name := range numbered("p", 12) {
					l.put(name, "1")
				}
				tt := twoTiers(t, l, Options{Snapshots: db})
				time.Sleep(5 * time.Second)
				db.failing(errors.New("disk full"))
				l.put("p0", "2")
				backup := l.backup()
				l.put("p1", "2")
				tt.equal(10 * time.Second)
				tt.kill()
				l.do(func() { l.refusing = true })
				l.hangUp()
				if c.restored {
					l.restore(backup)
					l.restart()
				}
				tt.start()
				time.Sleep(5 * time.Second)
				second := tt.cluster()
				history := second.presentHistory()
				c.when(t, tt.second, tt.specs)
				for range 60 {
					time.Sleep(time.Second)
					i, err := tt.second.Informer(specOf("pods").Resource)
					if err != nil {
						t.Fatal(err)
					}
					if !c.restored && second.presentHistory() != history {
						t.Fatal("a first tier that is behind was taken for another history")
					}
					if v := i.View(); v.Readable() && cache.Older(v.Store(inside.Cache).Version(), fmt.Sprint(backup+1)) {
						t.Fatalf("%s at %s, and was at %d", v.State, v.Store(inside.Cache).Version(), backup+1)
					}
				}
				l.do(func() { l.refusing = false })
				tt.equal(time.Minute)
				tt.live(30 * time.Second)
			})
		})
	}
}

// TestSecondTierIsRedacted: what the first redacts is told as changes without a new version,
// and goes from the second, too; so does what it shows again.
func TestSecondTierIsRedacted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		for _, name := range numbered("p", 12) {
			l.putIn("pods", name, "1", func(o *fakeObject) { o.secret = "hush" })
		}
		tt := twoTiers(t, l, Options{})
		for _, paths := range [][]string{{"spec.secret"}, nil} {
			specs := slices.Clone(tt.specs)
			specs[0].Redact = paths
			if err := tt.first.Apply("c", specs); err != nil {
				t.Fatal(err)
			}
			within(t, 10*time.Second, fmt.Sprintf("the second as the first, which redacts %v", paths), func() bool {
				i, err := tt.second.Informer(specOf("pods").Resource)
				if err != nil || !i.View().Readable() {
					return false
				}
				for _, o := range i.View().Store(inside.Cache).Holdings("").All() {
					raw, err := o.AppendJSON(nil)
					if err != nil || strings.Contains(string(raw), "hush") != (paths == nil) {
						return false
					}
				}
				return true
			})
		}
		i, err := tt.second.Informer(specOf("pods").Resource)
		if err != nil {
			t.Fatal(err)
		}
		if s := i.Status(); s.Relists != 1 || s.State != cache.Live {
			t.Errorf("the second is %s after %d relists, want live after the first list", s.State, s.Relists)
		}
	})
}
