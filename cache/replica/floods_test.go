package replica

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

func manySpecs(n int) []cache.Spec {
	specs := []cache.Spec{specOf("pods")}
	for _, name := range numbered("r", n) {
		specs = append(specs, specOf(name))
	}
	return specs
}

// TestFloodsAreBounded: whatever goes wrong, neither the log nor the API server is
// flooded, however many resources there are.
func TestFloodsAreBounded(t *testing.T) {
	t.Run("bookmark and end", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l := newLiar(2)
			d := deceive(t, l, Options{}, manySpecs(1)...)
			d.becomes(10*time.Second, cache.Live)
			began, lines := time.Now(), d.records.len()
			l.each(func(m *member) { m.ends = true; m.hangUpLocked() })
			for range 60 {
				l.put("p", time.Now().String()) // an event, too
				time.Sleep(5 * time.Second)
			}
			asked, _ := l.asked()
			if n := most(asked, began.Add(time.Minute), 10*time.Second); n > 60 {
				t.Errorf("%d requests in 10 seconds", n)
			}
			if said, _ := d.records.since(lines); len(said) > 10 {
				t.Errorf("%d lines in the log:\n%s", len(said), strings.Join(said, ""))
			}
		})
	})
	t.Run("two of three answers fail", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l := newLiar(2)
			d := deceive(t, l, Options{}, manySpecs(9)...)
			d.becomes(10*time.Second, cache.Live)
			var requests atomic.Int64
			l.each(func(m *member) {
				m.answer = func(string, string) int {
					if requests.Add(1)%3 != 0 {
						return http.StatusServiceUnavailable
					}
					return 0
				}
			})
			for range 60 {
				l.hangUp()
				time.Sleep(5 * time.Second)
			}
			d.said("API server answers by turns, trying on", 1)
			l.each(func(m *member) { m.answer = nil })
			d.becomes(time.Minute, cache.Live)
			time.Sleep(2 * turnsWithin)
			lines, _ := d.records.since(0)
			if n := len(lines); n > 20 || !strings.Contains(lines[n-1], "API server answers") {
				t.Errorf("%d lines in the log:\n%s", n, strings.Join(lines, ""))
			}
		})
	})
	t.Run("another cluster", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l, db := newLiar(1), newMemory()
			d := deceive(t, l, Options{Snapshots: db}, manySpecs(59)...)
			d.becomes(30*time.Second, cache.Live)
			time.Sleep(5 * time.Second)
			d.stop()
			l.do(func() { l.uid = "cluster-2" })
			d = deceive(t, l, Options{Snapshots: db}, manySpecs(59)...)
			d.becomes(time.Minute, cache.Live)
			said, _ := d.records.since(0)
			warned := 0
			for _, line := range said {
				if strings.Contains(line, "snapshot dropped") {
					warned++
				}
			}
			if warned != 1 {
				t.Errorf("%d warnings of 60 snapshots of another cluster, want one", warned)
			}
		})
	})
	t.Run("restored", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			l := newLiar(2)
			l.put("p", "1")
			d := deceive(t, l, Options{}, manySpecs(59)...)
			d.becomes(30*time.Second, cache.Live)
			backup, before, lines := l.backup(), d.pods().View().Store(inside.Cache), d.records.len()
			l.put("p", "lost")
			time.Sleep(5 * time.Second)
			l.restore(backup)
			l.restart()
			within(t, time.Minute, "another copy to be read", func() bool { return d.pods().View().Store(inside.Cache) != before })
			d.becomes(time.Minute, cache.Live)
			if said, _ := d.records.since(lines); len(said) > 10 {
				t.Errorf("%d lines in the log:\n%s", len(said), strings.Join(said, ""))
			}
		})
	})
}
