package replica

import (
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestDeadServerIsNotLive: of a server that is gone nothing is live after the lease,
// however it went. It is asked rarely, it is said once, and it is noticed when it is
// back.
func TestDeadServerIsNotLive(t *testing.T) {
	for name, kill := range map[string]func(*liar, bool){
		"frozen":  func(l *liar, dead bool) { l.each(func(m *member) { m.frozen = dead }) },
		"resets":  func(l *liar, dead bool) { l.each(func(m *member) { m.resets = dead; m.hangUpLocked() }) },
		"refuses": func(l *liar, dead bool) { l.do(func() { l.refusing = dead }); l.hangUp() },
		"errors": func(l *liar, dead bool) {
			l.each(func(m *member) {
				m.answer = nil
				if dead {
					m.answer = func(string, string) int { return 503 }
				}
				m.hangUpLocked()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l := newLiar(2)
				l.put("a", "1")
				d := deceive(t, l, Options{}, specOf("pods"), specOf("r1"), specOf("r2"), specOf("r3"))
				d.becomes(10*time.Second, cache.Live)
				time.Sleep(10 * time.Minute)
				d.becomes(0, cache.Live)
				lists, lines, died := l.lists(""), d.records.len(), time.Now()
				kill(l, true)
				l.put("a", "2")
				d.becomes(Lease, cache.Stale)
				within(t, 30*time.Second, "the cluster to be unreachable", func() bool { return !d.Clusters()[0].Reachable })
				time.Sleep(10 * time.Minute)
				if s := d.Clusters()[0]; s.Reachable {
					t.Error("the cluster is reachable")
				}
				d.becomes(0, cache.Stale)
				for _, i := range d.Informers() {
					if age, known := i.View().Age(); !known || age < 10*time.Minute {
						t.Errorf("%s is %v old, want 10 minutes or more", i.Resource(), age)
					}
				}
				asked, dials := l.asked()
				if a, b := most(asked, died.Add(2*time.Minute), 10*time.Second), most(dials, died.Add(2*time.Minute), 10*time.Second); a > 15 || b > 15 {
					t.Errorf("%d requests and %d dials in 10 seconds, want one a second at most", a, b)
				}
				if said, _ := d.records.since(lines); len(said) > 1 {
					t.Errorf("%d lines in the log, want one:\n%v", len(said), said)
				}
				kill(l, false)
				d.becomes(5*time.Second, cache.Live)
				d.equal(0)
				if n := l.lists("") - lists; n != 0 {
					t.Errorf("%d lists after an outage, want none", n)
				}
			})
		})
	}
}

// TestLiveSoonAfterResets: a balancer that accepts connections and resets them comes
// back, and all of many resources are live within four seconds, however often that
// happened before, and also where the first watches after its return are refused, as
// those of a server that begins are.
func TestLiveSoonAfterResets(t *testing.T) {
	for name, returns := range map[string]int{"once": 1, "again and again": 6} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l := newLiar(1)
				d := deceive(t, l, Options{}, manySpecs(59)...)
				d.becomes(10*time.Second, cache.Live)
				time.Sleep(time.Minute)
				for range returns {
					l.each(func(m *member) { m.resets = true; m.hangUpLocked() })
					time.Sleep(time.Minute)
					l.each(func(m *member) {
						m.resets = false
						m.answer = func(verb, _ string) int {
							if verb == "watch" {
								return 503
							}
							return 0
						}
					})
					time.Sleep(1500 * time.Millisecond)
				}
				d.becomes(0, cache.Stale)
				l.each(func(m *member) { m.answer = nil })
				d.becomes(4*time.Second, cache.Live)
			})
		})
	}
}

// TestLiveSoonAfterOutage: when a server returns, all is live within three seconds of
// waiting, although the caches of quiet resources learn only now and then how far etcd
// is. Two more are left for a busy machine.
func TestLiveSoonAfterOutage(t *testing.T) {
	for seconds := range 12 {
		inBubble(t, func(t *testing.T) {
			l := newLiar(1)
			l.progress = 5 * time.Second
			l.put("a", "1")
			specs := []cache.Spec{specOf("pods"), specOf("namespaces")}
			for _, name := range numbered("r", 20) {
				specs = append(specs, specOf(name))
			}
			d := deceive(t, l, Options{}, specs...)
			done, busy := make(chan struct{}), make(chan struct{})
			go func() { // something else always changes
				defer close(busy)
				for {
					select {
					case <-done:
						return
					case <-time.After(300 * time.Millisecond):
						l.putIn("leases", "busy", "x")
					}
				}
			}()
			defer func() { close(done); <-busy }()
			d.becomes(10*time.Second, cache.Live)
			time.Sleep(time.Duration(3*60_000+seconds*410) * time.Millisecond)
			l.each(func(m *member) { m.frozen = true })
			time.Sleep(Lease + time.Minute + time.Duration(seconds)*time.Second)
			d.becomes(0, cache.Stale)
			lists := l.lists("")
			l.each(func(m *member) { m.frozen = false })
			d.becomes(3*time.Second, cache.Live)
			if n := l.lists("") - lists; n != 0 {
				t.Errorf("%d lists after an outage, want none", n)
			}
		})
	}
}
