package replica

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestUnservedByOne: one of two API servers does not serve a resource. Its copy is in
// doubt whenever it meets that one, and soon live again by the other, without a list
// or an event.
func TestUnservedByOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const rounds = 10
		l, d, o := grown(t, 2, Options{})
		lists := l.lists("pods")
		l.each(func(m *member) {
			m.answer = func(_, resource string) int {
				if resource == "pods" {
					return http.StatusNotFound
				}
				return 0
			}
		}, l.members[1])
		for n := range rounds {
			l.hangUp()
			l.put("p1", fmt.Sprint("new", n))
			d.equal(time.Minute)
			d.becomes(time.Minute, cache.Live)
			time.Sleep(time.Minute)
		}
		replaced, expired, events := o.counts()
		if replaced+expired != 0 || l.lists("pods") != lists || len(events) != rounds {
			t.Errorf("%d stores replaced, %d subscriptions ended, %d lists, events %v; want the 10 changes alone",
				replaced, expired, l.lists("pods")-lists, events)
		}
		// Of both servers it is gone: in doubt, and still held. What is to become of it
		// discovery says.
		l.each(func(m *member) { m.answer = l.members[1].answer }, l.members[0])
		l.hangUp()
		time.Sleep(10 * time.Minute)
		if v := d.pods().View(); v.State != cache.Stale || !v.Readable() || !d.Clusters()[0].Reachable {
			t.Errorf("View() = %s (%s), cluster reachable: %v", v.State, v.Reason, d.Clusters()[0].Reachable)
		}
		if asked, _ := l.asked(); most(asked, time.Now().Add(-5*time.Minute), 10*time.Second) > 30 {
			t.Errorf("asked %d times in 10 seconds", most(asked, time.Now().Add(-5*time.Minute), 10*time.Second))
		}
		// Two of the beginning, and two for each time that it met that one: which of the two
		// a connection meets is left to chance.
		if lines, _ := d.records.since(0); len(lines) > 2+2*(rounds+1) {
			t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, ""))
		}
	})
}
