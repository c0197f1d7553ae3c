package replica

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// servers are the versions that the API servers of a cluster say they are. During
// an upgrade several of them answer behind one address, each with objects as its
// version converts and completes them: equal resourceVersions do not mean equal
// bytes then.
type servers struct {
	version string // the last one heard
	mixed   bool   // different ones were heard
	asked   time.Time
}

const (
	// surveyed is how often the version is asked for at a time. Each question has a
	// connection of its own, so that a balancer sends them to different servers.
	surveyed = 4
	// surveyPause is the time between surveys as long as versions are mixed.
	surveyPause = 15 * time.Second
)

// serverVersion is the gitVersion of one API server that answers now.
func (c *cluster) serverVersion(ctx context.Context) (string, error) {
	_, rc := c.identityNow()
	c.mu.RLock()
	client := c.http
	c.mu.RUnlock()
	version, err := askVersion(ctx, rc, client)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	if c.servers.version == "" {
		c.servers.version = version
	}
	c.mu.Unlock()
	return version, nil
}

func askVersion(ctx context.Context, rc *rest.Config, client *http.Client) (string, error) {
	disco, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(rc, client)
	if err != nil {
		return "", fmt.Errorf("make discovery client: %w", err)
	}
	info, err := disco.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the server's version: %w", err)
	}
	return info.GitVersion, nil
}

// serving is the version of the API servers that have answered since a moment, ""
// while several versions do. Those who ask because of one event share the answer.
func (c *cluster) serving(ctx context.Context, since time.Time) (string, error) {
	select {
	case c.surveying <- struct{}{}:
		defer func() { <-c.surveying }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c.mu.RLock()
	known := c.servers
	c.mu.RUnlock()
	if known.asked.Before(since) {
		found, err := c.survey(ctx)
		if err == nil && (known.mixed || found.version != known.version) {
			// One survey may by chance meet one server only: after a change it takes
			// two that agree.
			err = c.confirmSurvey(ctx, &found)
		}
		if err != nil {
			return "", err
		}
		said := known.mixed
		c.mu.Lock()
		c.servers = found
		c.mu.Unlock()
		known = found
		if found.mixed && !said {
			c.log.Info("API servers of different versions answer", "version", found.version)
		}
	}
	if known.mixed {
		return "", nil
	}
	return known.version, nil
}

// knownAs reports whether all API servers are of a version, as far as is known.
func (c *cluster) knownAs(version string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !c.servers.mixed && c.servers.version == version
}

func (c *cluster) confirmSurvey(ctx context.Context, found *servers) error {
	again, err := c.survey(ctx)
	found.mixed = found.mixed || again.mixed || again.version != found.version
	return err
}

func (c *cluster) survey(ctx context.Context) (servers, error) {
	c.mu.RLock()
	rc, client := c.config.REST, c.streams
	c.mu.RUnlock()
	var heard []string
	asked := time.Now()
	for range surveyed {
		utilnet.CloseIdleConnectionsFor(client.Transport)
		version, err := askVersion(ctx, rc, client)
		if err != nil {
			return servers{}, err
		}
		if !slices.Contains(heard, version) {
			heard = append(heard, version)
		}
	}
	return servers{version: heard[len(heard)-1], mixed: len(heard) > 1, asked: asked}, nil
}
