package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

// lookupTimeout is how long commands wait for a cluster.
const lookupTimeout = 10 * time.Second

// lookup asks a cluster once what it serves, in the versions that rules pin.
func lookup(ctx context.Context, a *access, rules []config.Rule) ([]discovery.Resource, error) {
	pins := plan.LiteralPins(rules)
	set, err := discoverOnce(ctx, a, pins)
	if err != nil {
		return nil, err
	}
	// Pins by globs are known only now.
	more := maps.Clone(pins)
	maps.Copy(more, plan.Pins(rules, set.Resources))
	if !maps.Equal(pins, more) {
		set, err = discoverOnce(ctx, a, more)
	}
	return set.Resources, err
}

func discoverOnce(ctx context.Context, a *access, pins map[schema.GroupResource]string) (discovery.Set, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookupTimeout, errNoAnswer)
	defer cancel()
	sets := make(chan discovery.Set, 1)
	disco, err := discovery.New(discovery.Options{
		Config: a.REST,
		Wrap:   a.Wrap,
		Pins:   pins,
		OnChange: func(s discovery.Set) {
			select {
			case sets <- s:
			default:
			}
			cancel()
		},
	})
	if err != nil {
		return discovery.Set{}, fmt.Errorf("ask %s: %w", cache.PublicAddress(a.REST.Host), err)
	}
	if err := disco.Run(ctx); err != nil {
		return discovery.Set{}, fmt.Errorf("ask %s: %w", cache.PublicAddress(a.REST.Host), err)
	}
	select {
	case s := <-sets:
		return s, nil
	default:
		return discovery.Set{}, fmt.Errorf("ask %s: %w", cache.PublicAddress(a.REST.Host), errors.Join(context.Cause(ctx), disco.Err()))
	}
}

var errNoAnswer = fmt.Errorf("no answer within %s", lookupTimeout)
