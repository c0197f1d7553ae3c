package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// rewritten is an object with other content under a version it had before.
func rewritten(t testing.TB, s *Store, name string, version int, content string) *Object {
	t.Helper()
	raw := strings.Replace(string(simple("a", name, "uid-"+name, fmt.Sprint(version))), `"spec":{}`, `"spec":{"v":"`+content+`"}`, 1)
	o, err := s.Decode([]byte(raw), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func contentOf(t testing.TB, s *Store, name string) string {
	t.Helper()
	o, ok := s.Get(Key{"a", name})
	if !ok {
		t.Fatalf("a/%s is not held", name)
	}
	plain, err := o.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestReplaceContent: after an upgrade of the API server an object has other bytes
// at the version it had. A list enters them, and so does a watch of another informerd,
// which tells of such.
func TestReplaceContent(t *testing.T) {
	for name, relist := range map[string]func(s *Store, objs ...*Object) ReplaceStats{
		"Replace": func(s *Store, objs ...*Object) ReplaceStats { return s.Replace("", objs, "120") },
		"Amend":   func(s *Store, objs ...*Object) ReplaceStats { return s.Amend("", nil, objs, "120") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, thingSpec)
			s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5), decodeSimple(t, s, "a", "y", 6), decodeSimple(t, s, "a", "z", 7)}, "100")
			s.TakeChanges()
			sub := watch(t, s, "")
			stats := relist(s, rewritten(t, s, "x", 5, "default"), decodeSimple(t, s, "a", "y", 6), decodeSimple(t, s, "a", "z", 110))
			if want := (ReplaceStats{Modified: 2, Rewritten: 1}); stats != want {
				t.Errorf("%+v, want %+v", stats, want)
			}
			if got, want := readAll(t, sub), "MODIFIED a/x@5, MODIFIED a/z@110"; got != want {
				t.Errorf("delivered %q, want %q", got, want)
			}
			if got := contentOf(t, s, "x"); !strings.Contains(got, "default") {
				t.Errorf("the old bytes are kept: %s", got)
			}
			b, _ := s.TakeChanges()
			if b.Len() != 2 || b.Record(0).Name != "x" {
				t.Errorf("%d records are saved, want those of x and z", b.Len())
			}
			s.Apply("", Modified, rewritten(t, s, "y", 6, "late"))
			if got := contentOf(t, s, "y"); !strings.Contains(got, "late") {
				t.Errorf("other content without a new version was not entered: %s", got)
			}
		})
	}
}

