package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func pinnedStore(t testing.TB, n int, rules ColumnRules) *Store {
	t.Helper()
	s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true, Columns: rules})
	var all []*Object
	for i := range n {
		all = append(all, numbered(t, s, i, i%10, i+1))
	}
	s.Replace("", all, fmt.Sprint(n))
	return s
}

// atHand asks once, and is of how many objects what was read for it was at hand.
func atHand(t testing.TB, s *Store, path string) int {
	t.Helper()
	q := Query{Filter: pathFilter{path: mustPaths(t, path)[0], want: "1", read: &atLeast{}}}
	found, err := s.Select(context.Background(), q)
	if err != nil || len(found.Objects) == 0 {
		t.Fatalf("%d objects of %d, %v", len(found.Objects), s.Len(), err)
	}
	return found.Plan.Excerpts
}

func keptOf(t testing.TB, s *Store, path string) ColumnInfo {
	t.Helper()
	for _, c := range s.whole().Columns() {
		if slices.Equal(c.Paths, []string{path}) {
			return c
		}
	}
	return ColumnInfo{}
}

// TestPinnedColumns: what is pinned is there for the first question, and stays: under other
// indexes, whoever else asks, when nobody asks, when objects change. When memory is short it
// goes, and comes back later.
func TestPinnedColumns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pinnedStore(t, 1000, ColumnRules{Pinned: [][]string{{"spec.n"}}})
		fill := func() {
			t.Helper()
			if err := s.fillColumns(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		whole := func(after string) {
			t.Helper()
			fill()
			if c := keptOf(t, s, "spec.n"); !c.Pinned || !c.Kept || c.Objects != s.Len() || c.Values != 10 || c.Reason != "" {
				t.Errorf("after %s: %+v", after, c)
			}
			if got := atHand(t, s, "spec.n"); got != s.Len() {
				t.Errorf("after %s: what was read was at hand of %d objects", after, got)
			}
		}
		if c := keptOf(t, s, "spec.n"); c.Objects != 0 || c.Asked != 0 {
			t.Errorf("at first: %+v", c)
		}
		whole("the list")
		if got := atHand(t, s, "status.n"); got > 0 {
			t.Errorf("nothing pins status.n, and what was read was at hand of %d objects", got)
		}
		s.Apply("", Modified, numbered(t, s, 7, 7, 5000))
		if c := keptOf(t, s, "spec.n"); c.Objects != s.Len()-1 {
			t.Errorf("after a change: %+v", c)
		}
		whole("a change")
		time.Sleep(3 * columnIdle)
		whole("silence")
		if err := s.SetIndexes(map[string]string{"n": "status.n"}); err != nil {
			t.Fatal(err)
		}
		whole("other indexes")
		var same []*Object
		for i := range 1000 {
			same = append(same, numbered(t, s, i, i%10, 6000+i))
		}
		s.Replace("", same, "7000")
		whole("another list")

		s.forgetColumns()
		fill()
		if c := keptOf(t, s, "spec.n"); c.Objects != 0 || atHand(t, s, "spec.n") > 0 {
			t.Errorf("while memory is short: %+v", c)
		}
		time.Sleep(columnIdle)
		whole("memory was short")

		if err := s.SetColumns(ColumnRules{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * columnIdle)
		fill()
		if c := keptOf(t, s, "spec.n"); c.Pinned || c.Objects != 0 {
			t.Errorf("when it is not pinned any more: %+v", c)
		}
		if err := s.SetColumns(ColumnRules{Pinned: [][]string{{"spec.n"}}}); err != nil {
			t.Fatal(err)
		}
		whole("it was pinned again")
		s.Close() // so that no timer is left
	})
}

