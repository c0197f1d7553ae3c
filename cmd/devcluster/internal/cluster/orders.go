package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cmd/devcluster/internal/control"
	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// Actions are what can be done to a component.
var Actions = []string{"start", "stop", "kill", "restart", "pause", "resume"}

// Flags of the order to restore.
const (
	FlagRunning = "running" // 1: the API servers run on
	FlagBump    = "bump"    // revisions to add
)

// control carries out what `devcluster ctl` asks for.
func (c *Cluster) control(ctx context.Context, order control.Order) (any, error) {
	if len(order.Args) > 0 || order.Action == "compact" { // the rest are questions
		c.logf("%s: on request", strings.Join(append([]string{order.Action}, order.Args...), " "))
	}
	if slices.Contains(Actions, order.Action) {
		return nil, each(order.Args, func(component string) error { return c.act(ctx, order.Action, component) })
	}
	if order.Action == "balancer" {
		return c.orderBalancer(order.Args)
	}
	if order.Action == "proxy" {
		if order.Body != nil {
			c.logf("proxy %s: on request", order.Body)
		}
		return c.orderProxy(order.Body)
	}
	want := map[string]int{"program": 2, "backup": 1, "restore": 1, "compact": 0}
	count, ok := want[order.Action]
	if !ok {
		return nil, fmt.Errorf("unknown action %q", order.Action)
	}
	if len(order.Args) != count {
		return nil, fmt.Errorf("%s takes %d arguments", order.Action, count)
	}
	switch order.Action {
	case "program":
		return nil, c.setProgram(order.Args[0], order.Args[1])
	case "backup":
		return c.backup(ctx, order.Args[0])
	case "restore":
		return c.restore(ctx, order.Args[0], order.Flags[FlagRunning] != 0, order.Flags[FlagBump])
	default:
		return c.compact(ctx)
	}
}

// each stops at the first error and says whose it is.
func each(components []string, do func(string) error) error {
	for _, component := range components {
		if err := do(component); err != nil {
			return fmt.Errorf("%s: %w", component, err)
		}
	}
	return nil
}

func (c *Cluster) process(component string) (*process.Process, error) {
	p, ok := c.processes[component]
	if !ok {
		return nil, fmt.Errorf("unknown component %q; there are: %s", component, strings.Join(c.names, ", "))
	}
	return p, nil
}

func (c *Cluster) act(ctx context.Context, action, component string) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	switch action {
	case "start":
		return p.Start(ctx)
	case "stop":
		return p.Stop()
	case "kill":
		return p.Kill()
	case "restart":
		if err := p.Stop(); err != nil {
			return err
		}
		return p.Start(ctx)
	case "pause":
		return p.Pause()
	case "resume":
		return p.Resume()
	}
	return fmt.Errorf("unknown action %q", action)
}
