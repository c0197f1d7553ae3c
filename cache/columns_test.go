package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

func decodedThing(t testing.TB, s *Store, raw string) *Object {
	t.Helper()
	o, err := s.Decode([]byte(raw), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// numbered is an object whose spec.n changes, much longer than that.
func numbered(t testing.TB, s *Store, i, n, version int) *Object {
	t.Helper()
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"team-%d","name":"thing-%d","uid":"uid-%d","resourceVersion":"%d"},"spec":{"n":%d,"text":%q},"status":{"n":"%d"}}`,
		i%7, i, i, version, n, strings.Repeat(fmt.Sprint("text of ", i, " "), 40), i%3)
	return decodedThing(t, s, raw)
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

// TestColumnsSayTheSame asks the same again and again while objects come, change and go.
func TestColumnsSayTheSame(t *testing.T) {
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
			if round > columnAfter && read.longest > 100 {
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
	x := s.contents.columns
	for name, c := range x.sets {
		if c.rows != s.Len() {
			t.Errorf("%s: %d excerpts of %d objects", name, c.rows, s.Len())
		}
	}
	if x.held() > x.limit.Load() {
		t.Errorf("%d bytes of %d", x.held(), x.limit.Load())
	}
}

// TestColumnsSortTheSame: what is sorted by paths that no index covers comes in the same order
// from excerpts, while objects come, change and go.
func TestColumnsSortTheSame(t *testing.T) {
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
		if c := s.contents.columns.sets[name]; c == nil || c.rows != s.Len() {
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

// fill asks about paths until there is a column, and reads all objects.
func fill(t testing.TB, s *Store, names ...string) *column {
	t.Helper()
	var at *columnAt
	for range columnAfter + 1 {
		at = columnOf(s, s.Len(), names...)
	}
	if at == nil {
		return nil
	}
	readColumn(t, at)
	at.column.tidy()
	return at.column
}

// columnOf is a question about paths, of so many objects.
func columnOf(s *Store, objects int, names ...string) *columnAt {
	var paths []rawjson.Path
	for _, name := range names {
		p, err := rawjson.ParsePath(name)
		if err != nil {
			panic(err)
		}
		paths = append(paths, p)
	}
	m, err := s.Matcher(Query{Reads: [][]rawjson.Path{paths}})
	if err != nil {
		panic(err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if all := s.columnsLocked(m, objects); len(all) > 0 {
		return all[0]
	}
	return nil
}

// readColumn reads of all objects what at leads to, and what comes of it.
func readColumn(t testing.TB, at *columnAt) {
	for row, o := range at.contents.rows {
		if o == nil {
			continue
		}
		got, err := at.append([]byte("before"), uint32(row), o)
		if err != nil || !strings.HasPrefix(string(got), "before{") || !json.Valid(got[len("before"):]) {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// TestColumnsAreBounded: in what they take, and in how long they are kept.
func TestColumnsAreBounded(t *testing.T) {
	t.Run("few objects", func(t *testing.T) {
		if c := fill(t, numberedStore(t, columnFrom-1), "spec.n"); c != nil {
			t.Error("are kept")
		}
	})
	t.Run("long ones", func(t *testing.T) {
		s := numberedStore(t, 1000)
		if c := fill(t, s, "spec"); c.rows > columnFrom+1000/columnShared {
			t.Errorf("%d are kept", c.rows)
		}
		if columnOf(s, 1000, "spec") != nil || s.Stats().ColumnBytes != 0 {
			t.Error("are made in vain again")
		}
	})
	t.Run("long ones that objects share", func(t *testing.T) {
		s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
		var all []*Object
		for i := range 1000 {
			raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"thing-%d","uid":"u%d","resourceVersion":"%d"},"spec":{"text":%q}}`,
				i, i, i+1, strings.Repeat(fmt.Sprint("text of ", i/10, " "), 40))
			all = append(all, decodedThing(t, s, raw))
		}
		s.Replace("", all, "1000")
		if c := fill(t, s, "spec"); c.rows != 1000 || c.texts.len() != 100 {
			t.Errorf("%d are kept, %d different ones", c.rows, c.texts.len())
		}
		if columnOf(s, 1000, "spec") == nil {
			t.Error("are not kept")
		}
	})
	t.Run("many sets", func(t *testing.T) {
		s := numberedStore(t, 1000)
		x := s.contents.columns
		x.few = 0
		for i := range columnSets + 5 {
			fill(t, s, "spec.n", "metadata.uid", fmt.Sprint("metadata.labels.a", i))
			room := int64(1000 * columnEach)
			if held := x.held(); held > room || len(x.sets) > columnSets {
				t.Fatalf("after %d sets: %d bytes of %d, %d sets", i+1, held, room, len(x.sets))
			}
		}
		last := fill(t, s, fmt.Sprint("metadata.labels.a", columnSets+4), "metadata.uid", "spec.n")
		if last == nil || last.rows != 1000 {
			t.Error("of those that were asked about last not all are kept")
		}
	})
	t.Run("a question about few", func(t *testing.T) {
		s := numberedStore(t, 1000)
		c := fill(t, s, "spec.n")
		for range columnAfter + 1 {
			columnOf(s, columnFrom, "status.n")
		}
		if c.rows != 1000 {
			t.Errorf("leaves %d of %d", c.rows, 1000)
		}
	})
	t.Run("no room", func(t *testing.T) {
		s := numberedStore(t, 1000)
		x := s.contents.columns
		for range columnAfter {
			columnOf(s, 1000, "metadata.uid")
		}
		at := columnOf(s, 1000, "metadata.uid")
		x.limit.Store(codeChunkBytes + 10_000)
		readColumn(t, at)
		if got, room := x.held(), x.limit.Load(); got > room || at.rows == 0 || at.rows == 1000 {
			t.Errorf("%d bytes are kept of %d objects, and there is room for %d", got, at.rows, room)
		}
		readColumn(t, columnOf(s, 1000, "metadata.uid")) // a partial one is read, too
	})
	t.Run("many sets at once", func(t *testing.T) {
		s := numberedStore(t, 300)
		s.contents.columns.few = 0
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { fill(t, s, "metadata.uid", fmt.Sprint("metadata.labels.a", i)) })
		}
		wg.Wait()
		if held := s.contents.columns.held(); held > 300*columnEach || held < 300*columnEach/2 {
			t.Errorf("%d bytes are kept of 300 objects", held)
		}
	})
	t.Run("one question each", func(t *testing.T) {
		s := numberedStore(t, 1000)
		c := fill(t, s, "spec.n")
		for i := range 2 * columnSets {
			columnOf(s, 1000, fmt.Sprint("spec.n", i))
		}
		if c.rows != 1000 {
			t.Errorf("leave %d of %d", c.rows, 1000)
		}
	})
	t.Run("many paths", func(t *testing.T) {
		var names []string
		for i := range columnPaths + 1 {
			names = append(names, fmt.Sprint("spec.n", i))
		}
		if c := fill(t, numberedStore(t, 1000), names...); c != nil {
			t.Error("are kept")
		}
	})
	t.Run("forgotten while it is read", func(t *testing.T) {
		s := numberedStore(t, 1000)
		fill(t, s, "spec.n")
		at := columnOf(s, 1000, "spec.n")
		x := s.contents.columns
		if !x.forgetAll(time.Hour) || x.forgetAll(time.Hour) {
			t.Error("there was something once")
		}
		readColumn(t, at)
		if x.held() != 0 || fill(t, s, "spec.n") != nil {
			t.Errorf("%d bytes are kept", x.held())
		}
	})
	t.Run("of objects that are gone", func(t *testing.T) {
		s := numberedStore(t, 600)
		for version := range 20 {
			for i := range 100 {
				s.Apply("", Modified, numbered(t, s, i, version, 5000+100*version+i))
			}
			if c := fill(t, s, "spec.n"); c.rows != 600 {
				t.Fatalf("%d are kept of 600 objects", c.rows)
			}
		}
	})
	t.Run("texts that no object has any more", func(t *testing.T) {
		s := numberedStore(t, 400)
		c := fill(t, s, "metadata.resourceVersion")
		for version := 1000; c.lost < codeRows; version++ {
			s.Apply("", Modified, numbered(t, s, version%400, 1, version))
			if version%400 == 399 {
				fill(t, s, "metadata.resourceVersion")
			}
		}
		fill(t, s, "metadata.resourceVersion")
		s.Apply("", Modified, numbered(t, s, 7, 1, 99_999))
		if fill(t, s, "metadata.resourceVersion"); c.texts.len() > 402 || c.rows != 400 || c.lost > 1 {
			t.Errorf("%d texts of %d rows", c.texts.len(), c.rows)
		}
		if want := c.texts.bytes() + c.codes.bytes(); c.bytes.Load() != want || s.contents.columns.held() != want {
			t.Errorf("%d bytes are counted of %d", c.bytes.Load(), want)
		}
	})
	t.Run("other index definitions", func(t *testing.T) {
		s := numberedStore(t, 1000)
		c := fill(t, s, "spec.n")
		if err := s.SetIndexes(map[string]string{"n": "spec.n"}); err != nil {
			t.Fatal(err)
		}
		if c.rows != 0 || s.Stats().ColumnBytes != 0 {
			t.Errorf("%d bytes are kept of objects of before", c.bytes.Load())
		}
	})
	t.Run("nobody asks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := numberedStore(t, 1000)
			x := s.contents.columns
			fill(t, s, "spec.n")
			for range 10 {
				time.Sleep(columnIdle / 2)
				columnOf(s, 1000, "status.n")
			}
			if n := x.known(); n != 1 {
				t.Errorf("there are %d sets", n)
			}
			time.Sleep(3 * columnIdle)
			if n := x.known(); n != 0 || x.held() != 0 {
				t.Errorf("there are %d sets after all", n)
			}
		})
	})
}

