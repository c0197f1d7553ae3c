package replica

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// TestRestored: etcd is restored from a backup, and whatever hides that, the copy is
// soon what etcd has, and readers from before are told to begin anew.
func TestRestored(t *testing.T) {
	change := func(l *liar) {
		l.put("p0", "lost")
		l.delete("p1")
		l.put("new", "lost")
		l.put("p2", "lost")
	}
	passed := func(l *liar) {
		l.pass(l.backup() + 1000)
		l.put("p3", "later")
		l.delete("p4")
	}
	silenced := func(l *liar) { l.each(func(m *member) { m.stalled = true }) }
	verified := Options{VerifyInterval: 10 * time.Minute}
	for name, c := range map[string]struct {
		options   Options
		change    func(l *liar) // that the restore takes back
		before    func(l *liar) // what befalls the servers before the restore
		after     func(l *liar) // what etcd gets before anybody asks it
		members   func(l *liar) // what its servers do
		anew      bool          // it is found out that the history is another
		within    time.Duration
		most      int  // stores that replace another; one if 0
		unnoticed bool // for a while, or until verification, nothing shows the restore
	}{
		"behind a balancer": {change: change, members: func(l *liar) { l.restart() }, anew: true, within: 30 * time.Second},
		// The one that runs on may tell of the past once more, between the list of a
		// successor and its watch at the other one.
		"one server after the other": {change: change, members: func(l *liar) {
			l.restart(l.members[0])
			time.Sleep(30 * time.Second)
			l.restart(l.members[1])
		}, anew: true, within: 30 * time.Second, most: 5},
		// As long as they run on, they serve the past as news, over and over.
		"servers run on": {change: change, members: func(l *liar) {
			time.Sleep(2 * time.Minute)
			l.restart()
		}, anew: true, within: 30 * time.Second, most: 5},
		"servers away meanwhile": {change: change, members: func(l *liar) {
			l.do(func() { l.refusing = true })
			l.hangUp()
			time.Sleep(3 * time.Minute)
			passed(l)
			l.restart()
			l.do(func() { l.refusing = false })
		}, within: 2 * time.Minute},
		"versions passed": {change: change, before: silenced, after: passed, members: func(l *liar) { l.restart() }, within: 2 * time.Minute, unnoticed: true},
		// Until the servers are restarted they tell of what comes after as if nothing had
		// been: what they have told, verification has to find.
		"versions passed, and told": {options: verified, change: change, after: func(l *liar) {
			passed(l)
			time.Sleep(time.Second)
		}, members: func(l *liar) { l.restart() }, within: 15 * time.Minute, unnoticed: true},
		"only deletions taken back":       {change: func(l *liar) { l.delete("p1") }, members: func(l *liar) { l.restart() }, anew: true, within: 30 * time.Second},
		"only deletions, and passed":      {options: verified, change: func(l *liar) { l.delete("p1") }, after: passed, members: func(l *liar) { l.restart() }, within: 15 * time.Minute, unnoticed: true},
		"versions passed, servers ran on": {options: verified, change: change, after: passed, within: 15 * time.Minute, unnoticed: true},
		"same version, other content": {
			options: verified, change: func(l *liar) { l.put("p0", "lost") }, after: func(l *liar) { l.put("p0", "kept") },
			members: func(l *liar) { l.restart() }, within: 15 * time.Minute, unnoticed: true,
		},
		"same version, other objects": {
			options: verified, change: change, after: func(l *liar) {
				for n := range 4 {
					l.put(fmt.Sprint("other", n), "kept")
				}
			},
			members: func(l *liar) { l.restart() }, within: 2 * time.Minute, unnoticed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, d, o := grown(t, 2, c.options)
				backup, before := l.backup(), d.pods().View().Store(inside.Cache)
				c.change(l)
				d.equal(10 * time.Second)
				time.Sleep(2 * time.Second)
				if c.unnoticed {
					o.stop() // what it would read was never true
				}
				if c.before != nil {
					c.before(l)
				}
				l.restore(backup)
				if c.after != nil {
					c.after(l)
				}
				if c.members != nil {
					c.members(l)
				}
				d.equal(c.within)
				d.becomes(90*time.Second, cache.Live)
				d.equal(0)
				time.Sleep(2 * time.Second)
				replaced, expired, _ := o.counts()
				if c.anew && replaced == 0 {
					t.Error("the copy was not replaced")
				}
				if replaced > max(1, c.most) || expired > max(1, c.most) {
					t.Errorf("%d stores replaced and %d subscriptions ended by one restore", replaced, expired)
				}
				if replaced == 0 {
					return
				}
				if _, err := before.Watch(""); !errors.Is(err, cache.ErrStopped) {
					t.Errorf("the store of before answers a reader with %v", err)
				}
			})
		})
	}
}

