package natssink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// connection is one connection, for as long as it lasts.
type connection struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	raw net.Conn // below TLS

	mu        sync.Mutex // guards all below
	listeners map[*listener]struct{}
	deaf      error // why no more answers arrive
}

// listener waits for what becomes of something that it published.
type listener struct {
	subject string
	cancel  context.CancelCauseFunc
}

// forbidden is the error of a subject to which informerd may not publish, or of answers that
// it may not have. The server says so of its own accord, and answers nothing.
type forbidden struct{ what string }

func (e *forbidden) Error() string { return e.what }

// stands reports whether the connection is good for more.
func (c *connection) stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaf == nil && c.nc.IsConnected()
}

// close ends the connection without waiting for what a server does not read.
func (c *connection) close() {
	c.interrupt()
	c.nc.Close()
}

// interrupt ends a write that is under way, and with it the connection.
func (c *connection) interrupt() {
	c.mu.Lock()
	c.deaf = net.ErrClosed // which the client finds out later
	c.mu.Unlock()
	_ = c.raw.Close()
}

// listen returns a context that ends when the server says that subject may not be published
// to, with that as its cause. done must be called.
func (c *connection) listen(ctx context.Context, subject string) (told context.Context, done func()) {
	told, cancel := context.WithCancelCause(ctx)
	l := &listener{subject, cancel}
	c.mu.Lock()
	c.listeners[l] = struct{}{}
	deaf := c.deaf
	c.mu.Unlock()
	if deaf != nil {
		cancel(deaf)
	}
	return told, func() {
		c.mu.Lock()
		delete(c.listeners, l)
		c.mu.Unlock()
		cancel(nil)
	}
}

var (
	publishTo   = regexp.MustCompile(`Publish to "([^"]*)"`)
	subscribeTo = regexp.MustCompile(`Subscription to "([^"]*)"`)
)

// hear takes what the server says of its own accord.
func (c *connection) hear(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := publishTo.FindStringSubmatch(err.Error()); found != nil {
		cause := &forbidden{fmt.Sprintf("the server does not allow to publish to %s: allow it to who logs in", sinkconf.Printable(found[1]))}
		for l := range c.listeners {
			if l.subject == found[1] {
				l.cancel(cause)
			}
		}
	} else if found := subscribeTo.FindStringSubmatch(err.Error()); found != nil {
		c.deaf = &forbidden{fmt.Sprintf("the server does not allow to hear its acknowledgements, at %s: allow who logs in to subscribe to _INBOX.>", sinkconf.Printable(found[1]))}
		for l := range c.listeners {
			l.cancel(c.deaf)
		}
	}
}
