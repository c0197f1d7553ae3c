package replica

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// TestUndecodableFrame: an event that was damaged on its way comes whole the second
// time; an object that no decoder accepts puts the copy in doubt and is said. Neither
// leaves an old object in a live copy.
func TestUndecodableFrame(t *testing.T) {
	for name, kind := range map[string]func(*liar){
		"changed": func(l *liar) { l.put("p3", "2") },
		"created": func(l *liar) { l.put("new", "1") },
		"deleted": func(l *liar) { l.delete("p3") },
	} {
		for damage, garbling := range map[string][2]string{
			"ends too soon":  {`"spec":{`, `"spec":}`},
			"no JSON within": {`"spec":{`, `"spec":{,`},
			"without a name": {`"name":`, `"nome":`},
		} {
			t.Run(name+", "+damage, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					l, d, _ := grown(t, 1, Options{})
					lists := l.lists("")
					l.each(func(m *member) { m.garbled, m.garbling = 1, garbling })
					kind(l)
					d.equal(time.Minute)
					d.becomes(10*time.Second, cache.Live)
					if n := l.lists("") - lists; n != 0 || d.pods().Status().Undecoded != 0 {
						t.Errorf("%d lists and %d undecoded, want none", n, d.pods().Status().Undecoded)
					}
				})
			})
		}
	}
	t.Run("always", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l, d, o := grown(t, 2, Options{})
			o.stop() // what cannot be read is missing from answers
			l.each(func(m *member) { m.broken = "p3" })
			lists := l.lists("pods")
			l.put("p3", "2")
			within(t, time.Minute, "it to be counted", func() bool { return d.pods().Status().Undecoded > 0 })
			within(t, time.Minute, "the old object to be gone", func() bool { return held(d.pods().View().Store(inside.Cache))["team-a/p3"] == "" })
			time.Sleep(5 * time.Minute)
			if n := l.lists("pods") - lists; n > 3 {
				t.Errorf("%d lists because of one object", n)
			}
			l.each(func(m *member) { m.broken = "" })
			l.put("p3", "3")
			d.equal(time.Minute)
			d.becomes(90*time.Second, cache.Live)
		})
	})
}

// TestBelievesNoFuture: bookmarks that etcd has not reached, older ones, and several
// without order neither move the copy nor its readers beyond what is true.
func TestBelievesNoFuture(t *testing.T) {
	for name, forge := range map[string]func(int) []int{
		"future":       func(v int) []int { return []int{v + 1_000_000} },
		"older":        func(v int) []int { return []int{v - 8} },
		"out of order": func(v int) []int { return []int{v, v - 3, v + 5000, v - 1, v} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, d, o := grown(t, 2, Options{})
				lists := l.lists("")
				l.each(func(m *member) { m.forge = forge })
				for n := range 20 {
					l.put("p1", fmt.Sprint(n))
					time.Sleep(20 * time.Second)
					if v := d.pods().View().Store(inside.Cache).Version(); cache.Newer(v, fmt.Sprint(l.backup())) {
						t.Fatalf("the copy is at %s, etcd at %d", v, l.backup())
					}
				}
				d.equal(time.Second)
				l.each(func(m *member) { m.forge = nil })
				d.becomes(90*time.Second, cache.Live)
				d.equal(0)
				replaced, expired, events := o.counts()
				if replaced+expired != 0 || l.lists("") != lists {
					t.Errorf("%d stores replaced, %d subscriptions ended, %d lists; want none", replaced, expired, l.lists("")-lists)
				}
				if len(events) != 20 {
					t.Errorf("%d events of 20 changes", len(events))
				}
			})
		})
	}
}

// TestOneBrokenResource: what is wrong with one resource is that resource's alone.
func TestOneBrokenResource(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(2)
		l.put("a", "1")
		broken := func(_, resource string) int {
			if resource == "r1" {
				return 500
			}
			return 0
		}
		l.each(func(m *member) { m.answer = broken })
		d := deceive(t, l, Options{}, specOf("pods"), specOf("r1"), specOf("r2"))
		within(t, time.Minute, "the others to be live", func() bool {
			return d.pods().View().State == cache.Live && d.of("r2").View().State == cache.Live
		})
		within(t, 2*time.Minute, "the broken one to be failed", func() bool { return d.of("r1").View().State == cache.Failed })
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			time.Sleep(time.Second)
			if !d.Clusters()[0].Reachable {
				t.Fatal("the cluster is unreachable because of one resource")
			}
			if s := d.pods().View().State; s != cache.Live {
				t.Fatalf("another resource is %s", s)
			}
		}
		asked, _ := l.asked()
		if n := most(asked, began, 10*time.Second); n > 25 {
			t.Errorf("%d requests in 10 seconds", n)
		}
		if lines, _ := d.records.since(0); len(lines) > 10 {
			t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, ""))
		}
		l.each(func(m *member) { m.answer = nil })
		d.becomes(time.Minute, cache.Live)
	})
}

