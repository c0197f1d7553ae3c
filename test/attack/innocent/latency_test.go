package innocent

import (
	"errors"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for n := range 100 {
		hundred = append(hundred, time.Duration(100-n)) // not in order
	}
	for _, c := range []struct {
		times []time.Duration
		q     float64
		want  time.Duration
	}{
		{nil, 0.99, 0},
		{[]time.Duration{7}, 0, 7}, {[]time.Duration{7}, 0.5, 7}, {[]time.Duration{7}, 1, 7},
		{[]time.Duration{2, 1}, 0.5, 1}, {[]time.Duration{2, 1}, 0.51, 2},
		{hundred, 0, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 0.991, 100}, {hundred, 1, 100},
	} {
		if got := Percentile(c.times, c.q); got != c.want {
			t.Errorf("%v of %d times is %d, want %d", c.q, len(c.times), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the times are in another order now")
	}
}

// TestPhases: what was asked for in a phase counts there, and is told once.
func TestPhases(t *testing.T) {
	u := New(Options{})
	u.book.Load().answered(Get, 1)
	if got := u.Since()[Get]; len(got) != 1 {
		t.Errorf("told %v", got)
	}
	u.book.Load().answered(Get, 2)
	if got := u.Since()[Get]; len(got) != 1 || got[0] != 2 {
		t.Errorf("then told %v", got)
	}
	u.time(t.Context(), List, func() error {
		u.Begin()
		return errors.New("no answer")
	})
	if n := u.Failed()[List]; n != 0 {
		t.Errorf("%d failures are of the phase after", n)
	}
	for range maxFailures + 1 {
		u.time(t.Context(), List, func() error { return errors.New("no answer") })
	}
	u.time(t.Context(), List, func() error { return nil })
	got := u.Begin()
	if len(got.Times[List]) != 1 || got.Failed[List] != maxFailures+1 || len(got.Failures) != maxFailures || got.Times[Get] != nil {
		t.Errorf("%d times, %d failures, %d of them kept, of the phase before: %v", len(got.Times[List]), got.Failed[List], len(got.Failures), got.Times[Get])
	}
}
