package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// A replica that follows has the one that leads as its API server, so that the clusters see one
// watch of each resource, however many replicas there are. As versions are the API server's at
// both, it goes on where it is when it comes to lead, or another one does: that is no more than
// another way to reach the same cluster.

// errNoLeader is why a cluster cannot be reached.
var errNoLeader = errors.New("it is not known yet which replica leads")

// following says how replicas reach clusters.
type following struct {
	options  *config.Replicas
	standing func() standing
	// authenticates: replicas ask who reads from them, so that this one shows its credentials.
	authenticates bool
}

// route is how a cluster is reached by now: as a says, or through the replica that leads.
func (f *following) route(cluster string, a *access) (*access, error) {
	s := f.standing()
	switch {
	case s.own:
		return a, nil
	case s.leader == "":
		return nil, errNoLeader
	}
	if err := config.CheckReplicaURL(s.leader); err != nil {
		return nil, fmt.Errorf("the lease of the replicas is held by %q, which is no URL of a replica: it %w", s.leader, err)
	}
	// A lease is no reason to tell credentials to somebody who cannot show who they are.
	if strings.HasPrefix(f.options.URL, "https:") && !strings.HasPrefix(s.leader, "https:") {
		return nil, fmt.Errorf("the replica that leads, %s, does not serve TLS as this one does", s.leader)
	}
	next := *a
	next.direct = &a.ClusterConfig
	next.ClusterConfig = f.through(s.leader+"/clusters/"+url.PathEscape(cluster), a.ClusterConfig)
	next.source = "the replica that leads"
	next.content += "\nfollows " + s.leader
	return &next, nil
}

// through is c by way of another host.
func (f *following) through(host string, c replica.ClusterConfig) replica.ClusterConfig {
	rc, wrap := rest.AnonymousClientConfig(c.REST), func(rt http.RoundTripper) http.RoundTripper { return rt }
	if f.authenticates {
		rc, wrap = rest.CopyConfig(c.REST), c.Wrapped
	}
	rc.Host, rc.APIPath, rc.Proxy = host, "", nil
	rc.TLSClientConfig.Insecure = false
	rc.TLSClientConfig.CAFile, rc.TLSClientConfig.CAData = f.options.CAFile, nil
	rc.TLSClientConfig.ServerName = f.options.ServerName
	if strings.HasPrefix(host, "http:") {
		rc.TLSClientConfig = rest.TLSClientConfig{}
	}
	return replica.ClusterConfig{
		REST: rc, Namespaces: c.Namespaces,
		Wrap: func(rt http.RoundTripper) http.RoundTripper { return wrap(replicaTransport{rt}) },
	}
}

// replicaTransport says that a replica asks: one that does not lead refuses it, so that two
// that follow each other for a moment learn nothing from that.
type replicaTransport struct{ http.RoundTripper }

func (t replicaTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(cache.ReplicaHeader, "true")
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets utilnet.CloseIdleConnectionsFor find the transport.
func (t replicaTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
