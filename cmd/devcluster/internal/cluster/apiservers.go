package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cmd/devcluster/internal/balancer"
	"github.com/informerd/informerd/cmd/devcluster/internal/faults"
)

// componentNames are the names of all components of a cluster with so many API
// servers, in the order in which they start: kube-apiserver, kube-apiserver-2, ...
func componentNames(apiServers int) []string {
	var names []string
	for _, name := range Components {
		names = append(names, name)
		if name != apiServer {
			continue
		}
		for n := 2; n <= apiServers; n++ {
			names = append(names, fmt.Sprintf("%s-%d", apiServer, n))
		}
	}
	return names
}

// applet is the program that a component runs.
func applet(component string) string {
	if strings.HasPrefix(component, apiServer+"-") {
		return apiServer
	}
	return component
}

// apiServers are the names of the API servers.
func (c *Cluster) apiServers() []string {
	var names []string
	for _, name := range c.names {
		if applet(name) == apiServer {
			names = append(names, name)
		}
	}
	return names
}

// program is the binary that a component is started from at first.
func (c *Cluster) program(component string) string {
	path := c.opts.Program
	for _, program := range c.opts.Programs {
		if name, other, _ := strings.Cut(program, "="); name == component {
			path = other
		}
	}
	return path
}

// setProgram changes the binary that a component is started from the next time.
func (c *Cluster) setProgram(component, path string) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	if path == "-" {
		path = c.opts.Program
	}
	if err := executable(path); err != nil {
		return err
	}
	p.SetPath(path)
	return nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is not a program", path)
	}
	return err
}

// balances says whether there is a balancer before the API servers.
func (c *Cluster) balances() bool { return c.opts.Balancer || c.opts.APIServers > 1 }

func (c *Cluster) backends() []balancer.Backend {
	var all []balancer.Backend
	for _, name := range c.apiServers() {
		all = append(all, balancer.Backend{Name: name, Address: c.address(name)})
	}
	return all
}

// serve opens one of the ports of devcluster itself and serves it until ctx ends.
func (c *Cluster) serve(ctx context.Context, name string, serve func(context.Context, net.Listener) error) error {
	listener, err := net.Listen("tcp", c.address(name))
	if err != nil {
		return fmt.Errorf("open the port of the %s: %w", name, err)
	}
	return serve(ctx, listener)
}

// orderBalancer carries out `ctl balancer`.
func (c *Cluster) orderBalancer(args []string) (any, error) {
	if c.balancer == nil {
		return nil, errors.New("there is no balancer: start devcluster with --balancer or --apiservers 2")
	}
	return c.balancer.Order(args...)
}

// newProxy makes a proxy whose requests are the admin's.
func (c *Cluster) newProxy() (*faults.Proxy, error) {
	upstream, err := url.Parse(c.server())
	if err != nil {
		return nil, err
	}
	admin := c.creds.clients[people[0].name]
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: c.creds.ca.CertPEM, CertData: admin.CertPEM, KeyData: admin.KeyPEM,
	}})
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{"http/1.1"}
	return faults.New(upstream, &http.Transport{
		TLSClientConfig:     config,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
	}), nil
}

// orderProxy carries out `ctl proxy`.
func (c *Cluster) orderProxy(rules []byte) (any, error) {
	if c.proxy == nil {
		return nil, errors.New("there is no proxy: start devcluster with --proxy")
	}
	if rules == nil {
		return c.proxy.State(), nil
	}
	parsed, err := faults.ParseRules(rules)
	if err != nil {
		return nil, err
	}
	return c.proxy.SetRules(parsed)
}
