package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/rig"
	"github.com/informerd/informerd/test/soak/traffic"
)

func aggregatedIs(mode string) begin {
	return func(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		e.Aggregated.Set(mode)
		return func(context.Context) error { e.Aggregated.Set(""); return nil }, nil
	}
}

// burst deletes a namespace of 500 objects, as far as that needs no controllers.
func burst(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err := traffic.Burst(ctx, e.Client, e.Stable[0], fmt.Sprintf("burst-%d", random.IntN(3)), 500)
	return nil, err
}

// Rules that change what is watched of resources that nobody reads here, and
// indexes of those that are read.
var storms = []string{
	"- match: [serviceaccounts]\n  labelSelector: a=b\n- match: [configmaps]\n  indexes: {tier: metadata.labels.tier, app: metadata.labels.app}\n",
	"- match: [clusterroles.rbac.authorization.k8s.io]\n  watch: false\n- match: [pods]\n  drop: [metadata.managedFields, metadata.selfLink]\n",
	"- match: [configmaps]\n  drop: [metadata.managedFields, metadata.generateName]\n- match: [serviceaccounts]\n  namespaces: [\"soak-*\"]\n",
	"",
}

// reloads changes the configuration again and again.
func reloads(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
	i := e.Rig.First
	var err error
	for range 15 {
		err = errors.Join(err, i.WriteRules(storms[random.IntN(len(storms))]+rig.DefaultRules), i.Signal(syscall.SIGHUP))
		wait(ctx, time.Duration(random.IntN(600))*time.Millisecond)
	}
	return func(context.Context) error {
		return errors.Join(i.WriteRules(rig.DefaultRules), i.Signal(syscall.SIGHUP))
	}, err
}

// deaf are readers that ask and never read. Another fault may have ended informerd for a
// while: they wait for it.
func deaf(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
	var all []net.Conn
	hang := func(context.Context) error {
		for _, c := range all {
			_ = c.Close()
		}
		return nil
	}
	for _, path := range []string{
		"/api/v1/configmaps?watch=true", "/api/v1/pods", "/v1/resources/configmaps/objects?watch=true",
		"/v1/resources/secrets/objects", "/v1/query?watch=true", "/api/v1/secrets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	} {
		for range 12 {
			err := harness.Poll(2*time.Minute, func() error {
				c, err := net.Dial("tcp", e.Rig.First.Address)
				if err != nil {
					return err
				}
				all = append(all, c)
				_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, e.Rig.First.Address)
				return err
			})
			if err != nil {
				return hang, err
			}
		}
	}
	return hang, nil
}

func otherKinds() []Kind {
	const s = time.Second
	own := []string{"gauges." + AggregatedGroup, "apiservices.apiregistration.k8s.io"}
	return []Kind{
		{Name: "aggregated-hang", Does: "an aggregated API does not answer", Parts: []string{aggregated}, Least: 3 * s, Most: 90 * s, Lists: true, Own: own, Begin: aggregatedIs("hang")},
		{Name: "aggregated-refuse", Does: "an aggregated API answers 503", Parts: []string{aggregated}, Least: 3 * s, Most: 40 * s, Lists: true, Own: own, Begin: aggregatedIs("refuse")},
		{Name: "objects-500", Does: "500 objects of a namespace are created, and deleted at once", Parts: []string{objects, servers}, Most: 2 * s, Begin: burst},
		{Name: "reload-storm", Does: "the configuration changes 15 times", Parts: []string{first}, Most: 5 * s, Lists: true, Begin: reloads},
		{Name: "readers-deaf", Does: "72 readers ask and never read", Parts: []string{readers}, Least: 5 * s, Most: 60 * s, Begin: deaf},
	}
}
