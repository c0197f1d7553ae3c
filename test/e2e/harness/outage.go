package harness

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Redundant are two API servers behind a balancer, and a proxy that can be made to
// lie. Nothing else runs.
var Redundant = append([]string{"--apiservers", "2", "--proxy"}, Small...)

// order runs `devcluster ctl` and decodes what it prints into result, unless that
// is nil.
func (c *Cluster) order(tb testing.TB, result any, args ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.program, append([]string{"ctl", "--dir", c.Dir}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		tb.Fatalf("devcluster ctl %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	} else if err != nil {
		tb.Fatalf("devcluster ctl %s: %v", strings.Join(args, " "), err)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(out, result); err != nil {
		tb.Fatalf("devcluster ctl %s prints %q: %v", strings.Join(args, " "), out, err)
	}
}

// Components are the processes of the cluster as they are now.
func (c *Cluster) Components(tb testing.TB) []Component {
	tb.Helper()
	if err := c.readInfo(); err != nil {
		tb.Fatal(err)
	}
	return c.info.Components
}

// Component is one of them.
func (c *Cluster) Component(tb testing.TB, name string) Component {
	tb.Helper()
	for _, component := range c.Components(tb) {
		if component.Name == name {
			return component
		}
	}
	tb.Fatalf("devcluster has no component %s", name)
	return Component{}
}

// BalancerState is what the balancer does.
type BalancerState struct {
	Mode     string `json:"mode"`
	Accepted int    `json:"accepted"` // connections since the start
	Backends []struct {
		Component      string `json:"component"`
		Out            bool   `json:"out"`
		BytesPerSecond int    `json:"bytesPerSecond"`
		Connections    int    `json:"connections"`
	} `json:"backends"`
}

// Balancer gives the balancer an order (normal, reset, hold, only C, drop C,
// cut [C], slow C N), or asks for its state if there is none.
func (c *Cluster) Balancer(tb testing.TB, order ...string) BalancerState {
	tb.Helper()
	var state BalancerState
	c.order(tb, &state, append([]string{"balancer"}, order...)...)
	return state
}

// Backup saves etcd under a name and returns its revision.
func (c *Cluster) Backup(tb testing.TB, name string) (revision int64) {
	tb.Helper()
	var saved struct{ Revision int64 }
	c.order(tb, &saved, "backup", name)
	return saved.Revision
}

// Restored are the revisions of etcd before and after a restore.
type Restored struct{ Was, Revision int64 }

// RestoreOptions say how a backup is restored.
type RestoreOptions struct {
	Running bool // the API servers run on while etcd goes back under them
	Bump    int  // revisions to add, marking what is older as compacted
}

// Restore puts etcd back to a backup.
func (c *Cluster) Restore(tb testing.TB, name string, opts RestoreOptions) Restored {
	tb.Helper()
	args := []string{"restore", name, "--bump", strconv.Itoa(opts.Bump)}
	if opts.Running {
		args = append(args, "--running")
	}
	var restored Restored
	c.order(tb, &restored, args...)
	return restored
}

// Compact compacts etcd at its present revision, which it returns.
func (c *Cluster) Compact(tb testing.TB) (revision int64) {
	tb.Helper()
	var compacted struct{ Revision int64 }
	c.order(tb, &compacted, "compact")
	return compacted.Revision
}

// Program has the next start of a component run another devcluster binary; "-" is
// the cluster's own.
func (c *Cluster) Program(tb testing.TB, component, path string) {
	tb.Helper()
	c.order(tb, nil, "program", component, path)
}

// ProxyRules are what the proxy does wrong; the README of devcluster explains
// them.
type ProxyRules struct {
	Seed  uint64      `json:"seed,omitempty"`
	Rules []ProxyRule `json:"rules"`
}

// ProxyRule is one fault and the requests that suffer it.
type ProxyRule struct {
	Name  string         `json:"name,omitempty"`
	Match ProxyMatch     `json:"match"`
	Do    map[string]any `json:"do"` // one fault: {"cut": {"afterEvents": 3}}
}

// ProxyMatch chooses requests. What is empty excludes none.
type ProxyMatch struct {
	Verb  string  `json:"verb,omitempty"`  // list, watch, get or other
	Path  string  `json:"path,omitempty"`  // regular expression
	Query string  `json:"query,omitempty"` // regular expression
	Share float64 `json:"share,omitempty"`
	Times int     `json:"times,omitempty"`
}

// ProxyState is what the proxy did.
type ProxyState struct {
	Requests int `json:"requests"`
	Watches  int `json:"watches"` // open now
	Rules    []struct {
		Name    string `json:"name"`
		Applied int    `json:"applied"`
	} `json:"rules"`
}

// Proxy replaces the proxy's rules. They are in force when it returns, also for
// the watches that are open; no rules heal everything.
func (c *Cluster) Proxy(tb testing.TB, rules ProxyRules) ProxyState {
	tb.Helper()
	data, err := json.Marshal(rules)
	if err != nil {
		tb.Fatal(err)
	}
	var state ProxyState
	c.order(tb, &state, "proxy", string(data))
	return state
}

// ProxyState asks what the proxy did, by rule since the rules were set.
func (c *Cluster) ProxyState(tb testing.TB) ProxyState {
	tb.Helper()
	var state ProxyState
	c.order(tb, &state, "proxy")
	return state
}

// ProxiedKubeconfig leads the admin through the proxy.
func (c *Cluster) ProxiedKubeconfig() string { return c.info.Kubeconfigs["proxied"] }

// ProxyURL is where the proxy listens, in plain HTTP.
func (c *Cluster) ProxyURL() string { return c.info.Proxy }

// BalancerAddress is where the balancer listens; empty if there is none.
func (c *Cluster) BalancerAddress() string { return c.info.Balancer }