// TestUnpinned: what is not pinned any more is not read, since nobody kept it up to date, and
// nor is it when it is pinned again, or asked about as often as any other.
func TestUnpinned(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := pinnedStore(t, 1000, ColumnRules{Pinned: [][]string{{"spec.n"}}})
		pin := func(sets ...[]string) {
			t.Helper()
			if err := errors.Join(s.SetColumns(ColumnRules{Pinned: sets}), s.fillColumns(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		pin([]string{"spec.n"})
		pin()
		s.Apply("", Modified, numbered(t, s, 0, 7, 5000)) // it was 0
		s.Apply("", Deleted, numbered(t, s, 17, 7, 5001))
		s.Apply("", Added, numbered(t, s, 2000, 3, 5002)) // in the row of that
		if again {
			pin([]string{"spec.n"})
		}
		for n, want := range map[string]int{"0": 99, "7": 100, "3": 101} {
			for range columnAfter + 2 {
				found, err := s.Select(t.Context(), Query{Filter: pathFilter{path: mustPaths(t, "spec.n")[0], want: n, read: &atLeast{}}})
				if err != nil || len(found.Objects) != want {
					t.Errorf("pinned again %v: %d objects have %s, want %d: %v", again, len(found.Objects), n, want, err)
				}
			}
		}
	}
}

// TestPinnedOfClosed: what is pinned goes with the Store, whoever still has a View of it.
func TestPinnedOfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pinnedStore(t, 1000, ColumnRules{Pinned: [][]string{{"spec.n"}}})
		if err := s.fillColumns(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := s.fillColumns(t.Context()); err != nil || s.Stats().ColumnBytes > 0 || len(s.whole().Columns()) > 0 {
			t.Errorf("%v: %d bytes, %+v", err, s.Stats().ColumnBytes, s.whole().Columns())
		}
		time.Sleep(2 * columnIdle) // no timer is left, or the bubble would not end
	})
}

