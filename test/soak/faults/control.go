package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// orders gives orders to devcluster at the beginning and at the end.
func orders(down, up [][]string) begin {
	return func(ctx context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return e.all(ctx, up) }, e.all(ctx, down)
	}
}

func (e *Env) all(ctx context.Context, orders [][]string) error {
	for _, o := range orders {
		if _, err := e.Rig.Ctl(ctx, o...); err != nil {
			return err
		}
	}
	return nil
}

func o(words ...string) [][]string { return [][]string{words} }

const (
	one = "kube-apiserver"
	two = "kube-apiserver-2"
)

func serverKinds() []Kind {
	parts := []string{servers}
	const s = time.Second
	return []Kind{
		{Name: "server-1-kill", Does: "SIGKILL of an API server", Parts: parts, Least: s, Most: 20 * s, Lists: true, Begin: orders(o("kill", one), o("start", one))},
		{Name: "server-2-kill", Does: "the same of the other", Parts: parts, Needs: "servers", Least: s, Most: 20 * s, Lists: true, Begin: orders(o("kill", two), o("start", two))},
		{Name: "server-1-freeze", Does: "SIGSTOP of an API server", Parts: parts, Least: s, Most: 100 * s, Begin: orders(o("pause", one), o("resume", one))},
		{Name: "server-2-freeze", Does: "the same of the other", Parts: parts, Needs: "servers", Least: s, Most: 100 * s, Begin: orders(o("pause", two), o("resume", two))},
		{Name: "server-1-restart", Does: "a restart of an API server", Parts: parts, Least: s, Most: 5 * s, Lists: true, Begin: orders(o("restart", one), nil)},
		{Name: "server-2-restart", Does: "the same of the other", Parts: parts, Needs: "servers", Least: s, Most: 5 * s, Lists: true, Begin: orders(o("restart", two), nil)},
		{Name: "servers-kill", Does: "SIGKILL of both API servers", Parts: parts, Needs: "servers", Least: s, Most: 30 * s, Lists: true, Silent: true,
			Begin: orders([][]string{{"kill", one}, {"kill", two}}, [][]string{{"start", one}, {"start", two}})},
		{Name: "servers-freeze", Does: "SIGSTOP of both API servers", Parts: append(parts, line), Needs: "servers", Least: s, Most: 110 * s, Silent: true,
			Begin: orders([][]string{{"pause", one}, {"pause", two}}, [][]string{{"resume", one}, {"resume", two}})},
		{Name: "servers-roll", Does: "a restart of one API server after the other", Parts: parts, Needs: "servers", Least: s, Most: 5 * s, Lists: true,
			Begin: orders([][]string{{"restart", one}, {"restart", two}}, nil)},
	}
}

// restored takes etcd back to a backup, with something happening before and
// after. Traffic rests for the moment in which the old history ends.
func restored(flags []string, before, after func(context.Context, *Env) error) begin {
	return func(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
		name := fmt.Sprintf("backup-%d", random.Uint32())
		if err := e.Rig.Backup(ctx, name); err != nil {
			return nil, err
		}
		wait(ctx, 3*time.Second+time.Duration(random.IntN(8000))*time.Millisecond)
		if before != nil {
			if err := before(ctx, e); err != nil {
				return nil, err
			}
		}
		release := e.Traffic.Hold()
		err := e.Rig.Restore(ctx, name, flags...)
		if slices.Contains(flags, "--bump") {
			e.Rig.History.Compacted()
		}
		release()
		return func(ctx context.Context) error {
			if after != nil {
				return after(ctx, e)
			}
			return nil
		}, err
	}
}

// found is how long informerd may take to find out that API servers which have been
// restarted serve another history: it asks every two seconds.
const found = 15 * time.Second

// restoredRunning restores etcd under API servers that run on. They serve what they
// remember as if it were so, which nobody can tell: nothing is judged until they have
// been restarted, as etcd's documents ask for. Nobody writes meanwhile: once versions
// are passed, the restore cannot be told from what they serve.
func restoredRunning(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
	name := fmt.Sprintf("backup-%d", random.Uint32())
	if err := e.Rig.Backup(ctx, name); err != nil {
		return nil, err
	}
	wait(ctx, 5*time.Second+time.Duration(random.IntN(6000))*time.Millisecond)
	release, over := e.Traffic.Hold(), e.Rig.History.Blur()
	err := e.Rig.Restore(ctx, name, "--running")
	return func(ctx context.Context) error {
		defer release()
		err := e.all(ctx, [][]string{{"restart", one}, {"restart", two}})
		e.foundOut(ctx) // informerd asks, before the versions are passed
		over(time.Now().Add(found))
		return err
	}, err
}

