package replica

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// lacking is since when a copy of pods has lacked a change, zero if it lacks none.
func (d *deceived) lacking(v *cache.View) (since time.Time) {
	held := v.Store(inside.Cache).Versions()
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	for _, f := range d.l.facts {
		version, ok := held[f.object.key.Namespace]
		if !ok {
			version = held[""]
		}
		if f.resource == "pods" && cache.Newer(fmt.Sprint(f.version), version) {
			return f.at
		}
	}
	return time.Time{}
}

// honest fails if the copy says that it is younger than the oldest change it lacks. It
// returns for how long it has lacked one.
func (d *deceived) honest() (behind time.Duration) {
	d.t.Helper()
	v := d.pods().View()
	if !v.Readable() {
		return 0
	}
	since := d.lacking(v)
	age, known := v.Age()
	if since.IsZero() {
		return 0
	}
	if behind = time.Since(since); known && age < behind || behind >= Lease && v.State == cache.Live {
		d.t.Errorf("%s and %v old (known: %v), and it lacks what is %v old", v.State, age, known, behind)
	}
	return behind
}

// TestAgeIsOfTheLastProof: a copy is never older than it says, whatever comes in
// meanwhile, whichever part of it is behind, and whatever a snapshot says.
func TestAgeIsOfTheLastProof(t *testing.T) {
	t.Run("slow line", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l, d, _ := grown(t, 1, Options{})
			l.each(func(m *member) { m.slow = 42 * time.Second })
			var most time.Duration
			for n := range 100 {
				l.put("p0", fmt.Sprint("slow ", n))
				for range 10 {
					time.Sleep(300 * time.Millisecond)
					most = max(most, d.honest())
				}
				if t.Failed() {
					return
				}
			}
			if most < 40*time.Second {
				t.Errorf("the copy was %v behind at most", most)
			}
			l.each(func(m *member) { m.slow = 0 })
			d.equal(3 * time.Minute)
			d.becomes(3*time.Minute, cache.Live)
		})
	})
	t.Run("namespaces", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l := newLiar(1)
			l.put("team-a/p", "1")
			l.put("team-b/p", "1")
			spec := specOf("pods")
			spec.Namespaces = []string{"team-a", "team-b"}
			d := deceive(t, l, Options{}, spec)
			d.becomes(10*time.Second, cache.Live)
			time.Sleep(2 * time.Minute)
			l.each(func(m *member) { m.quiet = "team-b" })
			l.put("team-b/p", "2")
			began := time.Now()
			for n := range 40 {
				l.put("team-a/p", fmt.Sprint(n))
				time.Sleep(2 * time.Second)
				d.honest()
			}
			if v := d.pods().View(); v.State != cache.Stale {
				t.Errorf("%s with a namespace of which nothing was proven for %v", v.State, time.Since(began))
			}
			l.each(func(m *member) { m.quiet = "" })
			d.becomes(3*time.Minute, cache.Live)
		})
	})
	t.Run("clock a day ahead", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l, db, d := saved(t)
			l.do(func() { l.refusing = true })
			d.stop()
			for r, s := range db.saved {
				s.ProvenAt, s.SavedAt = s.ProvenAt.Add(24*time.Hour), s.SavedAt.Add(24*time.Hour)
				db.saved[r] = s
			}
			l.put("p0", "missed")
			d = deceive(t, l, Options{Snapshots: db})
			d.becomes(10*time.Second, cache.Warm)
			if age, known := d.pods().View().Age(); known {
				t.Errorf("%v old, by a proof that is still to come", age)
			}
			l.do(func() { l.refusing = false })
			d.becomes(time.Minute, cache.Live)
			time.Sleep(3 * time.Minute)
			if age, known := d.pods().View().Age(); !known || age > Lease {
				t.Errorf("%v old (known: %v) when it is live", age, known)
			}
			l.do(func() { l.refusing = true })
			l.hangUp()
			time.Sleep(Lease)
			d.becomes(0, cache.Stale)
			if age, known := d.pods().View().Age(); !known || age < Lease {
				t.Errorf("%v old (known: %v) when nothing is proven any more", age, known)
			}
		})
	})
	t.Run("killed on a full disk", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l, db, d := saved(t)
			db.mu.Lock()
			db.fail = errors.New("no space left on device")
			db.mu.Unlock()
			for n := range 60 {
				l.put("p0", fmt.Sprint("not saved ", n))
				time.Sleep(5 * time.Second)
			}
			d.equal(10 * time.Second)
			d.stop() // which saves nothing more than a kill does
			db.fail = nil
			l.do(func() { l.refusing = true })
			d = deceive(t, l, Options{Snapshots: db})
			d.becomes(10*time.Second, cache.Warm)
			if behind := d.honest(); behind < 4*time.Minute {
				t.Errorf("the copy lacks only %v", behind)
			}
			if age, known := d.pods().View().Age(); !known || age > 10*time.Minute {
				t.Errorf("%v old (known: %v)", age, known)
			}
		})
	})
}

// saved is a factory whose copies are in a snapshot.
func saved(t *testing.T) (*liar, *memory, *deceived) {
	l, db := newLiar(1), newMemory()
	l.put("p0", "1")
	d := deceive(t, l, Options{Snapshots: db})
	d.becomes(10*time.Second, cache.Live)
	time.Sleep(2 * time.Minute)
	return l, db, d
}
