// Package cluster runs a Kubernetes control plane on loopback, one process per
// component, and loads it with data. It keeps everything in one directory. What
// dies by itself it starts again, unless it dies on and on; what is stopped on
// request stays stopped.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cmd/devcluster/internal/balancer"
	"github.com/informerd/informerd/cmd/devcluster/internal/bench"
	"github.com/informerd/informerd/cmd/devcluster/internal/control"
	"github.com/informerd/informerd/cmd/devcluster/internal/faults"
	"github.com/informerd/informerd/cmd/devcluster/internal/process"
	"github.com/informerd/informerd/cmd/devcluster/internal/seed"
)

// Options say what to run and what to load.
type Options struct {
	Dir        string   // holds everything; created if missing
	Program    string   // the devcluster binary, which contains all components
	Version    string   // of the linked Kubernetes
	Components []string // to start; etcd and kube-apiserver must be among them
	APIServers int      // default 1; kube-apiserver among Components means all of them
	Balancer   bool     // also before a single API server
	Programs   []string // NAME=PATH: components that another devcluster binary runs
	Proxy      bool     // a proxy that can be made to lie

	Seed  string // "" or "demo"
	Pods  int    // quiet pods for benchmarks
	Nodes int    // nodes simulated by kwok

	EtcdArgs              []string // appended to the component's flags
	APIServerArgs         []string
	ControllerManagerArgs []string

	StartTimeout time.Duration // of each component; default 60 s
	Stdout       io.Writer     // the ready line
	Stderr       io.Writer     // progress
}

// Cluster is one control plane.
type Cluster struct {
	opts      Options
	names     []string // of all components, in the order in which they start
	creds     *credentials
	ports     map[string]int // of components, etcd's peers, balancer and proxy
	processes map[string]*process.Process
	balancer  *balancer.Balancer // nil if there is none
	proxy     *faults.Proxy      // nil if there is none
	died      chan death
	socket    string // of control
	began     time.Time

	backups sync.Mutex // held while etcd is saved, restored or compacted

	mu     sync.Mutex // guards all below, and the writing of devcluster.json
	ready  bool
	ended  bool
	deaths map[string]*deaths
}

// Run starts the cluster, prints the ready line, and stops everything after ctx
// has ended or nothing can be done about the death of a component. It returns nil
// only in the first case.
func Run(ctx context.Context, opts Options) error {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return err
	}
	opts.Dir = dir
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	if opts.APIServers == 0 {
		opts.APIServers = 1
	}
	if err := opts.validate(); err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Join(dir, "logs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	c := newCluster(opts)
	if err := c.prepare(); err != nil {
		return err
	}
	return c.run(ctx)
}

func newCluster(opts Options) *Cluster {
	names := componentNames(opts.APIServers)
	return &Cluster{
		opts:      opts,
		names:     names,
		processes: map[string]*process.Process{},
		died:      make(chan death, len(names)), // nobody blocks: each dies once until it is revived
		deaths:    map[string]*deaths{},
		began:     time.Now(),
	}
}

func (o *Options) validate() error {
	for _, name := range o.Components {
		if !slices.Contains(Components, name) {
			return fmt.Errorf("unknown component %q; there are: %s", name, strings.Join(Components, ", "))
		}
	}
	for _, name := range []string{etcd, apiServer} {
		if !slices.Contains(o.Components, name) {
			return fmt.Errorf("--components must contain %s", name)
		}
	}
	if o.Seed != "" && o.Seed != "demo" {
		return fmt.Errorf("unknown seed %q; there is: demo", o.Seed)
	}
	if o.APIServers < 1 || o.APIServers > 3 {
		return errors.New("--apiservers must be 1, 2 or 3")
	}
	for _, program := range o.Programs {
		name, path, ok := strings.Cut(program, "=")
		if !ok || !slices.Contains(componentNames(o.APIServers), name) {
			return fmt.Errorf("--apiserver-program %s is not COMPONENT=PATH", program)
		}
		if err := executable(path); err != nil {
			return err
		}
	}
	if o.Pods < 0 || o.Nodes < 0 {
		return errors.New("--pods and --nodes must not be negative")
	}
	return nil
}

