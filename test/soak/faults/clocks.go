package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	day = 24 * time.Hour
	// anHour is what certificates of a devcluster bear: informerd goes on connecting.
	anHour = 50 * time.Minute
)

// clockSet sets the first informerd's wall clock off, and back.
func clockSet(by time.Duration) begin {
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		return func(context.Context) error { return e.Rig.SetClock(0) }, e.Rig.SetClock(by)
	}
}

// clockRestart sets it off and back while informerd is not running: what it saved is of
// another time then.
func clockRestart(by time.Duration) begin {
	again := func(e *Env, by time.Duration) error {
		e.Rig.First.Kill()
		return errors.Join(e.Rig.SetClock(by), e.Rig.First.Start())
	}
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		return func(context.Context) error { return again(e, 0) }, again(e, by)
	}
}

func clockKinds() []Kind {
	const s = time.Second
	one := []string{first}
	kind := func(name, does string, b begin) Kind {
		return Kind{Name: name, Does: does, Parts: one, Needs: "clock", Least: 2 * s, Most: 30 * s, Begin: b}
	}
	return []Kind{
		kind("clock-ahead", "the wall clock is a day ahead, and right again", clockSet(day)),
		kind("clock-behind", "the wall clock is 50 minutes behind, and right again", clockSet(-anHour)),
		kind("clock-behind-day", "the same by a day: certificates are not valid yet", clockSet(-day)),
		kind("clock-ahead-restart", "SIGKILL, a start a day ahead, SIGKILL, a start", clockRestart(day)),
		kind("clock-behind-restart", "the same 50 minutes behind", clockRestart(-anHour)),
	}
}
