package sinks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/kafkasink"
	"github.com/informerd/informerd/server/handlers/natssink"
)

const objects = 60

// TestBrokersGone: keys pend while their broker is away, at the start, under churn and across a
// restart, none is given up, and then the last state of each arrives, ends included.
func TestBrokersGone(t *testing.T) {
	for kind, make := range map[string]func(*testing.T) Broker{"nats": NewNATS, "kafka": NewKafka} {
		t.Run(kind, func(t *testing.T) {
			w, b := newWorld(t), make(t)
			churn := func(r *rand.Rand, changes int) {
				for range changes {
					name, color := fmt.Sprint("o", r.IntN(objects)), fmt.Sprint("c", r.IntN(1000))
					if r.IntN(5) == 0 {
						color = ""
					}
					w.put(name, color)
				}
			}
			r := rand.New(rand.NewPCG(1, 1))
			for i := range objects {
				w.put(fmt.Sprint("o", i), "red")
			}
			w.begin(kind, sinkOf(t, kind, b)) // and there is no broker
			w.until("down", func(s handlers.Status) bool {
				return s.State == "down" && s.Pending == objects && s.Reason != ""
			})
			churn(r, 200)
			b.Start()
			w.idle()
			w.check(b)

			for range 3 { // the broker goes and comes back under churn
				churn(r, 50)
				b.Stop()
				churn(r, 50)
				b.Start()
			}
			w.idle()
			w.check(b)

			b.Stop() // and the process ends meanwhile
			churn(r, 50)
			w.until("down", func(s handlers.Status) bool { return s.State == "down" })
			w.end()
			churn(r, 50)
			w.begin(kind, sinkOf(t, kind, b))
			churn(r, 50)
			w.until("down again", func(s handlers.Status) bool { return s.State == "down" })
			b.Start()
			w.idle()
			w.check(b)
			n := len(b.Messages())

			w.end() // after which nothing has changed
			w.begin(kind, sinkOf(t, kind, b))
			w.idle()
			time.Sleep(200 * time.Millisecond)
			if more := len(b.Messages()) - n; more > 0 {
				t.Errorf("a restart after which nothing had changed delivered %d", more)
			}
		})
	}
}

func sinkOf(t *testing.T, kind string, b Broker) (s handlers.Sink) {
	t.Helper()
	var err error
	if kind == "nats" {
		s, err = natssink.New(natssink.Config{Servers: []string{b.Address()}})
	} else {
		s, err = kafkasink.New(kafkasink.Config{Brokers: []string{b.Address()}, Topic: Topic, Timeout: 3 * time.Second})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check sees to it that what a broker was told last is true, and that nothing was given up.
func (w *world) check(b Broker) {
	w.t.Helper()
	colors, repeated := lasts(w.t, b.Messages())
	w.mu.Lock()
	truth := maps.Clone(w.truth)
	w.mu.Unlock()
	if diff := cmp.Diff(truth, colors); diff != "" {
		w.t.Errorf("told last (-true +told):\n%s", diff)
	}
	if s := w.status(); s.Dead > 0 || repeated > 0 {
		w.t.Errorf("%d keys were given up, %d messages repeated", s.Dead, repeated)
	}
}
