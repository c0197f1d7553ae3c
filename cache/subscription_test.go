package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// simple returns the JSON of an object with nothing but an identity and a label.
func simple(namespace, name, uid, version string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q,"labels":{"v":%q}},"spec":{}}`, namespace, name, uid, version, version)
}

func decodeSimple(t testing.TB, s *Store, namespace, name string, version int) *Object {
	t.Helper()
	o, err := s.Decode(simple(namespace, name, "uid-"+name, strconv.Itoa(version)), "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// say writes events as "ADDED a/x@1", one after the other.
func say(events []Event) string {
	var parts []string
	for _, e := range events {
		parts = append(parts, fmt.Sprintf("%s %s@%s", e.Type, e.Object.Key(), e.Object.ResourceVersion()))
	}
	return strings.Join(parts, ", ")
}

func readAll(t testing.TB, sub *Subscription) string {
	t.Helper()
	var all []Event
	for {
		events, more, err := sub.read()
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, events...); !more {
			return say(all)
		}
	}
}

func watch(t testing.TB, s *Store, from string) *Subscription {
	t.Helper()
	sub, err := s.Watch(from)
	if err != nil {
		t.Fatalf("Watch(%q): %v", from, err)
	}
	t.Cleanup(sub.Close)
	return sub
}

func TestWatchResume(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5)}, "10")
	s.Apply("", Added, decodeSimple(t, s, "a", "y", 11))
	s.Bookmark("", "15")
	s.Replace("", []*Object{decodeSimple(t, s, "a", "y", 18), decodeSimple(t, s, "a", "z", 19)}, "20")
	s.Apply("", Deleted, decodeSimple(t, s, "a", "z", 21))

	batch := "DELETED a/x@15, MODIFIED a/y@18, ADDED a/z@19"
	for from, want := range map[string]string{
		"10": "ADDED a/y@11, " + batch + ", DELETED a/z@21",
		"11": batch + ", DELETED a/z@21",
		"12": batch + ", DELETED a/z@21",
		"15": batch + ", DELETED a/z@21",
		"20": "DELETED a/z@21",
		"21": "",
		"":   "",
	} {
		if got := readAll(t, watch(t, s, from)); got != want {
			t.Errorf("Watch(%s) delivers %q, want %q", from, got, want)
		}
	}
	for _, from := range []string{"9", "1", "0"} {
		if _, err := s.Watch(from); err == nil {
			t.Errorf("Watch(%s) delivers, though it is before the first list", from)
		}
	}
	// Of 19 nobody here knows what it was like: something may have come and gone.
	for _, from := range []string{"9", "16", "19"} {
		if _, err := s.Watch(from); !errors.Is(err, ErrExpired) {
			t.Errorf("Watch(%s) = %v, want ErrExpired", from, err)
		}
	}
	var invalid *InvalidError
	if _, err := s.Watch("x9"); !errors.As(err, &invalid) || invalid.Parameter != "resourceVersion" {
		t.Errorf("Watch(x9) = %v, want an InvalidError", err)
	}
	// All but the last event of a list resume before it.
	sub := watch(t, s, "15")
	events, _, _ := sub.read()
	var resume []string
	for _, e := range events {
		resume = append(resume, e.Resume)
	}
	if got := strings.Join(resume, " "); got != "15 15 20 21" {
		t.Errorf("Resume of the events = %s, want 15 15 20 21", got)
	}
}

func TestWatchFuture(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", nil, "10")
	sub := watch(t, s, "12")
	s.Apply("", Added, decodeSimple(t, s, "a", "x", 11))
	s.Apply("", Added, decodeSimple(t, s, "a", "y", 12))
	if got := readAll(t, sub); got != "" {
		t.Errorf("events up to the version asked for are delivered: %s", got)
	}
	if got := sub.Version(); got != "12" {
		t.Errorf("Version() = %s, want 12", got)
	}
	s.Apply("", Added, decodeSimple(t, s, "a", "z", 13))
	if got, want := readAll(t, sub), "ADDED a/z@13"; got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// TestSources: two namespaces progress on their own. The version is that of the
// one ahead, and nothing is lost to who resumes from it.
func TestSources(t *testing.T) {
	s := newStore(t, thingSpec)
	s.SetSources([]string{"a", "b"})
	if s.Version() != "" {
		t.Errorf("Version() = %q before any sync", s.Version())
	}
	s.Replace("a", nil, "10")
	s.Replace("b", []*Object{decodeSimple(t, s, "b", "k", 9)}, "12")
	s.Apply("a", Added, decodeSimple(t, s, "a", "x", 20))
	s.Apply("b", Added, decodeSimple(t, s, "b", "late", 15))
	if got := s.Version(); got != "20" {
		t.Errorf("Version() = %s, want 20", got)
	}
	if got, want := readAll(t, watch(t, s, "20")), "ADDED b/late@15"; got != want {
		t.Errorf("Watch(20) delivers %q, want %q", got, want)
	}
	if got, want := readAll(t, watch(t, s, "15")), "ADDED a/x@20, ADDED b/late@15"; got != want {
		t.Errorf("Watch(15) delivers %q, want %q", got, want)
	}
	if reached, _ := s.reached("", "16"); reached {
		t.Error("version 16 counts as reached although b is at 15")
	}
	if reached, _ := s.reached("", "15"); !reached {
		t.Error("version 15 does not count as reached")
	}
	// The list of one source says nothing of the other's objects.
	s.Replace("a", nil, "21")
	if got := s.Len(); got != 2 {
		t.Errorf("Len() = %d, want the 2 of b", got)
	}
	sub := watch(t, s, "")
	s.SetSources([]string{"a"})
	if got, want := readAll(t, sub), "DELETED b/k@15, DELETED b/late@15"; got != want {
		t.Errorf("SetSources deletes %q, want %q", got, want)
	}
	s.Apply("b", Added, decodeSimple(t, s, "b", "gone", 30))
	if s.Len() != 0 || s.Version() != "21" {
		t.Errorf("an event of a source that is gone was applied: %d objects at %s", s.Len(), s.Version())
	}
}

func TestNamespaceFilter(t *testing.T) {
	spec := thingSpec
	spec.Namespaces = []string{"team-*", "shop"}
	s := newStore(t, spec)
	s.Replace("", []*Object{decodeSimple(t, s, "team-a", "x", 1), decodeSimple(t, s, "other", "x", 2)}, "5")
	s.Apply("", Added, decodeSimple(t, s, "shop", "y", 6))
	s.Apply("", Added, decodeSimple(t, s, "shopping", "y", 7))
	if got, want := strings.Join(keysOf(s.objectsOf("")), " "), "shop/y@6 team-a/x@1"; got != want {
		t.Errorf("holds %s, want %s", got, want)
	}
	if got := s.Version(); got != "7" {
		t.Errorf("Version() = %s, want 7: events of other namespaces count", got)
	}
}

// TestApplyRules: stale and repeated events change nothing, a new UID is another
// object.
func TestApplyRules(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5)}, "10")
	sub := watch(t, s, "")
	s.Apply("", Modified, decodeSimple(t, s, "a", "x", 5))
	s.Apply("", Modified, decodeSimple(t, s, "a", "x", 4))
	s.Apply("", Deleted, decodeSimple(t, s, "a", "x", 3))
	s.Apply("", Deleted, decodeSimple(t, s, "a", "unknown", 11))
	if got := readAll(t, sub); got != "" {
		t.Errorf("stale events were published: %s", got)
	}
	if got := s.Version(); got != "11" {
		t.Errorf("Version() = %s, want 11", got)
	}
	again, err := s.Decode(simple("a", "x", "another", "12"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Apply("", Modified, again)
	if got, want := readAll(t, sub), "DELETED a/x@11, ADDED a/x@12"; got != want {
		t.Errorf("a new UID gives %q, want %q", got, want)
	}
	rewritten, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"x","namespace":"a","uid":"another","resourceVersion":"12"},"rewritten":true}`), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.Apply("", Modified, rewritten)
	}
	if got, want := readAll(t, sub), "MODIFIED a/x@12"; got != want {
		t.Errorf("other content at the same version gives %q, want %q", got, want)
	}
	// Without resourceVersions the content decides, too.
	for _, raw := range []string{`{"metadata":{"name":"m","uid":"u"},"n":1}`, `{"metadata":{"name":"m","uid":"u"},"n":1}`, `{"metadata":{"name":"m","uid":"u"},"n":2}`} {
		o, err := s.Decode([]byte(raw), "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", Modified, o)
	}
	if got, want := readAll(t, sub), "ADDED m@, MODIFIED m@"; got != want {
		t.Errorf("objects without resourceVersion give %q, want %q", got, want)
	}
}

func TestRingExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, thingSpec)
		s.Replace("", nil, "1")
		slow := watch(t, s, "")
		version := 1
		add := func(n int, pause time.Duration) {
			for range n {
				version++
				s.Apply("", Modified, decodeSimple(t, s, "a", "x", version))
				time.Sleep(pause)
			}
		}
		add(1000, time.Millisecond)
		if got := s.Stats().RingEvents; got != 1000 {
			t.Errorf("%d events after a second, want all 1000", got)
		}
		if _, err := s.Watch("1"); err != nil {
			t.Errorf("Watch(1) = %v within the window", err)
		}
		time.Sleep(ringWindow)
		add(2000, time.Second)
		if got := s.Stats().RingEvents; got > 200 || got < 180 {
			t.Errorf("%d events at one a second, want about 180", got)
		}
		if got := len(s.ring.entries); got > 512 {
			t.Errorf("the ring holds %d slots for 180 events", got)
		}
		if _, err := s.Watch("1"); !errors.Is(err, ErrExpired) {
			t.Errorf("Watch(1) = %v after the window, want ErrExpired", err)
		}
		if _, err := slow.Next(context.Background()); !errors.Is(err, ErrExpired) {
			t.Errorf("Next() of a reader left behind = %v, want ErrExpired", err)
		}
		add(ringMax+1000, 0)
		if got := s.Stats().RingEvents; got != ringMax {
			t.Errorf("%d events, want the bound %d", got, ringMax)
		}
		oldest := s.ring.at(s.ring.first)
		if _, err := s.Watch(s.ring.start); err != nil {
			t.Errorf("Watch(%s) = %v, want everything from %s on", s.ring.start, err, oldest.after)
		}
	})
}