// TestReplaceOtherDictionary: objects that are packed otherwise than held ones are
// the same as long as their JSON is.
func TestReplaceOtherDictionary(t *testing.T) {
	s, other := filledStore(t, 400), filledStore(t, 350)
	t.Cleanup(s.Close)
	t.Cleanup(other.Close)
	before := s.Revision()
	objs := s.objectsOf("")
	for i, o := range other.objectsOf("") {
		at, _ := slices.BinarySearchFunc(objs, o, compareObjects)
		switch again := *o; i % 3 {
		case 0: // of another dictionary
			again.generation = objs[at].generation
			objs[at] = &again
		case 1: // plain
			plain, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			objs[at] = objs[at].repacked(plain, nil)
		}
	}
	if stats := s.Replace("", objs, "400"); stats != (ReplaceStats{}) || s.Revision() != before {
		t.Errorf("Replace() by the same objects = %+v, revision %d, was %d", stats, s.Revision(), before)
	}
	changed, err := other.Decode([]byte(strings.Replace(string(realPod(7, 8)), `"Burstable"`, `"Brustable"`, 1)), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	at, _ := slices.BinarySearchFunc(objs, changed, compareObjects)
	objs[at] = changed
	if stats := s.Replace("", objs, "400"); stats != (ReplaceStats{Modified: 1, Rewritten: 1}) {
		t.Errorf("Replace() with other bytes of the same size = %+v, want one rewritten", stats)
	}
}

// TestReplaceOrder: whoever is cut off in a list's events resumes from the version
// it saw last. Deletions have none of their own, so they come before all that has a
// later one.
func TestReplaceOrder(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{
		decodeSimple(t, s, "a", "again", 10), decodeSimple(t, s, "a", "bytes", 11), decodeSimple(t, s, "a", "gone", 12),
		decodeSimple(t, s, "a", "last", 13), decodeSimple(t, s, "a", "more", 14),
	}, "100")
	sub := watch(t, s, "")
	again, err := s.Decode(simple("a", "again", "another", "140"), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	s.Replace("", []*Object{
		again, rewritten(t, s, "bytes", 11, "default"), decodeSimple(t, s, "a", "more", 130), decodeSimple(t, s, "a", "new", 120), decodeSimple(t, s, "a", "last", 150),
	}, "200")
	events, _, err := sub.read()
	if err != nil {
		t.Fatal(err)
	}
	want := "MODIFIED a/bytes@11, DELETED a/gone@100, DELETED a/again@100, ADDED a/new@120, MODIFIED a/more@130, ADDED a/again@140, MODIFIED a/last@150"
	if got := say(events); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	gone := events[1].Object
	plain, err := gone.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(string(simple("a", "gone", "uid-gone", "100")), `"v":"100"`, `"v":"12"`, 1); !strings.HasSuffix(string(plain), want[1:]) {
		t.Errorf("the JSON of a deleted object is %s, want %s", plain, want)
	}
	if gone.Size() != len(plain) || gone.UID() != "uid-gone" || events[1].Old.ResourceVersion() != "12" {
		t.Errorf("Size() = %d of %d bytes, UID %s, Old at %s", gone.Size(), len(plain), gone.UID(), events[1].Old.ResourceVersion())
	}
}

// TestGoBack: after the restore of a backup a list is older than what is held. What
// was told may never have happened, so everybody who was told has to list.
func TestGoBack(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 90), decodeSimple(t, s, "a", "y", 95)}, "100")
	s.Apply("", Added, decodeSimple(t, s, "a", "z", 101))
	behind, current, future := watch(t, s, "100"), watch(t, s, ""), watch(t, s, "120")
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 40)}, "50")
	for name, sub := range map[string]*Subscription{"behind": behind, "current": current, "from the future": future} {
		if events, err := sub.Poll(); !errors.Is(err, ErrExpired) {
			t.Errorf("a subscriber that was %s is told %q, %v, want ErrExpired", name, say(events), err)
		}
	}
	if s.Version() != "50" || s.Len() != 1 {
		t.Errorf("%d objects at %s, want one at 50", s.Len(), s.Version())
	}
	refused := func(versions ...string) {
		t.Helper()
		for _, v := range versions {
			if _, err := s.Watch(v); !errors.Is(err, ErrExpired) {
				t.Errorf("Watch(%s) at %s = %v, want ErrExpired", v, s.Version(), err)
			}
		}
	}
	refused("45", "51", "100", "101")
	if got, want := readAll(t, watch(t, s, "50")), ""; got != want {
		t.Errorf("Watch(50) delivers %q, want nothing", got)
	}
	now := watch(t, s, "")
	s.Apply("", Modified, decodeSimple(t, s, "a", "x", 60))
	for _, sub := range []*Subscription{now, watch(t, s, "50"), watch(t, s, "55")} {
		if got, want := readAll(t, sub), "MODIFIED a/x@60"; got != want {
			t.Errorf("delivered %q, want %q", got, want)
		}
	}
	refused("49", "61", "101")
	beyond := watch(t, s, "102") // nobody was told that one
	s.Bookmark("", "102")
	s.Apply("", Modified, decodeSimple(t, s, "a", "x", 103))
	if got, want := readAll(t, beyond), "MODIFIED a/x@103"; got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
	watch(t, s, "104") // what was given up is passed
	if _, err := s.PageAt(context.Background(), Query{}, 0, "45"); !errors.Is(err, ErrExpired) {
		t.Errorf("PageAt(45) = %v, want ErrExpired", err)
	}
}

