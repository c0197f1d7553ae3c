package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Replicas says that this process is one of several with the same configuration: one of them
// watches the clusters and writes the snapshot, the others follow it.
type Replicas struct {
	// URL is where the others reach this one.
	URL string
	// Namespace and Name are those of the Lease by which they agree on who leads.
	Namespace, Name string
	// Kubeconfig and Context are of the cluster that the Lease is in, as those of a Cluster.
	Kubeconfig, Context string
	// CAFile has the authorities of the replicas' certificates; "" is those of this machine.
	CAFile string
	// ServerName is the name that is in their certificates; "" is the host of their URLs.
	ServerName string
	// LeaseDuration is how long a leader that says nothing more is waited for.
	LeaseDuration time.Duration
}

func defaultReplicas() *Replicas {
	return &Replicas{Namespace: "informerd", Name: "informerd", LeaseDuration: 8 * time.Second}
}

func (r *reader) replicas(n *yaml.Node, path string) *Replicas {
	s := defaultReplicas()
	r.mapping(n, path, fieldsOf{
		"url": func(n *yaml.Node, path string) { s.URL, _ = r.checked(n, path, CheckReplicaURL) },
		"lease": func(n *yaml.Node, path string) {
			if text, ok := r.checked(n, path, checkLease); ok {
				s.Namespace, s.Name, _ = strings.Cut(text, "/")
			}
		},
		"kubeconfig": r.path(&s.Kubeconfig),
		"context":    func(n *yaml.Node, path string) { s.Context, _ = r.text(n, path) },
		"caFile":     r.path(&s.CAFile),
		"serverName": func(n *yaml.Node, path string) { s.ServerName, _ = r.text(n, path) },
		"leaseDuration": func(n *yaml.Node, path string) {
			s.LeaseDuration = r.duration(n, path, false, 3*time.Second, 5*time.Minute, s.LeaseDuration)
		},
	})
	r.later = append(r.later, func(c *Config) {
		if err := c.checkReplicas(); err != nil {
			r.errorf(n, path, "%v", err)
		}
	})
	return s
}

// CheckReplicaURL says what is wrong with the URL of a replica.
func CheckReplicaURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must be where the other replicas reach this one, as in https://10.0.0.7:8080")
	case u.User != nil, u.RawQuery != "", u.Fragment != "", strings.Trim(u.Path, "/") != "":
		return errors.New("must have no user, path, query or fragment, as in https://10.0.0.7:8080")
	case u.Port() == "0":
		return errors.New("must have the port that this one serves on")
	}
	return nil
}

func checkLease(text string) error {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || !dnsLabel.MatchString(namespace) || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return fmt.Errorf("bad lease %q: NAMESPACE/NAME, as in informerd/informerd", text)
	}
	return nil
}

// checkReplicas says what of the rest of c does not go with Replicas.
func (c *Config) checkReplicas() error {
	if c.Replicas == nil || len(c.Handlers) == 0 || c.Snapshot.Postgres != nil {
		return nil
	}
	return errors.New("handlers of several replicas need snapshot.postgres: what one has delivered the next one must know")
}

// CheckReplicas says why c cannot be one of several replicas, once flags have said what the
// file does not.
func (c *Config) CheckReplicas() error {
	if c.Replicas == nil {
		return nil
	}
	if c.Replicas.URL == "" {
		return errors.New("where the other replicas reach this one is not said: replicas.url, or --replica-url")
	}
	if u, err := url.Parse(c.Replicas.URL); err == nil && u.Scheme == "http" && !c.PlainHTTP && !isLoopback(u.Hostname()) {
		return fmt.Errorf("replica URL %s: the replicas' credentials would go over plain HTTP: serve TLS, or say tls.plainHTTP where something else encrypts", c.Replicas.URL)
	}
	return c.checkReplicas()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