// TestNoColumns: where the configuration says so, nothing is kept, whatever is asked.
func TestNoColumns(t *testing.T) {
	s := pinnedStore(t, 1000, ColumnRules{})
	ask := func() (known int) {
		for range columnAfter + 2 {
			known = atHand(t, s, "spec.n")
		}
		return known
	}
	if got := ask(); got != s.Len() {
		t.Fatalf("what was read was at hand of %d objects", got)
	}
	if err := s.SetColumns(ColumnRules{None: true, Pinned: [][]string{{"spec.n"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.fillColumns(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got > 0 || len(s.whole().Columns()) > 0 || s.Stats().ColumnBytes > 0 {
		t.Errorf("what was read was at hand of %d objects, %v are kept", got, s.whole().Columns())
	}
	if err := s.SetColumns(ColumnRules{}); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != s.Len() {
		t.Errorf("what was read was at hand of %d objects", got)
	}
}

// TestPinnedMistakes: what is no path is refused, and changes nothing.
func TestPinnedMistakes(t *testing.T) {
	s := pinnedStore(t, 300, ColumnRules{Pinned: [][]string{{"spec.n"}}})
	for _, bad := range [][]string{{"a..b"}, {}, slices.Repeat([]string{"a"}, columnPaths+1)} {
		rules := ColumnRules{Pinned: [][]string{bad}}
		if err := s.SetColumns(rules); err == nil {
			t.Errorf("%v was taken", bad)
		}
		if err := CheckSpec(Spec{Resource: podResource, Columns: rules}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	if err := s.fillColumns(t.Context()); err != nil || keptOf(t, s, "spec.n").Objects != 300 {
		t.Errorf("%v, %+v", err, keptOf(t, s, "spec.n"))
	}
}

// TestPinnedRoom: a pinned column that has no room for all says so, is not read for again and
// again, and the answer is the same.
func TestPinnedRoom(t *testing.T) {
	s := pinnedStore(t, 1000, ColumnRules{Pinned: [][]string{{"spec.text"}, {"spec"}}})
	x := s.contents.columns
	x.few = 0
	if err := s.fillColumns(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, c := range s.whole().Columns() {
		if c.Reason == "there is no room for all objects" && c.Objects < 1000 {
			said++
		}
	}
	if said == 0 || x.held() == 0 || x.held() > x.limit.Load() {
		t.Errorf("%d bytes of %d: %+v", x.held(), x.limit.Load(), s.whole().Columns())
	}
	if _, all := s.lackingColumns(); len(all) > 0 {
		t.Errorf("%d columns are read for although there is no room", len(all))
	}
	x.mu.Lock()
	x.few = 64 << 20 // as if there were more objects
	x.mu.Unlock()
	if err := s.fillColumns(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.whole().Columns() {
		if c.Objects != 1000 || c.Reason != "" {
			t.Errorf("there is room: %+v", c)
		}
	}
	want := fmt.Sprintf("%q", "")
	found, err := s.Select(t.Context(), Query{Filter: pathFilter{path: mustPaths(t, "spec.text")[0], want: want, read: &atLeast{}}})
	if err != nil || len(found.Objects) != 0 || found.Plan.Scanned != 1000 {
		t.Errorf("%v: %d objects of %d", err, len(found.Objects), found.Plan.Scanned)
	}
}

// TestPinnedWhileItChanges fills columns while objects come, change and go, and asks.
func TestPinnedWhileItChanges(t *testing.T) {
	s := pinnedStore(t, 1000, ColumnRules{Pinned: [][]string{{"spec.n"}, {"status.n"}}})
	ctx, cancel := context.WithCancel(t.Context())
	var fillers sync.WaitGroup
	for range 2 {
		fillers.Go(func() {
			for ctx.Err() == nil {
				_ = s.fillColumns(ctx)
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	p := mustPaths(t, "spec.n")[0]
	ns := map[int]int{}
	for i := range 1000 {
		ns[i] = i % 10
	}
	for round := range 200 {
		for range random.IntN(20) {
			i := random.IntN(1100)
			version := 10_000 + round*20
			if random.IntN(5) == 0 {
				s.Apply("", Deleted, numbered(t, s, i, 0, version))
				delete(ns, i)
			} else {
				ns[i] = random.IntN(10)
				s.Apply("", Modified, numbered(t, s, i, ns[i], version))
			}
		}
		want := 0
		for _, n := range ns {
			if n == round%10 {
				want++
			}
		}
		found, err := s.Select(t.Context(), Query{Filter: pathFilter{path: p, want: fmt.Sprint(round % 10), read: &atLeast{}}})
		if err != nil || len(found.Objects) != want {
			t.Fatalf("round %d: %d objects, want %d: %v", round, len(found.Objects), want, err)
		}
	}
	cancel()
	fillers.Wait()
	if err := s.fillColumns(t.Context()); err != nil || keptOf(t, s, "spec.n").Objects != s.Len() || keptOf(t, s, "status.n").Objects != s.Len() {
		t.Errorf("%v: %+v of %d", err, s.whole().Columns(), s.Len())
	}
}

// TestPinnedBeforeOthers: where others have all the room, they go for what is pinned.
func TestPinnedBeforeOthers(t *testing.T) {
	s := pinnedStore(t, 1000, ColumnRules{})
	x := s.contents.columns
	x.few = 0
	for _, other := range []string{"metadata.name", "metadata.namespace", "metadata.resourceVersion", "spec.n", "status.n", "kind", "apiVersion"} {
		paths := mustPaths(t, "metadata.uid", other)
		for range columnAfter {
			x.about(columnName(paths), paths, s.Len())
		}
		s.mu.RLock()
		at := x.about(columnName(paths), paths, s.Len()).at(s)
		s.mu.RUnlock()
		if err := at.fill(t.Context(), s.treeLocked()); err != nil {
			t.Fatal(err)
		}
	}
	if x.held() < x.limit.Load()/8*7 {
		t.Fatalf("%d bytes of %d: the test needs more", x.held(), x.limit.Load())
	}
	if err := errors.Join(s.SetColumns(ColumnRules{Pinned: [][]string{{"spec.n"}}}), s.fillColumns(t.Context())); err != nil {
		t.Fatal(err)
	}
	if c := keptOf(t, s, "spec.n"); c.Objects != 1000 {
		t.Errorf("%+v", s.whole().Columns())
	}
}
