package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

// pathFilter matches where the member at a path is a text, and notes how much it was given to
// read.
type pathFilter struct {
	path rawjson.Path
	want string
	read *atLeast
}

type atLeast struct {
	mu       sync.Mutex
	longest  int
	distinct int
}

func (f pathFilter) String() string                          { return f.path.String() + f.want }
func (f pathFilter) Hints() Hints                            { return Hints{} }
func (f pathFilter) Clock() bool                             { return false }
func (f pathFilter) OfIdentity() bool                        { return false }
func (f pathFilter) Within() (paths []rawjson.Path, ok bool) { return []rawjson.Path{f.path}, true }
func (f pathFilter) Match(_ context.Context, raw []byte) (ok bool, cost uint64, err error) {
	f.read.mu.Lock()
	f.read.longest = max(f.read.longest, len(raw))
	f.read.mu.Unlock()
	return wantsAt(raw, f.path, f.want)
}

func wantsAt(raw []byte, path rawjson.Path, want string) (ok bool, cost uint64, err error) {
	e, err := rawjson.CompileExtractor([]rawjson.Path{path})
	if err != nil {
		return false, 0, err
	}
	err = e.Each(raw, func(v rawjson.Value) bool { ok = ok || string(v.Text) == want; return true })
	return ok, 1, err
}