func etcdKinds() []Kind {
	const s = time.Second
	parts := []string{etcd, servers}
	all := append(parts, definition, aggregated, objects)
	return []Kind{
		{Name: "etcd-kill", Does: "SIGKILL of etcd", Parts: parts, Least: s, Most: 20 * s, Lists: true, Begin: orders(o("kill", etcd), o("start", etcd))},
		{Name: "etcd-freeze", Does: "SIGSTOP of etcd", Parts: parts, Least: s, Most: 40 * s, Lists: true, Begin: orders(o("pause", etcd), o("resume", etcd))},
		{Name: "etcd-restart", Does: "a restart of etcd", Parts: parts, Least: s, Most: 5 * s, Lists: true, Begin: orders(o("restart", etcd), nil)},
		{Name: "etcd-compact", Does: "compaction of everything up to now", Parts: []string{etcd}, Needs: "backup", Least: s, Most: 5 * s, Lists: true,
			Begin: func(ctx context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
				// Nothing may be forgotten before it is written down.
				release := e.Traffic.Hold()
				defer release()
				if err := e.Rig.History.Now().Wait(ctx); err != nil {
					return nil, err
				}
				e.Rig.History.Compacted()
				_, err := e.Rig.Ctl(ctx, "compact")
				return nil, err
			}},
		{Name: "restore", Does: "etcd restored from a backup, API servers restarted", Parts: all, Needs: "backup", Least: s, Most: 5 * s, Lists: true, Begin: restored(nil, nil, nil)},
		{Name: "restore-running", Does: "etcd restored under API servers that are restarted later", Parts: append(all, line), Needs: "backup", Least: s, Most: 5 * s, Lists: true,
			Begin: restoredRunning},
		{Name: "restore-bump", Does: "etcd restored as its documents advise: versions raised, the past compacted", Parts: all, Needs: "backup", Least: s, Most: 5 * s, Lists: true,
			Begin: restored([]string{"--bump", "1000000"}, nil, nil)},
		{Name: "restore-away", Does: "etcd restored while informerd is stopped", Parts: append(all, first), Needs: "backup", Least: s, Most: 5 * s, Lists: true,
			Begin: restored(nil, func(_ context.Context, e *Env) error { return e.Rig.First.Stop() }, func(_ context.Context, e *Env) error { return e.Rig.First.Start() })},
		{Name: "restore-hold", Does: "etcd restored while packets are lost", Parts: append(all, line), Needs: "backup", Least: s, Most: 10 * s, Lists: true,
			Begin: restored(nil,
				func(ctx context.Context, e *Env) error { return e.all(ctx, o("balancer", "hold")) },
				func(ctx context.Context, e *Env) error { return e.all(ctx, o("balancer", "normal")) })},
	}
}

func balancerKinds() []Kind {
	const s = time.Second
	parts, normal := []string{line}, o("balancer", "normal")
	return []Kind{
		{Name: "balancer-reset", Does: "all connections are reset, new ones at once", Parts: append(parts, servers), Needs: "servers", Least: s, Most: 100 * s, Silent: true, Begin: orders(o("balancer", "reset"), normal)},
		{Name: "balancer-hold", Does: "connections are accepted, nothing is answered", Parts: append(parts, servers), Needs: "servers", Least: s, Most: 100 * s, Silent: true, Begin: orders(o("balancer", "hold"), normal)},
		{Name: "balancer-cut", Does: "all connections are reset, once", Parts: parts, Needs: "servers", Least: s, Most: 5 * s, Begin: orders(o("balancer", "cut"), nil)},
		{Name: "balancer-move", Does: "all connections move to one API server", Parts: append(parts, servers), Needs: "servers", Least: s, Most: 20 * s,
			Begin: orders([][]string{{"balancer", "only", two}, {"balancer", "cut", one}}, normal)},
		{Name: "balancer-drop", Does: "an API server is taken out", Parts: append(parts, servers), Needs: "servers", Least: s, Most: 20 * s,
			Begin: orders([][]string{{"balancer", "drop", two}, {"balancer", "cut", two}}, normal)},
		{Name: "balancer-slow", Does: "a slow line", Parts: parts, Needs: "servers", Least: 5 * s, Most: 60 * s,
			Begin: orders([][]string{{"balancer", "slow", one, "3000"}, {"balancer", "slow", two, "3000"}},
				[][]string{{"balancer", "slow", one, "0"}, {"balancer", "slow", two, "0"}})},
	}
}
