package cluster

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cmd/devcluster/internal/kubeconfig"
	"github.com/informerd/informerd/cmd/devcluster/internal/pki"
)

// TenantNamespace is the only namespace that the namespaced user can see.
const TenantNamespace = "team-a"

// An identity is someone who talks to the API server with a client certificate
// and has a kubeconfig.
type identity struct {
	name      string // of its files
	user      string
	groups    []string
	namespace string // of the kubeconfig's context
}

// loader is devcluster itself. Its requests are not in the audit log.
var loader = identity{name: "devcluster", user: "devcluster", groups: []string{"system:masters"}}

// people have a kubeconfig for others to use; users.go says what they may do. The
// first is the admin.
var people = []identity{
	{name: "admin", user: "admin", groups: []string{"system:masters"}},
	{name: "namespaced", user: "namespaced", namespace: TenantNamespace},
	{name: "nobody", user: "nobody"},
	{name: "nosecrets", user: "nosecrets"},
}

// robots are components that are clients of the API server.
var robots = []identity{
	{name: controllerManager, user: "system:kube-controller-manager"},
	{name: scheduler, user: "system:kube-scheduler"},
	{name: kwok, user: "kwok", groups: []string{"system:masters"}},
}

// credentials are all keys and certificates of a cluster.
type credentials struct {
	ca, frontProxy    *pki.Authority
	server            *pki.Pair
	proxyClient       *pki.Pair
	serviceAccountKey string // file
	loader            *pki.Pair
	clients           map[string]*pki.Pair // by identity name
}

func openCredentials(dir string) (*credentials, error) {
	dir = filepath.Join(dir, "pki")
	c := &credentials{clients: map[string]*pki.Pair{}}
	var err error
	if c.ca, err = pki.OpenAuthority(dir, "ca"); err != nil {
		return nil, err
	}
	// Whoever has a certificate of this authority can claim to be anybody: it
	// signs nothing but the API server's own client certificate.
	if c.frontProxy, err = pki.OpenAuthority(dir, "front-proxy-ca"); err != nil {
		return nil, err
	}
	if c.server, err = c.ca.Server(apiServer, "127.0.0.1", "::1", "localhost", serviceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"); err != nil {
		return nil, err
	}
	if c.proxyClient, err = c.frontProxy.Client("front-proxy-client", "front-proxy-client"); err != nil {
		return nil, err
	}
	if c.serviceAccountKey, err = pki.OpenKey(dir, "service-account"); err != nil {
		return nil, err
	}
	if c.loader, err = c.ca.Client("client-"+loader.name, loader.user, loader.groups...); err != nil {
		return nil, err
	}
	for _, list := range [][]identity{people, robots} {
		for _, id := range list {
			if c.clients[id.name], err = c.ca.Client("client-"+id.name, id.user, id.groups...); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// writeKubeconfigs writes the kubeconfig of everybody.
func (c *Cluster) writeKubeconfigs() error {
	for _, list := range [][]identity{people, robots} {
		for _, id := range list {
			if err := c.writeKubeconfig(id.name, id, c.server()); err != nil {
				return err
			}
		}
	}
	if c.opts.Proxy {
		// The proxy looks at no token, but kubectl asks its user for a password
		// where there is none.
		err := kubeconfig.Write(kubeconfigFile(c.opts.Dir, proxied), kubeconfig.Config{
			Server: c.url("http", proxyPort), User: people[0].user, Token: "none",
		})
		if err != nil {
			return err
		}
	}
	if !c.balances() {
		return nil
	}
	for i, name := range c.apiServers() {
		if err := c.writeKubeconfig(directName(i), people[0], c.componentURL(name)); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes the file called name, with which id connects to server.
func (c *Cluster) writeKubeconfig(name string, id identity, server string) error {
	return kubeconfig.Write(kubeconfigFile(c.opts.Dir, name), kubeconfig.Config{
		Server:    server,
		CA:        c.creds.ca.CertPEM,
		User:      id.user,
		Cert:      c.creds.clients[id.name].CertPEM,
		Key:       c.creds.clients[id.name].KeyPEM,
		Namespace: id.namespace,
	})
}

// proxied is the name of the kubeconfig that leads to the proxy.
const proxied = "proxied"

// directName is the name of the admin's kubeconfig for one API server.
func directName(i int) string { return fmt.Sprintf("apiserver-%d", i+1) }

// restConfig is how devcluster itself connects.
func (c *credentials) restConfig(server string) *rest.Config {
	return &rest.Config{
		Host:      server,
		UserAgent: "devcluster",
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.ca.CertPEM,
			CertData: c.loader.CertPEM,
			KeyData:  c.loader.KeyPEM,
		},
	}
}

// kubeconfigFile is DIR/kubeconfig for the admin and DIR/kubeconfig-NAME for
// everybody else.
func kubeconfigFile(dir, name string) string {
	if name == "admin" {
		return filepath.Join(dir, "kubeconfig")
	}
	return filepath.Join(dir, "kubeconfig-"+name)
}
