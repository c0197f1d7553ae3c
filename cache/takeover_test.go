package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func secret(t testing.TB, s *Store, name, uid string, version int, word string) *Object {
	t.Helper()
	raw := fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"uid":%q,"resourceVersion":"%d"},"spec":{"node":"n1","word":%q}}`, name, uid, version, word)
	o, err := s.Decode([]byte(raw), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// successor is a Store under another rule: it redacts what the other shows.
func successor(t testing.TB) *Store {
	spec := thingSpec
	spec.Redact = []string{"spec.word"}
	spec.Indexes = map[string]string{"word": "metadata.name"}
	return newStore(t, spec)
}

func TestTakeOver(t *testing.T) {
	ctx := context.Background()
	s, from := newStore(t, thingSpec), successor(t)
	s.Replace("", []*Object{
		secret(t, s, "again", "u1", 10, ""), secret(t, s, "gone", "u2", 11, "b"), secret(t, s, "more", "u3", 12, "c"),
		secret(t, s, "same", "u4", 13, ""), secret(t, s, "shown", "u5", 14, "e"),
	}, "100")
	old, err := s.Page(ctx, Query{}, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	db := &disk{}
	b, _ := s.TakeChanges()
	db.commit(b)
	sub, revision := watch(t, s, ""), s.Revision()
	from.Replace("", []*Object{
		secret(t, from, "again", "u9", 140, ""), secret(t, from, "more", "u3", 130, "c"), secret(t, from, "new", "u6", 120, "f"),
		secret(t, from, "same", "u4", 13, ""), secret(t, from, "shown", "u5", 14, "e"),
	}, "200")
	late := secret(t, s, "late", "u7", 210, "secret")

	stats, err := s.TakeOver(from)
	if want := (ReplaceStats{Added: 1, Modified: 3, Deleted: 1, Rewritten: 1}); err != nil || stats != want {
		t.Fatalf("TakeOver() = %+v, %v, want %+v", stats, err, want)
	}
	want := "MODIFIED a/shown@14, DELETED a/gone@100, DELETED a/again@100, ADDED a/new@120, MODIFIED a/more@130, ADDED a/again@140"
	if got := readAll(t, sub); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	if s.Version() != "200" || s.Revision() <= revision || sub.Version() != "200" {
		t.Errorf("at %s, revision %d after %d, subscriber at %s", s.Version(), s.Revision(), revision, sub.Version())
	}
	checkContents(t, s)
	for _, o := range s.objectsOf("") {
		if plain, err := o.JSON(); err != nil || !strings.Contains(string(plain), `"word":""`) {
			t.Errorf("%s is not redacted: %s, %v", o.Key(), plain, err)
		}
	}
	if _, err := s.Select(ctx, Query{Terms: []Term{{"word", "new"}}}); err != nil {
		t.Errorf("the new index: %v", err)
	}

	// What was read under the old rule and comes late is refused, with its version.
	s.Apply("", Added, late)
	if stats := s.Replace("", []*Object{late}, "220"); stats != (ReplaceStats{}) || s.Version() != "200" || s.Len() != 5 || s.Stats().Outdated != 2 {
		t.Errorf("an object of the old rule: %+v, %d objects at %s, %d refused", stats, s.Len(), s.Version(), s.Stats().Outdated)
	}
	s.Apply("", Added, secret(t, s, "late", "u7", 210, "secret"))
	if got, want := readAll(t, sub), "ADDED a/late@210"; got != want {
		t.Errorf("told %q after, want %q", got, want)
	}

	// Lists that began before are over: their pages show what is redacted now.
	if rest, err := s.Page(ctx, Query{}, 0, old.Continue); !errors.Is(err, ErrExpired) {
		t.Errorf("the page after that of before: %v, %v", rest, err)
	}
	at, err := s.PageAt(ctx, Query{}, 0, "100")
	if err != nil || strings.Join(keysOf(at.Objects), " ") != "a/again@10 a/gone@11 a/more@12 a/same@13 a/shown@14" {
		t.Errorf("PageAt(100) = %v, %v", at, err)
	}

	b, ok := s.TakeChanges()
	if !ok || !b.Reset || !slices.Equal(b.Saved.Spec.Redact, []string{"spec.word"}) {
		t.Fatalf("the next batch: %v, Reset %v, of %+v", ok, b.Reset, b.Saved.Spec)
	}
	db.commit(b)
	restored := successor(t)
	if err := restored.Restore(db.saved, db.sorted()); err != nil {
		t.Fatal(err)
	}
	if got, want := keysOf(restored.objectsOf("")), keysOf(s.objectsOf("")); !slices.Equal(got, want) || restored.Version() != "210" {
		t.Errorf("restored %v at %s, want %v", got, restored.Version(), want)
	}

	if from.Len() != 0 {
		t.Errorf("what took over holds %d objects", from.Len())
	}
	if _, err := from.Watch(""); !errors.Is(err, ErrStopped) {
		t.Errorf("Watch() of what took over = %v, want ErrStopped", err)
	}
}

// TestTakeOverRefused: what cannot be right changes nothing.
func TestTakeOverRefused(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5)}, "100")
	revision := s.Revision()
	refuse := func(name string, from *Store, want error) {
		t.Helper()
		if _, err := s.TakeOver(from); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: TakeOver() = %v, want %v", name, err, want)
		}
		if s.Revision() != revision || s.Len() != 1 || from.Stats().Objects != from.Len() {
			t.Errorf("%s: something changed", name)
		}
	}
	refuse("never synced", successor(t), ErrNotSynced)
	behind := successor(t)
	behind.Replace("", nil, "99")
	refuse("behind", behind, ErrWentBack)
	half := successor(t)
	half.SetSources([]string{"a", "b"})
	half.Replace("a", nil, "100")
	refuse("half synced", half, ErrNotSynced)
	half.Replace("b", nil, "90")
	refuse("one namespace behind", half, ErrWentBack)
	older := successor(t)
	older.Replace("", []*Object{decodeSimple(t, older, "a", "x", 4)}, "200")
	refuse("an object that is older", older, ErrWentBack)
	closed := successor(t)
	closed.Replace("", nil, "100")
	closed.Close()
	refuse("closed", closed, ErrStopped)
	spec := thingSpec
	spec.GVR.Resource = "others"
	other := newStore(t, spec)
	other.Replace("", nil, "100")
	refuse("another resource", other, nil)
	behind.Bookmark("", "100")
	if _, err := s.TakeOver(behind); err != nil {
		t.Errorf("TakeOver() at the same version = %v", err)
	}
}

// TestTakeOverUnderReaders: whoever reads meanwhile sees the one or the other, and a
// follower's state is that of the Store in the end.
func TestTakeOverUnderReaders(t *testing.T) {
	s := newStore(t, thingSpec)
	var objs []*Object
	for i := range 300 {
		objs = append(objs, secret(t, s, "k"+strconv.Itoa(i), "u", i+1, "word"))
	}
	s.Replace("", objs, "1000")
	sub := watch(t, s, "")
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				found, err := s.Select(context.Background(), Query{})
				if err != nil {
					t.Error(err)
					return
				}
				first, last := found.Objects[0], found.Objects[len(found.Objects)-1]
				if first.generation != last.generation {
					t.Error("an answer is of two rules")
					return
				}
				s.Covers("a")
				s.Indexes()
				s.Apply("", Modified, secret(t, s, "k1", "u", 5, "word")) // older than what is held
			}
		})
	}
	state := map[Key]string{}
	for _, o := range objs {
		state[o.Key()] = o.ResourceVersion()
	}
	for round := range 10 {
		from := successor(t)
		var next []*Object
		for i := range 300 {
			if version := 2000*(round+1) + i; i%7 != round%7 {
				next = append(next, secret(t, from, "k"+strconv.Itoa(i), "u", version, "word"))
			}
		}
		from.Replace("", next, strconv.Itoa(2000*(round+2)))
		if _, err := s.TakeOver(from); err != nil {
			t.Fatal(err)
		}
		for {
			events, more, err := sub.read()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Type == Deleted {
					delete(state, e.Object.Key())
				} else {
					state[e.Object.Key()] = e.Object.ResourceVersion()
				}
			}
			if !more {
				break
			}
		}
	}
	close(done)
	readers.Wait()
	held := map[Key]string{}
	for _, o := range s.objectsOf("") {
		held[o.Key()] = o.ResourceVersion()
	}
	if !maps.Equal(held, state) {
		t.Error("the follower's state differs from the Store's")
	}
}

// TestTakeOverHides: what another rule takes out of sight is not shown any more from
// that moment on, by no event of before, no former state, and no page of a list.
func TestTakeOverHides(t *testing.T) {
	ctx := context.Background()
	s, from := newStore(t, thingSpec), successor(t)
	s.Replace("", []*Object{
		secret(t, s, "again", "u1", 10, "word"), secret(t, s, "gone", "u2", 11, "word"), secret(t, s, "more", "u3", 12, "word"),
		secret(t, s, "shown", "u5", 14, "word"),
	}, "100")
	behind := watch(t, s, "")
	s.Apply("", Modified, secret(t, s, "shown", "u5", 110, "word"))
	page, err := s.Page(ctx, Query{}, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	fields, err := ParseFieldSelector("spec.word=word")
	if err != nil {
		t.Fatal(err)
	}
	selection, err := s.Matcher(Query{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	current := watch(t, s, "")
	from.Replace("", []*Object{
		secret(t, from, "again", "u9", 140, "word"), secret(t, from, "more", "u3", 130, "word"),
		secret(t, from, "shown", "u5", 110, "word"),
	}, "200")
	if _, err := s.TakeOver(from); err != nil {
		t.Fatal(err)
	}

	hidden := func(what string, o *Object) {
		t.Helper()
		if plain, err := o.JSON(); err != nil || !strings.Contains(string(plain), `"word":""`) {
			t.Errorf("%s shows %s, %v", what, plain, err)
		}
	}
	late, err := behind.Poll()
	if err != nil || len(late) != 6 {
		t.Fatalf("a reader that had not read all events before: %v, %v", late, err)
	}
	hidden("an event of before", late[0].Object)
	if _, err := s.Page(ctx, Query{}, 2, page.Continue); !errors.Is(err, ErrExpired) {
		t.Errorf("the next page of a list of before: %v, want ErrExpired", err)
	}
	at, err := s.PageAt(ctx, Query{}, 0, "110")
	if err != nil || len(at.Objects) != 4 {
		t.Fatalf("PageAt(110) = %v, %v", at, err)
	}
	for _, o := range at.Objects {
		hidden("the state at 110 of "+o.Key().String(), o)
	}
	if at, err := s.PageAt(ctx, Query{}, 0, "105"); err != nil {
		t.Errorf("PageAt(105): %v", err)
	} else {
		hidden("the state at 105", at.Objects[3])
	}
	events, err := current.Poll()
	if err != nil || len(events) != 5 {
		t.Fatalf("a reader that had read all events before: %v, %v", events, err)
	}
	for _, e := range events {
		hidden(string(e.Type)+" "+e.Object.Key().String(), e.Object)
		// Who selected by what is hidden now is told that it is gone from the selection.
		typ, o, err := e.Through(func(o *Object) (bool, error) { return selection.Match(t.Context(), o) })
		if err != nil || o == nil && e.Type != Added {
			t.Errorf("%s %s through a selection: %s, %v", e.Type, e.Object.Key(), typ, err)
		}
		if o != nil {
			hidden("through a selection, "+string(typ)+" "+o.Key().String(), o)
		}
	}
}

// TestTakeOverSelects: under another selection the events of before are forgotten. Who
// has read all of them goes on.
func TestTakeOverSelects(t *testing.T) {
	spec := thingSpec
	spec.LabelSelector = "app=shop"
	s, from := newStore(t, thingSpec), newStore(t, spec)
	s.Replace("", []*Object{secret(t, s, "x", "u1", 10, "word")}, "100")
	behind := watch(t, s, "")
	s.Apply("", Modified, secret(t, s, "x", "u1", 110, "word"))
	current := watch(t, s, "")
	from.Replace("", nil, "200")
	if _, err := s.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	if events, err := behind.Poll(); !errors.Is(err, ErrExpired) {
		t.Errorf("a reader that had not read all events before: %v, %v, want ErrExpired", events, err)
	}
	if _, err := s.Watch("100"); !errors.Is(err, ErrExpired) {
		t.Errorf("Watch(100) = %v, want ErrExpired", err)
	}
	if got, want := readAll(t, current), "DELETED a/x@110"; got != want {
		t.Errorf("a reader that had read all events before is told %s, want %s", got, want)
	}
}

// TestTakeOverOfADefinition: a rule that stays the same hides nothing, so watches can
// be resumed from before.
func TestTakeOverOfADefinition(t *testing.T) {
	spec := thingSpec
	spec.CRDGeneration = 2
	s, from := newStore(t, thingSpec), newStore(t, spec)
	s.Replace("", []*Object{secret(t, s, "x", "u1", 10, "word")}, "100")
	s.Apply("", Modified, secret(t, s, "x", "u1", 110, "word"))
	from.Replace("", []*Object{secret(t, from, "x", "u1", 120, "word")}, "200")
	if _, err := s.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	if got, want := readAll(t, watch(t, s, "100")), "MODIFIED a/x@110, MODIFIED a/x@120"; got != want {
		t.Errorf("resumed from before: %s, want %s", got, want)
	}
}