func TestRingBytes(t *testing.T) {
	var r ring
	for i := range 1000 {
		r.push(ringEntry{at: time.Now(), after: strconv.Itoa(i + 1), raised: true, bytes: ringBytes / 100})
	}
	if r.bytes > ringBytes || r.len() < 99 || r.len() > 100 {
		t.Errorf("%d events of %d bytes, want 100 within %d bytes", r.len(), r.bytes, ringBytes)
	}
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, thingSpec)
		s.Replace("", nil, "1")
		sub := watch(t, s, "")
		got := make(chan string, 3)
		go func() {
			for {
				events, err := sub.Next(context.Background())
				if err != nil {
					got <- err.Error()
					return
				}
				got <- say(events)
			}
		}()
		synctest.Wait()
		s.Apply("", Added, decodeSimple(t, s, "a", "x", 2))
		if g := <-got; g != "ADDED a/x@2" {
			t.Errorf("delivered %q", g)
		}
		s.Close()
		if g := <-got; g != ErrStopped.Error() {
			t.Errorf("Next() of a closed store = %s, want ErrStopped", g)
		}
		if _, err := s.Watch(""); !errors.Is(err, ErrStopped) {
			t.Errorf("Watch of a closed store = %v, want ErrStopped", err)
		}
	})
}

func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, thingSpec)
		s.Replace("", nil, "1")
		for _, end := range []func(*Subscription, context.CancelFunc){
			func(sub *Subscription, _ context.CancelFunc) { sub.Close() },
			func(_ *Subscription, cancel context.CancelFunc) { cancel() },
		} {
			sub := watch(t, s, "")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := sub.Next(ctx)
				done <- err
			}()
			synctest.Wait()
			end(sub, cancel)
			if err := <-done; !errors.Is(err, ErrStopped) && !errors.Is(err, context.Canceled) {
				t.Errorf("Next() = %v", err)
			}
			sub.Close()
		}
		if n := s.Stats().Subscribers; n != 0 {
			t.Errorf("%d subscribers are left", n)
		}
	})
}

func TestWaitVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, thingSpec)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := s.WaitVersion(ctx, "5"); !errors.Is(err, ErrTooNew) {
			t.Errorf("WaitVersion = %v, want ErrTooNew", err)
		}
		done := make(chan error, 1)
		go func() { done <- s.WaitVersion(context.Background(), "12") }()
		synctest.Wait()
		s.Replace("", nil, "10")
		synctest.Wait()
		s.Bookmark("", "12")
		if err := <-done; err != nil {
			t.Errorf("WaitVersion = %v", err)
		}
		var invalid *InvalidError
		if err := s.WaitVersion(context.Background(), "soon"); !errors.As(err, &invalid) {
			t.Errorf("WaitVersion(soon) = %v, want an InvalidError", err)
		}
		s.Close()
		if err := s.WaitVersion(context.Background(), "13"); !errors.Is(err, ErrStopped) {
			t.Errorf("WaitVersion of a closed store = %v, want ErrStopped", err)
		}
	})
}
