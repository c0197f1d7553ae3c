package webhook

import (
	"bytes"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// idleTimeout is shorter than that of most servers and load balancers, which then seldom
// close a connection that is just being used.
const idleTimeout = 30 * time.Second

// clients has one client for as long as the files of TLS are the same, and then another.
type clients struct {
	guard   *guard.Guard
	tls     *sinkconf.TLS
	timeout time.Duration
	idle    int // connections that are kept

	mu      sync.Mutex // guards all below
	current *http.Client
	made    []byte // the files' state that current was made with
}

func (c *clients) get() (*http.Client, error) {
	state, err := c.tls.State()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && bytes.Equal(state, c.made) {
		return c.current, nil
	}
	fresh, err := c.client()
	if err != nil {
		return nil, err
	}
	if c.current != nil {
		c.current.CloseIdleConnections()
	}
	c.current, c.made = fresh, state
	return fresh, nil
}

func (c *clients) client() (*http.Client, error) {
	tls, err := c.tls.Config()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.timeout, ControlContext: c.guard.Control}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // none from the environment: it would see what is sent
			DialContext:            dialer.DialContext,
			TLSClientConfig:        tls,
			TLSHandshakeTimeout:    c.timeout,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxIdleConns:           c.idle,
			MaxIdleConnsPerHost:    c.idle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (c *clients) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.CloseIdleConnections()
	}
}

func (c *clients) close() { c.closeIdle() }
