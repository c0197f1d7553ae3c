package natssink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// connector makes connections, one at a time. The client's own reconnecting is off: it would
// keep credentials and certificates as they were, and hold back messages that are delivered
// again.
type connector struct {
	servers []string
	guard   *guard.Guard
	login   *login
	tls     *sinkconf.TLS // nil: without
	timeout time.Duration

	turn    chan struct{} // held by who makes a connection or reads current
	current *connection
}

func newConnector(m *sinkconf.Mistakes, c Config, timeout time.Duration) *connector {
	made := &connector{servers: c.Servers, timeout: timeout, turn: make(chan struct{}, 1)}
	made.guard = guard.New(m, "allowAddresses", c.AllowAddresses)
	made.guard.Private, made.guard.Plain = true, !c.secure()
	made.login = newLogin(m, c)
	if t := m.TLS(c.tls()); c.secure() {
		made.tls = t
	}
	return made
}

// get is a connection that stands.
func (c *connector) get(ctx context.Context) (*connection, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("NATS at %s cannot be reached within %s", c.names(), c.timeout)
	}
	defer func() { <-c.turn }()
	if c.current != nil && c.current.stands() {
		return c.current, nil
	}
	c.drop()
	fresh, err := c.connect(ctx)
	if err == nil {
		c.current = fresh
	}
	return fresh, err
}

func (c *connector) drop() {
	if c.current != nil {
		c.current.close()
		c.current = nil
	}
}

func (c *connector) close() {
	c.turn <- struct{}{}
	c.drop()
	<-c.turn
}

// pingInterval and unanswered pings say when a server is gone that says nothing.
const (
	pingInterval    = 5 * time.Second
	unansweredPings = 2
)

func (c *connector) connect(ctx context.Context) (*connection, error) {
	made := &connection{listeners: map[*listener]struct{}{}}
	each := sinkconf.ConnectTimeout(c.timeout, len(c.servers))
	dial := &dialer{ctx: ctx, guard: c.guard, timeout: each}
	options := []nats.Option{
		nats.Name("informerd"), nats.NoReconnect(), nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
		nats.Timeout(each), nats.FlusherTimeout(c.timeout),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(unansweredPings),
		nats.SetCustomDialer(dial),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { made.hear(err) }),
	}
	if c.tls != nil {
		config, err := c.tls.Config()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(config))
	}
	if c.login != nil {
		option, err := c.login.option()
		if err != nil {
			return nil, err
		}
		options = append(options, option)
	}
	// The client asks no context.
	defer context.AfterFunc(ctx, dial.interrupt)()
	nc, err := nats.Connect(strings.Join(c.servers, ","), options...)
	if err != nil {
		return nil, c.unreachable(ctx, dial, err)
	}
	made.nc, made.raw = nc, dial.last()
	if made.js, err = jetstream.New(nc); err != nil {
		made.close()
		return nil, err
	}
	return made, nil
}

func (c *connector) names() string { return strings.Join(c.servers, ", ") }

// unreachable says what to do. Servers have no secrets in their URLs.
func (c *connector) unreachable(ctx context.Context, dial *dialer, err error) error {
	if failed := dial.failed(); failed != nil && errors.Is(err, nats.ErrNoServers) {
		err = failed // which the client does not tell of
	}
	what := "NATS at " + c.names() + " "
	if e, is := errors.AsType[*guard.Refused](err); is {
		return fmt.Errorf("%sis not delivered to: %w", what, e)
	}
	if advice := sinkconf.TLSAdvice(err); advice != "" {
		return fmt.Errorf("%scannot be trusted or does not trust: %s", what, advice)
	}
	switch {
	case isDenied(err):
		return errors.New(what + c.login.advice())
	case errors.Is(err, nats.ErrSecureConnRequired):
		return fmt.Errorf("%swants TLS: write tls:// instead of nats://", what)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%sdoes not speak TLS: have it speak TLS, or write nats://", what)
	case errors.Is(err, nats.ErrTLS):
		return fmt.Errorf("%sended the connection after the handshake of TLS: it may ask for a client's certificate, which certFile and keyFile give", what)
	case ctx.Err() != nil, isTimeout(err):
		return fmt.Errorf("%scannot be reached within %s", what, c.timeout)
	}
	return fmt.Errorf("%scannot be reached: %s", what, sinkconf.Printable(err.Error()))
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, nats.ErrTimeout)
}

// dialer dials for as long as ctx lasts.
type dialer struct {
	ctx     context.Context
	guard   *guard.Guard
	timeout time.Duration

	mu   sync.Mutex // guards all below
	conn net.Conn   // the last one
	err  error      // of the last one that failed
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.timeout, ControlContext: d.guard.Control}
	conn, err := plain.DialContext(d.ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.err = err
		return nil, err
	}
	if d.ctx.Err() != nil { // interrupt may have come before
		_ = conn.Close()
		return nil, d.ctx.Err()
	}
	d.conn = conn
	return conn, nil
}

// interrupt ends what is done with the connection that was made, once ctx has ended.
func (d *dialer) interrupt() {
	if conn := d.last(); conn != nil {
		_ = conn.Close()
	}
}

func (d *dialer) last() net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

func (d *dialer) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
