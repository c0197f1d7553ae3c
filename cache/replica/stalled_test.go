package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// grown is a liar with some pods and a factory on it that is live.
func grown(t *testing.T, members int, options Options) (*liar, *deceived, *observer) {
	t.Helper()
	l := newLiar(members)
	for _, name := range numbered("p", 12) {
		l.put(name, "1")
	}
	d := deceive(t, l, options, specOf("pods"), specOf("r1"))
	d.becomes(10*time.Second, cache.Live)
	o := d.observe("pods")
	time.Sleep(time.Second) // it has begun to listen
	return l, d, o
}

// TestStalledServerIsNotLive: a server whose watch caches stand still sends bookmarks
// on, of the version where they stopped. These prove nothing.
func TestStalledServerIsNotLive(t *testing.T) {
	for name, mute := range map[string]bool{"with bookmarks": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, d, _ := grown(t, 1, Options{})
				l.each(func(m *member) { m.stalled, m.mute = true, mute })
				lists := l.lists("pods")
				for n := range 10 {
					l.put("p0", fmt.Sprint("stalled ", n))
					time.Sleep(30 * time.Second)
				}
				d.becomes(0, cache.Stale)
				d.said("copies are stale, though the API server answers", 1)
				l.each(func(m *member) { m.stalled, m.mute = false, false })
				d.becomes(90*time.Second, cache.Live)
				time.Sleep(2 * stalePause)
				d.said("copies are stale, though the API server answers", 1)
				d.said("no copy is stale any more", 1)
				d.equal(0)
				if n := l.lists("pods") - lists; n != 0 {
					t.Errorf("%d lists, want none", n)
				}
			})
		})
	}
}

// TestBookmarksBehindTheCopyAreSilence: a server that goes on with bookmarks of versions
// that the copy has passed proves no more than one that is silent, and is left as one.
func TestBookmarksBehindTheCopyAreSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, d, _ := grown(t, 2, Options{})
		behind := func(version int) []int { return []int{version - 5} }
		l.do(func() { l.pinned = l.members[0] })
		l.hangUp()
		d.becomes(10*time.Second, cache.Live)
		time.Sleep(10 * time.Second)
		l.put("p0", "2")
		l.each(func(m *member) { m.forge = behind }, l.members[0])
		l.do(func() { l.pinned = l.members[1] })
		time.Sleep(2*Lease + 10*time.Second)
		d.becomes(0, cache.Live)
		d.equal(0)
	})
}

// TestLaggingServerIsNotRolledBack: who is sent from one server to another that is
// behind it waits for that: nothing is thrown away, taken back or listed.
func TestLaggingServerIsNotRolledBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newMemory()
		l, d, o := grown(t, 2, Options{Snapshots: db})
		lists, behind := l.lists(""), l.members[1]
		l.each(func(m *member) { m.stalled = true }, behind)
		l.do(func() { l.pinned = l.members[0] })
		l.hangUp()
		d.becomes(10*time.Second, cache.Live)
		for n := range 5 {
			l.put(fmt.Sprint("p", n), "2")
		}
		l.delete("p9")
		d.equal(10 * time.Second)
		// All of a sudden, only the server that is behind is left.
		l.do(func() { l.pinned = behind })
		l.hangUp()
		time.Sleep(3 * time.Minute)
		d.equal(0)
		d.becomes(0, cache.Stale)
		l.each(func(m *member) { m.stalled = false }, behind)
		d.becomes(90*time.Second, cache.Live)
		d.equal(0)
		if n := l.lists("") - lists; n != 0 {
			t.Errorf("%d lists, want none", n)
		}
		if replaced, expired, _ := o.counts(); replaced+expired != 0 || d.pods().Status().SnapshotDrops != 0 {
			t.Errorf("%d stores replaced, %d subscriptions ended, drops %q; want none", replaced, expired, d.pods().Status().SnapshotReason)
		}
	})
}

// TestChangedBeyondTheCopy: the newest object has changed since the copy's version. That
// says nothing against the history: the watch goes on, and nothing is listed.
func TestChangedBeyondTheCopy(t *testing.T) {
	for name, change := range map[string]func(l *liar){
		"changed": func(l *liar) { l.put("p11", "2") },
		"made anew": func(l *liar) {
			l.delete("p11")
			l.put("p11", "2")
		},
		"all": func(l *liar) {
			for _, name := range numbered("p", 12) {
				l.put(name, "2")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, d, o := grown(t, 1, Options{Snapshots: newMemory()})
				lists := l.lists("")
				l.do(func() { l.refusing = true })
				l.hangUp()
				time.Sleep(10 * time.Second)
				change(l)
				l.do(func() { l.refusing = false })
				d.equal(10 * time.Second)
				d.becomes(10*time.Second, cache.Live)
				if n := l.lists("") - lists; n != 0 || d.pods().Status().Expired != 0 {
					t.Errorf("%d lists, %d expired, want none", n, d.pods().Status().Expired)
				}
				if replaced, expired, _ := o.counts(); replaced+expired != 0 {
					t.Errorf("%d stores replaced, %d subscriptions ended, want none", replaced, expired)
				}
			})
		})
	}
}

// TestStalledServerAndDeletion: a server that is behind, and an object that was
// deleted meanwhile, are no rollback.
func TestStalledServerAndDeletion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, d, o := grown(t, 1, Options{Snapshots: newMemory()})
		lists := l.lists("")
		l.each(func(m *member) { m.stalled = true })
		l.delete("p11") // the newest
		l.hangUp()
		time.Sleep(3 * time.Minute)
		d.becomes(0, cache.Stale)
		l.each(func(m *member) { m.stalled = false })
		d.becomes(90*time.Second, cache.Live)
		d.equal(0)
		if n := l.lists("") - lists; n != 0 {
			t.Errorf("%d lists, want none", n)
		}
		if replaced, expired, _ := o.counts(); replaced+expired != 0 || d.pods().Status().SnapshotDrops != 0 {
			t.Errorf("%d stores replaced, %d subscriptions ended, drops %q; want none", replaced, expired, d.pods().Status().SnapshotReason)
		}
	})
}

// TestVerifyUnderChurn: what is deleted while it is being compared is no difference,
// however much that is; an event that was lost amid it is one.
func TestVerifyUnderChurn(t *testing.T) {
	for name, swallowed := range map[string]int{"all told": 0, "one lost": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l := newLiar(1)
				names := numbered("p", refPage+100)
				for _, name := range names {
					l.put(name, "1")
				}
				d := deceive(t, l, Options{}, specOf("pods"))
				d.becomes(30*time.Second, cache.Live)
				l.each(func(m *member) { m.listing, m.swallowed = 5*time.Second, swallowed })
				lists, verified := l.lists("pods"), make(chan error)
				l.put("new", "1") // whose event is the one that is lost
				go func() { verified <- d.pods().verify(t.Context()) }()
				time.Sleep(7 * time.Second) // the second page is being made
				for _, name := range names[:2*verifyDoubts] {
					l.delete(name)
				}
				if err := <-verified; err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if s := d.pods().Status(); s.Mended != uint64(swallowed) || l.lists("pods")-lists != swallowed {
					t.Errorf("%d mended, %d lists; want %d", s.Mended, l.lists("pods")-lists, swallowed)
				}
				d.equal(0)
			})
		})
	}
}