// TestUnsynced: no objects yet are no answer.
func TestUnsynced(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, thingSpec)
	order, err := ParseOrder("spec.node")
	if err != nil {
		t.Fatal(err)
	}
	q := Query{Sort: order}
	reads := map[string]func() error{
		"Select":       func() error { _, err := s.Select(ctx, Query{}); return err },
		"Page":         func() error { _, err := s.Page(ctx, Query{}, 5, ""); return err },
		"Page, sorted": func() error { _, err := s.Page(ctx, q, 5, ""); return err },
		"PageAt":       func() error { _, err := s.PageAt(ctx, Query{}, 5, "10"); return err },
		"Watch":        func() error { _, err := s.Watch(""); return err },
		"Watch from":   func() error { _, err := s.Watch("10"); return err },
		"IndexValues":  func() error { _, _, err := s.IndexValues("node", "", 0); return err },
	}
	for name, read := range reads {
		if err := read(); !errors.Is(err, ErrNotSynced) {
			t.Errorf("%s of a Store that never synced = %v, want ErrNotSynced", name, err)
		}
	}
	s.Replace("", nil, "10")
	for name, read := range reads {
		if err := read(); err != nil {
			t.Errorf("%s of an empty Store = %v", name, err)
		}
	}
}

// TestDecodeListed: an object that is held just as it is listed comes back itself, and no other
// does, whatever it has in common with what is held.
func TestDecodeListed(t *testing.T) {
	s := filledStore(t, 100)
	raw := realPod(7, 8)
	listed := func(raw []byte) *Object {
		t.Helper()
		o, err := s.DecodeListed(raw, "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	same := listed(raw)
	held, ok := s.Get(same.Key())
	if !ok || same != held {
		t.Fatal("what is held comes back as another one")
	}
	for what, change := range map[string][2]string{
		"content": {`"phase":"`, `"phase":"Not`},
		"UID":     {`"uid":"` + held.UID(), `"uid":"0` + held.UID()[1:]},
		"version": {`"resourceVersion":"8"`, `"resourceVersion":"9"`},
		"name":    {`"name":"` + held.Name(), `"name":"x` + held.Name()},
	} {
		other := bytes.Replace(raw, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(other, raw) {
			t.Fatalf("%s has not changed", what)
		}
		o := listed(other)
		if o == held {
			t.Errorf("another %s is not noticed", what)
		}
		want, err := s.Decode(other, "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		got, errGot := o.JSON()
		wanted, errWant := want.JSON()
		if err := errors.Join(errGot, errWant); err != nil || !bytes.Equal(got, wanted) {
			t.Errorf("another %s: %s (%v)", what, got, err)
		}
	}
	batch, _ := s.TakeChanges()
	restored := newStore(t, podSpec())
	restored.opts.Sound = func([]byte) bool { return true } // which nobody has said of what a snapshot has
	if err := restored.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil {
		t.Fatal(err)
	}
	was, _ := restored.Get(held.Key())
	if o, err := restored.DecodeListed(raw, "v1", "Pod"); err != nil || was == nil || o != was {
		t.Errorf("what a snapshot has comes back as another one (%v)", err)
	}
	if o, err := s.Decode(raw, "v1", "Pod"); err != nil || o == held {
		t.Errorf("what a watch tells is what is held (%v)", err)
	}
	deleted := held.at("1000") // its JSON has another version than it has itself
	s.Apply("", Modified, deleted)
	if o := listed(bytes.Replace(raw, []byte(`"resourceVersion":"8"`), []byte(`"resourceVersion":"1000"`), 1)); o == deleted {
		t.Error("the version in the JSON is not looked at")
	}
}

// TestRelistMemory: a list of what is held takes no memory for each object.
func TestRelistMemory(t *testing.T) {
	const pods = 2000
	s := filledStore(t, pods)
	before := heap()
	objs := make([]*Object, pods)
	for i := range objs {
		var err error
		if objs[i], err = s.DecodeListed(realPod(i, i+1), "v1", "Pod"); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+100*pods {
		t.Errorf("a list of %d objects takes %d bytes", pods, after-before)
	}
	if stats := s.Replace("", objs, "5000"); stats != (ReplaceStats{}) {
		t.Errorf("nothing has changed, and these were told: %+v", stats)
	}
	runtime.KeepAlive(objs)
}
