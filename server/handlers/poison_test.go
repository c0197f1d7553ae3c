package handlers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestPoisons: many keys that are always refused are given up, too, though the sink seems to be
// to blame; and one that is not refused waits for none of them.
func TestPoisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t), &sink{}
		s.answer = func(d Delivery) error {
			if colorOf(&d) == "poison" {
				return &RejectedError{Reason: "indigestible"}
			}
			return nil
		}
		h := handler(s)
		h.Retry = Retry{Base: time.Second, Max: 10 * time.Second, Attempts: 3}
		w.start(h)
		const poisons = 50
		for i := range poisons {
			w.truth.put(fmt.Sprint("bad", i), "poison")
		}
		w.all()
		dead := func() int { st, _ := w.manager.Handler("h"); return st.Dead }
		within := func(what string, ok func() bool) {
			for end := time.Now().Add(time.Hour); !ok(); time.Sleep(time.Second) {
				if time.Now().After(end) {
					t.Fatalf("not within an hour: %s; %d of %d are given up", what, dead(), poisons)
				}
			}
		}
		// Nobody knows of one before it was tried.
		within("all were tried", func() bool { st, _ := w.manager.Handler("h"); return st.Retrying+st.Dead == poisons })
		for i := range 5 {
			began := time.Now()
			w.truth.put(fmt.Sprint("good", i), "red")
			w.all()
			until(t, "delivered", func() bool { return len(s.deliveries()) == i+1 })
			if took := time.Since(began); took > 3*refusedMax {
				t.Errorf("%s passed, and %d are given up", took, dead())
			}
			time.Sleep(time.Second)
		}
		within("all are given up", func() bool { return dead() == poisons })
		w.crash()
	})
}
