package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentOnceInForce: as long as a fault is being made the API server may be heard.
func TestSilentOnceInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{env: &Env{Log: func(string, ...any) {}}}
		kind := Kind{Name: "slow", Silent: true, Begin: func(context.Context, *Env, *rand.Rand) (func(context.Context) error, error) {
			time.Sleep(10 * time.Second) // on a busy machine
			return nil, nil
		}}
		began := time.Now()
		go r.one(t.Context(), kind, 20*time.Second, nil)
		for _, look := range []struct {
			at     time.Duration
			silent time.Duration
		}{{5 * time.Second, 0}, {10500 * time.Millisecond, 0}, {15 * time.Second, 11 * time.Second}, {40 * time.Second, 0}} {
			time.Sleep(time.Until(began.Add(look.at)))
			synctest.Wait()
			since := r.Timeline.Silent(time.Now(), time.Second)
			if want := began.Add(look.silent); look.silent > 0 && !since.Equal(want) || look.silent == 0 && !since.IsZero() {
				t.Errorf("after %v: silent since %v", look.at, since.Sub(began))
			}
		}
	})
}