// TestBusyResource: an API server whose cache of a resource does not fill, because of a
// conversion webhook for one, answers 429 and says when to ask again. That is told as
// soon as any other fault, and is not tried again and again behind informerd's back.
func TestBusyResource(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(2)
		l.put("a", "1")
		busy := func(_, resource string) int {
			if resource == "r1" {
				return http.StatusTooManyRequests
			}
			return 0
		}
		l.each(func(m *member) { m.answer = busy })
		d := deceive(t, l, Options{}, specOf("pods"), specOf("r1"))
		within(t, 20*time.Second, "the busy one to be failed", func() bool { return d.of("r1").View().State == cache.Failed })
		if s := d.pods().View().State; s != cache.Live {
			t.Errorf("another resource is %s", s)
		}
		l.each(func(m *member) { m.answer = nil })
		d.becomes(time.Minute, cache.Live)
	})
}

// raw is what a store has of an object, byte for byte.
func raw(s *cache.Store, name string) string {
	o, ok := s.Get(keyOf(name))
	if !ok {
		return ""
	}
	b, err := o.JSON()
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestUpgradeListsContent: servers of another version send other bytes of objects that
// did not change. While they are mixed nothing is listed again and again; once all are
// of one version the copy has its bytes, and readers are told.
func TestUpgradeListsContent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, d, o := grown(t, 2, Options{Snapshots: newMemory(), compareLeast: 1})
		lists := l.lists("pods")
		upgrade := func(m *member) {
			l.restart(m)
			l.each(func(m *member) { m.gitVersion, m.addition = "v1.37.0", `,"defaulted":true` }, m)
		}
		upgrade(l.members[0])
		for range 20 {
			time.Sleep(30 * time.Second)
			l.hangUp()
		}
		d.becomes(time.Minute, cache.Live)
		if n := l.lists("pods") - lists; n > 2 {
			t.Errorf("%d lists while versions were mixed", n)
		}
		upgrade(l.members[1])
		within(t, 3*time.Minute, "every object in the new bytes", func() bool {
			for _, name := range numbered("p", 12) {
				if !strings.Contains(raw(d.pods().View().Store(inside.Cache), name), "defaulted") {
					return false
				}
			}
			return true
		})
		d.becomes(time.Minute, cache.Live)
		d.equal(0)
		time.Sleep(time.Second)
		replaced, expired, events := o.counts()
		if replaced+expired != 0 || len(events) < 12 {
			t.Errorf("%d stores replaced, %d subscriptions ended, %d events; want none, and each object told", replaced, expired, len(events))
		}
		lists = l.lists("")
		time.Sleep(10 * time.Minute)
		if n := l.lists("") - lists; n != 0 {
			t.Errorf("%d lists after the upgrade", n)
		}
	})
}

// TestRefusedForNow: 429 with Retry-After and an expired version, of one server of two.
func TestRefusedForNow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, d, o := grown(t, 2, Options{})
		lists := l.lists("")
		l.each(func(m *member) { m.answer = func(string, string) int { return 429 } }, l.members[0])
		for n := range 10 {
			l.put("p1", fmt.Sprint("refused ", n))
			l.hangUp()
			time.Sleep(10 * time.Second)
		}
		l.each(func(m *member) { m.answer = nil })
		d.becomes(time.Minute, cache.Live)
		d.equal(0)
		if n := l.lists("") - lists; n != 0 {
			t.Errorf("%d lists, want none", n)
		}
		// The servers forget what the copy would go on from.
		l.do(func() { l.refusing = true })
		l.hangUp()
		l.put("p1", "forgotten")
		l.delete("p2")
		l.compact()
		l.do(func() { l.refusing = false })
		d.equal(time.Minute)
		d.becomes(time.Minute, cache.Live)
		time.Sleep(time.Second)
		replaced, expired, events := o.counts()
		if last := events[len(events)-2:]; replaced+expired != 0 || !maps.Equal(map[string]bool{last[0]: true, last[1]: true}, map[string]bool{"MODIFIED team-a/p1": true, "DELETED team-a/p2": true}) {
			t.Errorf("%d replaced, %d ended, events %s", replaced, expired, cmp.Diff(nil, events))
		}
	})
}