// prepare writes everything that the components read.
func (c *Cluster) prepare() (err error) {
	if err := c.pickPorts(); err != nil {
		return err
	}
	if c.creds, err = openCredentials(c.opts.Dir); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	if err := c.writeConfigs(); err != nil {
		return err
	}
	if c.balances() {
		c.balancer = balancer.New(c.backends()...)
	}
	if c.opts.Proxy {
		if c.proxy, err = c.newProxy(); err != nil {
			return err
		}
	}
	for _, name := range c.names {
		if c.processes[name], err = c.newProcess(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) pickPorts() error {
	c.ports = map[string]int{}
	saved, taken := savedPorts(c.opts.Dir), map[int]bool{}
	names := append([]string{etcdPeer}, c.names...)
	if c.balances() {
		names = append(names, balancerPort)
	}
	if c.opts.Proxy {
		names = append(names, proxyPort)
	}
	for _, name := range names {
		port, err := pickPort(saved[name], taken)
		if err != nil {
			return err
		}
		if saved[name] != 0 && port != saved[name] {
			c.logf("port %d of %s is in use, taking %d: kubeconfigs are rewritten", saved[name], name, port)
		}
		c.ports[name] = port
	}
	return nil
}

func (c *Cluster) run(parent context.Context) error {
	listener, err := control.Listen(c.opts.Dir)
	if err != nil {
		return fmt.Errorf("open control socket: %w", err)
	}
	c.socket = listener.Addr().String()
	c.changed()

	g, ctx := errgroup.WithContext(parent)
	g.Go(func() error { return control.Serve(ctx, listener, c.control) })
	g.Go(func() error { return c.supervise(ctx) })
	if c.balancer != nil {
		g.Go(func() error { return c.serve(ctx, balancerPort, c.balancer.Serve) })
	}
	if c.proxy != nil {
		g.Go(func() error { return c.serve(ctx, proxyPort, c.proxy.Serve) })
	}
	g.Go(func() error {
		if err := c.start(ctx); err != nil {
			return err
		}
		c.announce()
		return c.keepNoSecretsCurrent(ctx)
	})
	err = g.Wait() // no other goroutine acts on a component below this line
	c.stop()
	if parent.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to end while it started
	}
	return err
}

// start starts the components and loads the data.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.startAll(ctx, etcd); err != nil {
		return err
	}
	// The first creates what every cluster has; the others would race with it.
	servers := c.apiServers()
	if err := c.startAll(ctx, servers[0]); err != nil {
		return err
	}
	if err := c.startAll(ctx, servers[1:]...); err != nil {
		return err
	}
	config := c.creds.restConfig(c.server())
	if err := c.stage("users", func() error { return createUsers(ctx, config) }); err != nil {
		return err
	}
	// The controllers start after the pods are there: the ReplicaSet controller
	// would otherwise create those that are still missing.
	if c.opts.Pods > 0 {
		err := c.stage(fmt.Sprintf("%d pods", c.opts.Pods), func() error {
			return bench.Load(ctx, config, c.opts.Pods, c.logf)
		})
		if err != nil {
			return err
		}
	}
	if err := c.startAll(ctx, controllerManager, scheduler, kwok); err != nil {
		return err
	}
	if c.runs(controllerManager) {
		if err := c.awaitServiceAccounts(ctx, config); err != nil {
			return err
		}
	}
	if c.opts.Nodes > 0 {
		err := c.stage(fmt.Sprintf("%d nodes", c.opts.Nodes), func() error {
			return seed.Nodes(ctx, config, c.opts.Nodes)
		})
		if err != nil {
			return err
		}
	}
	if c.opts.Pods > 0 && c.runs(controllerManager) {
		err := c.stage("quiet data", func() error { return bench.AwaitQuiet(ctx, config) })
		if err != nil {
			return err
		}
	}
	if c.opts.Seed == "demo" {
		return c.stage("seed demo", func() error {
			wait := c.runs(controllerManager) && c.runs(scheduler) && c.runs(kwok)
			return seed.Demo(ctx, config, wait, c.logf)
		})
	}
	return nil
}

// startAll starts those of the named components that are wanted, at once.
func (c *Cluster) startAll(ctx context.Context, names ...string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if c.runs(name) {
			g.Go(func() error {
				return c.stage(name, func() error { return c.processes[name].Start(ctx) })
			})
		}
	}
	return g.Wait()
}

func (c *Cluster) runs(component string) bool {
	return slices.Contains(c.opts.Components, applet(component))
}

// stage reports how long a step took.
func (c *Cluster) stage(name string, do func() error) error {
	start := time.Now()
	if err := do(); err != nil {
		return err
	}
	c.logf("%s ready in %.1f s", name, time.Since(start).Seconds())
	return nil
}

// announce prints the one line on stdout.
func (c *Cluster) announce() {
	c.mu.Lock()
	c.ready = true
	c.mu.Unlock()
	c.changed()
	fmt.Fprintf(c.opts.Stdout, "devcluster ready: kubeconfig=%s server=%s pods=%d seconds=%.1f\n",
		kubeconfigFile(c.opts.Dir, "admin"), c.server(), c.opts.Pods, time.Since(c.began).Seconds())
}

// stop stops all components: first those that write, last the one that stores.
func (c *Cluster) stop() {
	start := time.Now()
	c.logf("stopping")
	var clients sync.WaitGroup
	for _, name := range []string{controllerManager, scheduler, kwok} {
		clients.Go(func() { _ = c.processes[name].Stop() })
	}
	clients.Wait()
	var servers sync.WaitGroup
	for _, name := range c.apiServers() {
		servers.Go(func() { _ = c.processes[name].Stop() })
	}
	servers.Wait()
	_ = c.processes[etcd].Stop()

	c.mu.Lock()
	c.ended, c.ready = true, false
	c.mu.Unlock()
	c.changed()
	c.logf("stopped in %.1f s", time.Since(start).Seconds())
}

// changed brings devcluster.json up to date.
func (c *Cluster) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := writeInfo(c.opts.Dir, c.infoLocked()); err != nil {
		c.logf("%v", err)
	}
}

func (c *Cluster) logf(format string, args ...any) {
	fmt.Fprintf(c.opts.Stderr, "devcluster: "+format+"\n", args...)
}
