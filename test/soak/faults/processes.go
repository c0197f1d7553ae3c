package faults

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/informerd/informerd/test/soak/rig"
)

// informerd is the one that a kind acts on.
type which func(*Env) *rig.Informerd

func theFirst(e *Env) *rig.Informerd  { return e.Rig.First }
func theSecond(e *Env) *rig.Informerd { return e.Rig.Second }

type begin = func(context.Context, *Env, *rand.Rand) (func(context.Context) error, error)

// killed ends an informerd with SIGKILL, looks at what it left behind, and starts
// it again.
func killed(w which) begin {
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		i := w(e)
		i.Kill()
		return func(ctx context.Context) error {
			e.checkSnapshot(ctx, i)
			return i.Start()
		}, nil
	}
}

func stopped(w which) begin {
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		i := w(e)
		return func(ctx context.Context) error {
			e.checkSnapshot(ctx, i)
			return i.Start()
		}, i.Stop()
	}
}

func frozen(w which) begin {
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		i := w(e)
		return func(context.Context) error { return i.Signal(syscall.SIGCONT) }, i.Signal(syscall.SIGSTOP)
	}
}

// killedOften kills an informerd again and again while it starts.
func killedOften(_ context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
	for range 3 {
		e.Rig.First.Kill()
		if err := e.Rig.First.Start(); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	e.Rig.First.Kill()
	return func(ctx context.Context) error {
		e.checkSnapshot(ctx, e.Rig.First)
		return e.Rig.First.Start()
	}, nil
}

func processKinds() []Kind {
	one, two := []string{first}, []string{second}
	return []Kind{
		{Name: "informerd-kill", Does: "SIGKILL, then a start", Parts: one, Least: 0, Most: 5 * time.Second, Begin: killed(theFirst)},
		{Name: "informerd-kill-often", Does: "SIGKILL while it starts, four times", Parts: one, Least: 0, Most: time.Second, Begin: killedOften},
		{Name: "informerd-term", Does: "SIGTERM, then a start", Parts: one, Least: 0, Most: 5 * time.Second, Begin: stopped(theFirst)},
		{Name: "informerd-freeze", Does: "SIGSTOP, then SIGCONT", Parts: one, Least: time.Second, Most: 100 * time.Second, Lists: true, Begin: frozen(theFirst)},
		{Name: "informerd-away", Does: "SIGKILL, and long nothing", Parts: one, Least: 20 * time.Second, Most: 60 * time.Second, Lists: true, Begin: killed(theFirst)},
		{Name: "second-kill", Does: "SIGKILL of the second tier", Parts: two, Least: 0, Most: 5 * time.Second, Begin: killed(theSecond)},
		{Name: "second-term", Does: "SIGTERM of the second tier", Parts: two, Least: 0, Most: 5 * time.Second, Begin: stopped(theSecond)},
		{Name: "second-freeze", Does: "SIGSTOP of the second tier", Parts: two, Least: time.Second, Most: 60 * time.Second, Begin: frozen(theSecond)},
	}
}