// TestRestoredMeanwhile: etcd was restored while informerd was stopped, and the copy has
// an object that was taken back.
func TestRestoredMeanwhile(t *testing.T) {
	newest := func(l *liar, value string) {
		for n := range newestAsked {
			l.put(fmt.Sprint("p", 2+n), value)
		}
	}
	made := func(l *liar) {
		for n := range newestAsked {
			l.put(fmt.Sprint("made", n), "lost")
		}
	}
	for name, c := range map[string]struct {
		lost  func(l *liar) // after the last object that is taken back
		alone bool          // nothing else is
		after func(l *liar, backup int)
	}{
		"behind": {after: func(*liar, int) {}},
		"passed": {after: func(l *liar, backup int) {
			l.pass(backup + 1000)
			l.put("p3", "later")
		}},
		// What the newest objects are now says nothing of what they were.
		"passed, and the newest changed": {
			lost:  func(l *liar) { newest(l, "lost") },
			after: func(l *liar, backup int) { l.pass(backup + 1000); newest(l, "later") },
		},
		"passed, and the newest changed before and after": {
			lost: func(l *liar) { newest(l, "lost") },
			after: func(l *liar, backup int) {
				newest(l, "between")
				l.pass(backup + 1000)
				newest(l, "later")
			},
		},
		// The second newest is as it was, and older than the backup.
		"passed, and the very newest changed": {
			alone: true,
			lost:  func(l *liar) { l.put("p2", "lost") },
			after: func(l *liar, backup int) {
				l.put("p4", "between")
				l.pass(backup + 1000)
				l.put("p2", "later")
			},
		},
		// That the second newest was as it is says nothing of the newest.
		"passed, and the newest was never made": {
			alone: true,
			lost:  func(l *liar) { l.put("made0", "lost") },
			after: func(l *liar, backup int) { l.pass(backup + 1000); l.put("p11", "later") },
		},
		"passed, and the newest were never made": {
			lost:  func(l *liar) { newest(l, "lost"); made(l) },
			after: func(l *liar, backup int) { l.pass(backup + 1000); newest(l, "later") },
		},
		"passed, the newest changed, the past forgotten": {
			lost: func(l *liar) { newest(l, "lost") },
			after: func(l *liar, backup int) {
				l.pass(backup + 1000)
				newest(l, "later")
				l.do(func() { l.compacted = l.version })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				db := newMemory()
				l, d, o := grown(t, 2, Options{Snapshots: db})
				backup := l.backup()
				if !c.alone {
					l.put("p0", "lost")
					l.put("new", "lost")
					l.delete("p1")
				}
				if c.lost != nil {
					c.lost(l)
				}
				d.equal(10 * time.Second)
				time.Sleep(5 * time.Second)
				o.stop()
				reader := d.pods().View().Store(inside.Cache).Version()
				d.stop()
				l.restore(backup)
				l.restart()
				c.after(l, backup)
				d = deceive(t, l, Options{Snapshots: db}, specOf("pods"), specOf("r1"))
				d.observe("pods")
				d.equal(2 * time.Minute)
				d.becomes(90*time.Second, cache.Live)
				d.equal(0)
				if _, err := d.pods().View().Store(inside.Cache).Watch(reader); !errors.Is(err, cache.ErrExpired) {
					t.Errorf("a reader of before, at %s, may go on at %s: %v", reader, d.pods().View().Store(inside.Cache).Version(), err)
				}
			})
		})
	}
}

