package replica

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

var liarSeed = flag.Uint64("liar.seed", 0, "the one seed of TestLiar; 0 for several")

// TestLiar lets everything go wrong in random order, while an observer holds every
// answer and event against the truth. When the faults end, everything is live and equal.
func TestLiar(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *liarSeed != 0 {
		seeds = []uint64{*liarSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T) { lie(t, rand.New(rand.NewPCG(seed, seed)), seed%2 == 0) })
		})
	}
}

// lie makes servers forget the past, too, if they are forgetful: only that costs lists.
func lie(t *testing.T, rng *rand.Rand, forgetful bool) {
	l, d, o := grown(t, 2, Options{Snapshots: newMemory(), compareLeast: 1 + rng.IntN(30)})
	r1 := d.observe("r1")
	lists := l.lists("")
	for range 150 {
		m := l.members[rng.IntN(2)]
		switch rng.IntN(30) {
		case 0:
			l.each(func(m *member) { m.stalled = !m.stalled }, m)
		case 1:
			l.each(func(m *member) { m.frozen = !m.frozen }, m)
		case 2:
			l.each(func(m *member) { m.resets = !m.resets; m.hangUpLocked() }, m)
		case 3:
			l.each(func(m *member) { m.mute = !m.mute }, m)
		case 4:
			l.each(func(m *member) { m.ends = !m.ends }, m)
		case 5:
			l.each(func(m *member) { m.garbled = 1 }, m)
		case 6:
			l.each(func(m *member) { m.forge = func(v int) []int { return []int{v - 2, v + 1000, v} } }, m)
		case 7:
			l.each(func(m *member) { m.forge = nil }, m)
		case 8:
			code := []int{429, 500, 503, 0}[rng.IntN(4)]
			l.each(func(m *member) { m.answer = func(string, string) int { return code } }, m)
		case 9:
			l.do(func() { l.refusing = !l.refusing })
		case 10, 11:
			l.hangUp(m)
		case 12:
			if forgetful {
				l.restart(m)
			}
		case 13:
			if forgetful {
				l.compact()
			}
		default:
			resource, name := []string{"pods", "r1"}[rng.IntN(2)], fmt.Sprint("p", rng.IntN(20))
			switch rng.IntN(4) {
			case 0:
				l.deleteIn(resource, name)
			case 1:
				l.deleteIn(resource, name)
				l.putIn(resource, name, "again")
			default:
				l.putIn(resource, name, fmt.Sprint(rng.Uint32()))
			}
		}
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(8*time.Second)))
	}
	l.each(func(m *member) {
		m.stalled, m.frozen, m.resets, m.mute, m.ends, m.forge, m.answer, m.garbled = false, false, false, false, false, nil, nil, 0
	})
	l.do(func() { l.refusing = false })
	d.becomes(2*time.Minute, cache.Live)
	d.equal(0)
	for _, o := range []*observer{o, r1} {
		if replaced, expired, _ := o.counts(); replaced+expired != 0 {
			t.Errorf("%s: %d stores replaced and %d subscriptions ended, and there was one history", o.resource, replaced, expired)
		}
	}
	if n := l.lists("") - lists; n != 0 && !forgetful {
		t.Errorf("%d lists, and nothing was forgotten", n)
	}
}