// numbered is an object whose spec.n changes, much longer than that.
func numbered(t testing.TB, s *Store, i, n, version int) *Object {
	t.Helper()
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"team-%d","name":"thing-%d","uid":"uid-%d","resourceVersion":"%d"},"spec":{"n":%d,"text":%q},"status":{"n":"%d"}}`,
		i%7, i, i, version, n, strings.Repeat(fmt.Sprint("text of ", i, " "), 40), i%3)
	o, err := s.Decode([]byte(raw), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func numberedStore(t testing.TB, n int) *Store {
	t.Helper()
	s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
	var all []*Object
	for i := range n {
		all = append(all, numbered(t, s, i, i%10, i+1))
	}
	s.Replace("", all, fmt.Sprint(n))
	return s
}

// TestExcerptsSayTheSame asks the same again and again while objects come, change and go.
func TestExcerptsSayTheSame(t *testing.T) {
	s := numberedStore(t, 600)
	random := rand.New(rand.NewPCG(1, 2))
	version := 10_000
	read := &atLeast{}
	for round := range 60 {
		for range random.IntN(30) {
			version++
			i := random.IntN(700)
			if kind := random.IntN(4); kind == 0 {
				s.Apply("", Deleted, numbered(t, s, i, 0, version))
			} else {
				s.Apply("", Modified, numbered(t, s, i, random.IntN(10), version))
			}
		}
		for _, path := range []string{"spec.n", "status.n"} {
			p, err := rawjson.ParsePath(path)
			if err != nil {
				t.Fatal(err)
			}
			read.longest = 0
			want := fmt.Sprint(random.IntN(10))
			q := Query{Filter: pathFilter{path: p, want: want, read: read}}
			selected := selectedKeys(t, s, q)
			var all []string
			for _, o := range s.objectsOf("") {
				raw, err := o.JSON()
				if err != nil {
					t.Fatal(err)
				}
				if ok, _, err := wantsAt(raw, p, want); err != nil {
					t.Fatal(err)
				} else if ok {
					all = append(all, o.Key().String())
				}
			}
			slices.Sort(all)
			if !slices.Equal(selected, all) {
				t.Fatalf("round %d: %s == %s selects %d objects, want %d", round, path, want, len(selected), len(all))
			}
			if round > excerptAfter && read.longest > 100 {
				t.Fatalf("round %d: %d bytes of an object were read", round, read.longest)
			}
		}
	}
	for _, path := range []string{"spec.n", "status.n"} {
		p := mustPaths(t, path)[0]
		found, err := s.Select(t.Context(), Query{Filter: pathFilter{path: p, want: "1", read: read}})
		if err != nil {
			t.Fatal(err)
		}
		if found.Plan.Excerpts != s.Len() || found.Plan.Scanned != s.Len() {
			t.Errorf("%s: %d of %d objects are told to have excerpts, of %d", path, found.Plan.Excerpts, found.Plan.Scanned, s.Len())
		}
	}
	x := s.extraction.Load().excerpts
	for name, set := range x.sets {
		if kept := set.objects.Load(); kept != int64(s.Len()) {
			t.Errorf("%s: %d excerpts of %d objects", name, kept, s.Len())
		}
	}
	if x.live.Load() != int64(s.Len()) || x.held() > x.limit.Load() {
		t.Errorf("%d objects of %d, %d bytes of %d", x.live.Load(), s.Len(), x.held(), x.limit.Load())
	}
}

// TestExcerptsSortTheSame: what is sorted by paths that no index covers comes in the same order
// from excerpts, while objects come, change and go.
func TestExcerptsSortTheSame(t *testing.T) {
	s := numberedStore(t, 600)
	random := rand.New(rand.NewPCG(3, 4))
	version := 10_000
	for round := range 20 {
		for range random.IntN(30) {
			version++
			s.Apply("", Modified, numbered(t, s, random.IntN(700), random.IntN(10), version))
		}
		for _, text := range []string{"spec.n", "-spec.n,metadata.name", "status.n,-spec.n", "-metadata.name"} {
			order, err := ParseOrder(text)
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.Select(t.Context(), Query{Sort: order})
			if err != nil {
				t.Fatal(err)
			}
			want := s.objectsOf("")
			if err := order.Sort(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(found.Objects, want) {
				t.Fatalf("round %d: sorted by %s is another order", round, order)
			}
		}
	}
	for _, name := range []string{"spec.n", "spec.n,status.n"} {
		if set := s.extraction.Load().excerpts.sets[name]; set == nil || set.objects.Load() != int64(s.Len()) {
			t.Errorf("%s: no excerpts of all objects", name)
		}
	}
}

func selectedKeys(t *testing.T, s *Store, q Query) []string {
	t.Helper()
	found, err := s.Select(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range found.Objects {
		keys = append(keys, o.Key().String())
	}
	slices.Sort(keys)
	return keys
}

func mustPaths(t testing.TB, names ...string) (all []rawjson.Path) {
	t.Helper()
	for _, name := range names {
		p, err := rawjson.ParsePath(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// fill asks about paths until excerpts are kept, and reads all objects.
func fill(t testing.TB, x *excerpts, objects []*Object, names ...string) *excerptSet {
	t.Helper()
	if x.live.Load() < int64(len(objects)) {
		x.live.Store(int64(len(objects)))
	}
	var set *excerptSet
	for range excerptAfter + 1 {
		set = x.about(mustPaths(t, names...), len(objects))
	}
	if set == nil {
		return nil
	}
	excerptAll(t, set, objects)
	return set
}

func excerptAll(t testing.TB, set *excerptSet, objects []*Object) {
	for _, o := range objects {
		got, err := set.append([]byte("before"), o)
		if err != nil || !strings.HasPrefix(string(got), "before{") || !json.Valid(got[len("before"):]) {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// TestExcerptsAreBounded: in what they take, and in how long they are kept.
func TestExcerptsAreBounded(t *testing.T) {
	objects := numberedStore(t, 1000).objectsOf("")
	t.Run("few objects", func(t *testing.T) {
		if set := fill(t, newExcerpts(), objects[:excerptFrom-1], "spec.n"); set != nil {
			t.Error("are kept")
		}
	})
	t.Run("long ones", func(t *testing.T) {
		x := newExcerpts()
		if set := fill(t, x, objects, "spec"); set.objects.Load() != 0 {
			t.Errorf("%d are kept", set.objects.Load())
		}
		if set := x.about(mustPaths(t, "spec"), len(objects)); set != nil {
			t.Error("are made in vain again")
		}
	})
	t.Run("many sets", func(t *testing.T) {
		x := newExcerpts()
		x.few = 0
		for i := range excerptSets + 5 {
			fill(t, x, objects, "spec.n", fmt.Sprint("metadata.labels.a", i))
			room := int64(len(objects) * excerptEach)
			if held := x.held(); held > room || len(x.sets) > excerptSets {
				t.Fatalf("after %d sets: %d bytes of %d, %d sets", i+1, held, room, len(x.sets))
			}
		}
		if set := x.about(mustPaths(t, fmt.Sprint("metadata.labels.a", excerptSets+4), "spec.n"), len(objects)); set == nil || set.objects.Load() != int64(len(objects)) {
			t.Error("of those that were asked about last not all are kept")
		}
	})
	t.Run("a question about few", func(t *testing.T) {
		x := newExcerpts()
		set := fill(t, x, objects, "spec.n")
		fill(t, x, objects[:excerptFrom], "status.n")
		if n := set.objects.Load(); n != int64(len(objects)) {
			t.Errorf("leaves %d of %d", n, len(objects))
		}
	})
	t.Run("no room", func(t *testing.T) {
		x := newExcerpts()
		set := fill(t, x, objects[:excerptFrom], "spec.n")
		x.limit.Store(x.held() + 1000)
		excerptAll(t, set, objects)
		if got, room := x.held(), x.limit.Load(); got > room || got < room-200 {
			t.Errorf("%d bytes are kept, and there is room for %d", got, room)
		}
	})
	t.Run("many sets at once", func(t *testing.T) {
		x := newExcerpts()
		x.few = 0
		x.live.Store(300)
		var sets []*excerptSet
		for range excerptAfter + 1 {
			sets = nil
			for i := range 20 {
				sets = append(sets, x.about(mustPaths(t, "spec.n", fmt.Sprint("metadata.labels.a", i)), 300))
			}
		}
		var wg sync.WaitGroup
		for _, set := range sets {
			wg.Go(func() { excerptAll(t, set, objects[:300]) })
		}
		wg.Wait()
		if x.held() > 300*excerptEach || x.held() < 300*excerptEach/2 {
			t.Errorf("%d bytes are kept of 300 objects", x.held())
		}
	})
	t.Run("one question each", func(t *testing.T) {
		x := newExcerpts()
		set := fill(t, x, objects, "spec.n")
		for i := range 2 * excerptSets {
			x.about(mustPaths(t, fmt.Sprint("spec.n", i)), len(objects))
		}
		if n := set.objects.Load(); n != int64(len(objects)) {
			t.Errorf("leave %d of %d", n, len(objects))
		}
	})
	t.Run("many paths", func(t *testing.T) {
		var names []string
		for i := range excerptPaths + 1 {
			names = append(names, fmt.Sprint("spec.n", i))
		}
		if set := fill(t, newExcerpts(), objects, names...); set != nil {
			t.Error("are kept")
		}
	})
	t.Run("forgotten while it is read", func(t *testing.T) {
		x := newExcerpts()
		set := fill(t, x, objects[:excerptFrom], "spec.n")
		if !x.forgetAll(time.Hour) || x.forgetAll(time.Hour) {
			t.Error("there was something once")
		}
		excerptAll(t, set, objects)
		if x.held() != 0 || fill(t, x, objects, "spec.n") != nil {
			t.Errorf("%d bytes are kept", x.held())
		}
	})
	t.Run("of objects that are gone", func(t *testing.T) {
		s := numberedStore(t, 600)
		x := s.extraction.Load().excerpts
		for version := range 20 {
			for i := range 100 {
				s.Apply("", Modified, numbered(t, s, i, version, 5000+100*version+i))
			}
			set := fill(t, x, s.objectsOf(""), "spec.n")
			if n := set.objects.Load(); n != 600 {
				t.Fatalf("%d are kept of 600 objects", n)
			}
		}
	})
	t.Run("nobody asks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newExcerpts()
			fill(t, x, objects, "spec.n")
			for range 10 {
				time.Sleep(excerptIdle / 2)
				x.about(mustPaths(t, "status.n"), len(objects))
			}
			if n := x.known(); n != 1 {
				t.Errorf("there are %d sets", n)
			}
			time.Sleep(3 * excerptIdle)
			if n := x.known(); n != 0 || x.held() != 0 {
				t.Errorf("there are %d sets after all", n)
			}
		})
	})
}

func (x *excerpts) known() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.sets)
}

// TestExcerptsAtOnce: many read and forget at the same time.
func TestExcerptsAtOnce(t *testing.T) {
	objects := numberedStore(t, 600).objectsOf("")
	x := newExcerpts()
	x.live.Store(600)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for round := range 20 {
				set := x.about(mustPaths(t, "spec.n"), len(objects))
				if set == nil {
					continue
				}
				for _, o := range objects {
					raw, err := set.append(nil, o)
					if err != nil || !strings.HasPrefix(string(raw), `{"spec":{"n":`) {
						t.Errorf("%s, %v", raw, err)
						return
					}
				}
				if (round+worker)%7 == 0 {
					set.forget()
				}
			}
		})
	}
	wg.Wait()
	for _, set := range x.sets {
		set.forget()
		if set.objects.Load() != 0 || set.bytes.Load() != 0 || x.held() != 0 {
			t.Errorf("nothing is kept, and counted as %d objects and %d bytes", set.objects.Load(), set.bytes.Load())
		}
	}
}