// TestRestoredWhileHeld: the line is dead while etcd is restored and passes the copy's
// version. The end of a short watch that was open comes when the line is back, long after
// it was due, and does not say that nothing happened.
func TestRestoredWhileHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newMemory()
		l, d, o := grown(t, 2, Options{Snapshots: db})
		backup := l.backup()
		l.put("p0", "lost")
		l.delete("p1")
		l.put("new", "lost")
		d.equal(10 * time.Second)
		time.Sleep(5 * time.Second)
		o.stop()
		d.stop()
		l.each(func(m *member) { m.mute = true })
		d = deceive(t, l, Options{Snapshots: db}, specOf("pods"), specOf("r1"))
		time.Sleep(time.Second) // a watch is open that is to prove the copy current
		l.each(func(m *member) { m.frozen = true })
		time.Sleep(20 * time.Second)
		l.restore(backup)
		l.do(func() {
			for _, m := range l.members {
				m.restartLocked(l)
				m.mute, m.frozen = false, true // what is asked now is held
			}
		})
		time.Sleep(time.Second)
		l.pass(backup + 1000)
		l.put("p3", "later")
		l.each(func(m *member) { m.frozen = false })
		d.equal(30 * time.Second)
		d.becomes(90*time.Second, cache.Live)
		d.equal(0)
	})
}

// TestRestoredAmidReopening: a process is held up between the proof that the history is the
// copy's and the answer to its watch, while etcd is restored and passes the copy's version.
func TestRestoredAmidReopening(t *testing.T) {
	for name, reopens := range map[string]func(d *deceived, start func()){
		"a start":       func(d *deceived, start func()) { d.stop(); start() },
		"a cut":         func(d *deceived, _ func()) { d.l.hangUp() },
		"a regular end": func(*deceived, func()) { time.Sleep(6 * time.Minute) },
		"a list": func(d *deceived, _ func()) {
			sources, _ := d.pods().feedNow().running()
			sources[0].demandOf(relistDemand{reason: "for a test", full: true})
		},
		"another rule": func(d *deceived, _ func()) {
			pods := specOf("pods")
			pods.FieldSelector = "metadata.name!=none"
			if err := d.Apply("c", []cache.Spec{pods, specOf("r1")}); err != nil {
				d.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				db := newMemory()
				l, d, o := grown(t, 1, Options{Snapshots: db})
				backup := l.backup()
				l.put("p0", "lost")
				l.delete("p1")
				l.put("new", "lost")
				d.equal(10 * time.Second)
				time.Sleep(5 * time.Second)
				o.stop()
				var held atomic.Bool
				restored := make(chan struct{})
				l.each(func(m *member) {
					m.answer = func(verb, resource string) int {
						if verb != "watch" || resource != "pods" {
							return 0
						}
						if held.CompareAndSwap(false, true) {
							time.Sleep(10 * time.Second)
							l.restore(backup)
							l.each(func(m *member) { // restarted before it gets the request
								m.log, m.start, m.seen = slices.Clone(l.facts), backup, backup
							})
							l.pass(backup + 1000)
							l.put("p3", "later")
							close(restored)
						}
						<-restored // a successor's watch may be the first, and its heir's the second
						return 0
					}
				})
				reopens(d, func() { d = deceive(t, l, Options{Snapshots: db}, specOf("pods"), specOf("r1")) })
				within(t, 10*time.Minute, "a watch", func() bool {
					select {
					case <-restored:
						return true
					default:
						return false
					}
				})
				d.equal(30 * time.Second)
				d.becomes(90*time.Second, cache.Live)
				d.equal(0)
			})
		})
	}
}

// TestListedUntilToldMore: what a successor holds is of the history it was listed in
// until a watch has told it more, which may be of a server that still has the one before.
// From then on whoever goes on with it has to have it judged.
func TestListedUntilToldMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.each(func(m *member) { m.mute = true })
		l.put("p0", "1")
		d := deceive(t, l, Options{}, specOf("pods"))
		d.becomes(10*time.Second, cache.Live)
		listed := d.pods().feedNow()
		if !listed.asListed() {
			t.Error("what was listed a moment ago is not known to be so")
		}
		l.put("p0", "2")
		d.equal(10 * time.Second)
		if listed.asListed() {
			t.Error("a copy with an event since its list counts as listed")
		}
	})
}
