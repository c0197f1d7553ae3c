package kafkasink

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// dialer connects to brokers, whoever named them.
type dialer struct {
	guard   *guard.Guard
	tls     *sinkconf.TLS // nil: without
	timeout time.Duration

	mu     sync.Mutex // guards all below
	failed *dialError // the last one
	at     time.Time
}

// dialError is the error of a broker that is not reached.
type dialError struct {
	address string
	err     error
}

func (e *dialError) Error() string { return e.address + ": " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func newDialer(m *sinkconf.Mistakes, c Config, timeout time.Duration) *dialer {
	d := &dialer{guard: guard.New(m, "allowAddresses", c.AllowAddresses), timeout: sinkconf.ConnectTimeout(timeout, len(c.Brokers))}
	d.guard.Private, d.guard.Plain = true, !c.TLS
	if t := m.TLS(c.tls()); c.TLS {
		d.tls = t
	}
	return d
}

// dial is kgo.Dialer's.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.connect(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	failed := &dialError{address, err}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed, d.at = failed, time.Now()
	return nil, failed
}

// trouble is why a broker was not reached lately, which the client does not always tell; nil
// if all were.
func (d *dialer) trouble() *dialError {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil || time.Since(d.at) > 4*d.timeout {
		return nil
	}
	return d.failed
}

func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	plain := net.Dialer{ControlContext: d.guard.Control}
	conn, err := plain.DialContext(ctx, network, address)
	if err != nil || d.tls == nil {
		return conn, err
	}
	secure, err := d.secure(ctx, conn, address)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func (d *dialer) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, err := d.tls.Config()
	if err != nil {
		return nil, err
	}
	config.ServerName = host
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}
