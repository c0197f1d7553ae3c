package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestQuietTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause, longest = 200 * time.Millisecond, 2 * time.Second
		q := newQuietTimer(pause, longest)
		// after is when it runs out, if something happens every so often, n times.
		after := func(every time.Duration, n int) time.Duration {
			start := time.Now()
			q.disturb()
			for {
				next := time.After(every)
				if n == 0 {
					next = nil
				}
				select {
				case <-q.C:
					q.ranOut()
					return time.Since(start)
				case <-next:
					n--
					q.disturb()
				}
			}
		}
		for _, test := range []struct {
			every time.Duration
			n     int
			want  time.Duration
		}{
			{time.Hour, 0, pause},
			{pause / 2, 4, 4*pause/2 + pause},
			{pause/2 + 1, 1000, longest},
			{pause / 3, 3, 3*(pause/3) + pause},
		} {
			if got := after(test.every, test.n); got != test.want {
				t.Errorf("disturbed %d times every %v it runs out after %v, want %v", test.n, test.every, got, test.want)
			}
		}
	})
}
