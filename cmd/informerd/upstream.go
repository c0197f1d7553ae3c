package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/server/kubeapi"
)

// upstreams are the API servers that were connected to, for the server to ask
// what no copy can answer.
type upstreams struct {
	mu     sync.RWMutex // guards all below
	byName map[string]*upstream
	lines  map[string]*replica.Line // of each cluster, whatever it is connected with
}

// get is the API server of a cluster; nil until it is connected to.
func (u *upstreams) get(cluster string) kubeapi.Upstream {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if up := u.byName[cluster]; up != nil {
		return up
	}
	return nil // not a nil *upstream
}

// connect sets how a cluster is reached; a later call replaces it.
func (u *upstreams) connect(cluster string, config replica.ClusterConfig) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName, u.lines = map[string]*upstream{}, map[string]*replica.Line{}
	}
	if u.lines[cluster] == nil {
		u.lines[cluster] = replica.NewLine()
	}
	up, err := newUpstream(config, u.lines[cluster])
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", cluster, err)
	}
	u.byName[cluster] = up
	return nil
}

// remove forgets how a cluster is reached, and ends all that was passed on to it.
func (u *upstreams) remove(cluster string) {
	u.mu.Lock()
	line := u.lines[cluster]
	delete(u.byName, cluster)
	delete(u.lines, cluster)
	u.mu.Unlock()
	if line != nil {
		line.Cut()
	}
}

// upstream is one API server.
type upstream struct {
	base *url.URL
	// own asks with informerd's credentials, others has none.
	own    *http.Client
	others http.RoundTripper
}

func newUpstream(config replica.ClusterConfig, line *replica.Line) (*upstream, error) {
	config.REST = rest.CopyConfig(config.REST)
	config.REST.Dial = line.Over(replica.DialOf(config.REST))
	base, _, err := rest.DefaultServerUrlFor(config.REST)
	if err != nil {
		return nil, err
	}
	own, err := httpClientOf(config)
	if err != nil {
		return nil, err
	}
	// Where an API server points to is nobody to show credentials to.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	anonymous := rest.AnonymousClientConfig(config.REST)
	// The user agent, too, is the caller's own. Upgrades of a connection, as of
	// kubectl exec, are HTTP/1.1.
	anonymous.UserAgent = ""
	anonymous.NextProtos = []string{"http/1.1"}
	others, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, err
	}
	return &upstream{base: base, own: own, others: others}, nil
}

// Get asks with informerd's own credentials.
func (u *upstream) Get(ctx context.Context, uri string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(u.base.String(), "/")+uri, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	return u.own.Do(r)
}

// Passthrough is where others' requests go, without credentials of informerd.
func (u *upstream) Passthrough() (*url.URL, http.RoundTripper) { return u.base, u.others }