func (x *columns) known() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.sets)
}

// TestColumnsAtOnce: many ask, change objects and forget at the same time. What is read of a
// column is always what the objects were that the question is about.
func TestColumnsAtOnce(t *testing.T) {
	s := numberedStore(t, 600)
	var wg sync.WaitGroup
	done := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for version := 1000; ; version++ {
			select {
			case <-done:
				return
			default:
				s.Apply("", Modified, numbered(t, s, version%600, version%10, version))
			}
		}
	})
	for worker := range 4 {
		wg.Go(func() {
			order, err := ParseOrder("-spec.n")
			if err != nil {
				t.Error(err)
				return
			}
			for round := range 12 {
				paths := mustPaths(t, "spec.n", "metadata.resourceVersion")
				found, err := s.Select(t.Context(), Query{Sort: order, Reads: [][]rawjson.Path{paths}})
				if err != nil {
					t.Error(err)
					return
				}
				within := found.Within(paths)
				for i, o := range found.Objects {
					raw, err := within(nil, i)
					want := fmt.Sprintf(`"resourceVersion":%q`, o.ResourceVersion())
					if err != nil || !strings.Contains(string(raw), want) {
						t.Errorf("%.200s, %v: %s is wanted", raw, err, want)
						return
					}
				}
				total := 0
				var mu sync.Mutex
				if err := found.Tally(paths).Read(t.Context(), func(_, objects int, _ Sets, _ []byte) error {
					mu.Lock()
					total += objects
					mu.Unlock()
					return nil
				}); err != nil || total != 600 {
					t.Errorf("%d objects of 600, %v", total, err)
				}
				if (round+worker)%7 == 0 {
					s.contents.columns.forgetAll(0)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	changing.Wait()
	if s.contents.columns.forgetAll(0); s.Stats().ColumnBytes != 0 {
		t.Errorf("nothing is kept, and counted as %d bytes", s.Stats().ColumnBytes)
	}
}

// TestTallies: what is summed up over columns is what the objects have one by one: of each set
// by itself, whether all, some or none of what is read is at hand, and while that changes.
func TestTallies(t *testing.T) {
	for name, sets := range map[string][][]rawjson.Path{
		"one":     {mustPaths(t, "spec.n", "status.n")},
		"several": {mustPaths(t, "spec.n", "status.n"), mustPaths(t, "status.n"), nil, mustPaths(t, "spec.n"), mustPaths(t, "spec.nothing")},
	} {
		t.Run(name, func(t *testing.T) { testTallies(t, sets) })
	}
}

func testTallies(t *testing.T, sets [][]rawjson.Path) {
	s := numberedStore(t, 700)
	tally := func(r *Result) []map[string]int {
		counts := make([]map[string]int, len(sets))
		var mu sync.Mutex
		if err := r.Tally(sets...).Read(t.Context(), func(_, objects int, of Sets, json []byte) error {
			mu.Lock()
			defer mu.Unlock()
			for i, paths := range sets {
				if !of.Has(i) {
					continue
				}
				if counts[i] == nil {
					counts[i] = map[string]int{}
				}
				counts[i][string(rawjson.NewExcerpt(paths).Append(nil, json))] += objects
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	for round := range columnAfter + 4 {
		for i := range 5 * round {
			s.Apply("", Modified, numbered(t, s, i, i%13, 2000+1000*round+i))
		}
		if round == columnAfter+3 && len(sets) > 1 { // one of them begins anew
			x := s.contents.columns
			x.mu.Lock()
			x.drop(x.sets[columnName(sets[1])])
			x.mu.Unlock()
		}
		q := Query{Namespaces: []string{"team-[1-4]"}, Reads: sets}
		found, err := s.Select(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		q.Reads = nil
		whole, err := s.Select(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, want := tally(found), tally(whole)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
		for i := range sets {
			n := 0
			for _, objects := range got[i] {
				n += objects
			}
			if n != len(found.Objects) {
				t.Errorf("round %d: set %d counts %d objects of %d", round, i, n, len(found.Objects))
			}
		}
	}
	for _, c := range s.contents.columns.infos() {
		if c.Kept && c.Objects == 0 {
			t.Errorf("nothing is kept of %v", c.Paths)
		}
	}
}

// wide is an object whose spec.v is long, and nobody else's.
func wide(t testing.TB, s *Store, namespace string, i, version int) *Object {
	t.Helper()
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":%q,"name":"thing-%d","uid":"uid-%d","resourceVersion":"%d"},"spec":{"v":"%0300d","text":%q},"status":{"n":"%d"}}`,
		namespace, i, i, version, version, strings.Repeat(fmt.Sprint("text of ", i, " "), 400), i%3)
	return decodedThing(t, s, raw)
}

func wideStore(t testing.TB, n int) *Store {
	t.Helper()
	s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
	var all []*Object
	for i := range n {
		all = append(all, wide(t, s, "a", i, i+1))
	}
	s.Replace("", all, fmt.Sprint(n))
	s.contents.columns.few = 0 // room for 512 bytes of each object
	return s
}

// TestColumnsThatDoNotFit: where there is room for one of two, questions about both find what is
// there while objects change, also those that go on while a column gives way.
func TestColumnsThatDoNotFit(t *testing.T) {
	s := wideStore(t, 1000)
	v := mustPaths(t, "spec.v")
	ask := func(version int) *Result {
		t.Helper()
		r, err := s.Select(t.Context(), Query{Filter: pathFilter{v[0], fmt.Sprintf("%0300d", version), &atLeast{}}, Reads: [][]rawjson.Path{mustPaths(t, "status.n")}})
		if err != nil || len(r.Objects) != 1 {
			t.Fatalf("%d objects have version %d, want 1 (%v)", len(r.Objects), version, err)
		}
		return r
	}
	for version := 2000; version < 2060; version++ {
		s.Apply("", Modified, wide(t, s, "a", 5, version))
		for range 1 + version%7 {
			ask(version)
		}
	}
	slow, err := s.Select(t.Context(), Query{Reads: [][]rawjson.Path{v}})
	if err != nil {
		t.Fatal(err)
	}
	within := slow.Within(v) // what is read by a slow client
	for version := 3000; version < 3060; version++ {
		if _, err := within(nil, version%1000); err != nil {
			t.Fatal(err)
		}
		s.Apply("", Modified, wide(t, s, "a", version%50, version))
		for range 1 + version%7 {
			ask(version)
		}
		others := mustPaths(t, "metadata.uid", "spec.v", fmt.Sprint("status.m", version%3))
		r, err := s.Select(t.Context(), Query{Reads: [][]rawjson.Path{others}})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range r.Objects {
			raw, err := r.Within(others)(nil, i)
			if want := fmt.Sprintf(`"v":"%0300s"`, o.ResourceVersion()); err != nil || !strings.Contains(string(raw), want) {
				t.Fatalf("%s of %s: %v", raw, o.Key(), err)
			}
		}
	}
}

// TestColumnsInTurn: a column that is asked about as often as another one does not give way to
// that, however little room there is.
func TestColumnsInTurn(t *testing.T) {
	s := wideStore(t, 1000)
	kept := 0
	for range 20 {
		for _, name := range []string{"spec.v", "metadata.uid", "status.n"} {
			paths := mustPaths(t, name)
			r, err := s.Select(t.Context(), Query{Reads: [][]rawjson.Path{paths}})
			if err != nil {
				t.Fatal(err)
			}
			if at := r.located.column(paths); at != nil && at.rows == 1000 {
				kept++
			}
			for i := range r.Objects {
				if _, err := r.Within(paths)(nil, i); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if kept < 3*(20-columnAfter-1) {
		t.Errorf("what is read was at hand %d times of 60", kept)
	}
}

// TestColumnsOfOthers: a plan tells who sees a part nothing of columns, which others have asked
// for, and which depend on what is not seen.
func TestColumnsOfOthers(t *testing.T) {
	told := func(hidden int) string {
		s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true})
		var all []*Object
		for i := range 300 + hidden {
			namespace := "mine"
			if i >= 300 {
				namespace = "hidden"
			}
			raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":%q,"name":"thing-%d","uid":"uid-%d","resourceVersion":"%d"},"spec":{"v":"%0300d"}}`, namespace, i, i, i+1, i)
			all = append(all, decodedThing(t, s, raw))
		}
		s.Replace("", all, "9000")
		for range columnAfter + 2 {
			fill(t, s, "spec.v")
		}
		r, err := (&Reader{store: s, scope: NewScope([]string{"mine"}, nil)}).Select(t.Context(), Query{Filter: pathFilter{mustPaths(t, "spec.v")[0], "x", &atLeast{}}})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Plan)
	}
	if one, other := told(0), told(100); one != other {
		t.Errorf("%s where nothing is hidden, and %s", one, other)
	}
}

// TestTallyOfAPage is of the objects of the page.
func TestTallyOfAPage(t *testing.T) {
	s := numberedStore(t, 600)
	paths := mustPaths(t, "spec.n")
	for range columnAfter + 2 {
		page, err := s.Page(t.Context(), Query{Reads: [][]rawjson.Path{paths}}, 10, "")
		if err != nil {
			t.Fatal(err)
		}
		var total atomic.Int64
		if err := page.Tally(paths).Read(t.Context(), func(_, objects int, _ Sets, _ []byte) error { total.Add(int64(objects)); return nil }); err != nil || total.Load() != 10 {
			t.Errorf("%d objects of 10, %v", total.Load(), err)
		}
	}
}
