package natssink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Sink publishes deliveries to JetStream.
type Sink struct {
	connector *connector
	subject   subject
	stream    string
	mode      cloudevent.Mode
	timeout   time.Duration
	stored    stored
}

var _ handlers.Sink = (*Sink)(nil)

// New checks c and reads its files. It does not connect. What is wrong is told as one
// sinkconf.Mistake each, joined.
func New(c Config) (*Sink, error) {
	var m sinkconf.Mistakes
	if c.check(&m); len(m) == 0 {
		c.CheckWhole(&m)
	}
	s := &Sink{timeout: m.Timeout(c.Timeout), stream: c.Stream, mode: c.Mode}
	s.subject, _ = parseSubject(cmp.Or(c.Subject, DefaultSubject)) // which check has
	s.connector = newConnector(&m, c, s.timeout)
	if err := m.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the connection.
func (s *Sink) Close() error {
	s.connector.close()
	return nil
}

// Deliver publishes d and waits until it is stored.
func (s *Sink) Deliver(ctx context.Context, d *handlers.Delivery) error {
	m, err := s.message(ctx, d)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, err := s.connector.get(within)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &handlers.DownError{Err: err}
	}
	// A write that a server does not read would go on after ctx. Others that are under way end
	// with this one: ctx ends when the sink is not used any more.
	defer context.AfterFunc(ctx, c.interrupt)()
	err = s.store(within, c, m, d)
	if err != nil && ctx.Err() != nil {
		c.interrupt() // at once, and not some time
		return ctx.Err()
	}
	return err
}

// store publishes m under the id of d. If the stream has a message of that id, it is this one,
// delivered again; unless it is known that it was stored, so that d is told again on purpose,
// after something else: then it gets an id of its own.
func (s *Sink) store(ctx context.Context, c *connection, m *nats.Msg, d *handlers.Delivery) error {
	identify(m, d.ID)
	ack, err := s.publish(ctx, c, m)
	if err == nil && ack.Duplicate && s.stored.has(d.ID) {
		identify(m, d.ID+"/"+cloudevent.Sequence(d.Sequence))
		_, err = s.publish(ctx, c, m)
	}
	if err == nil {
		s.stored.add(d.ID)
	}
	return err
}

func (s *Sink) publish(ctx context.Context, c *connection, m *nats.Msg) (*jetstream.PubAck, error) {
	var options []jetstream.PublishOpt
	if s.stream != "" {
		options = append(options, jetstream.WithExpectStream(s.stream))
	}
	told, done := c.listen(ctx, m.Subject)
	defer done()
	ack, err := c.js.PublishMsg(told, m, options...)
	if err == nil {
		return ack, nil
	}
	if cause := context.Cause(told); errors.Is(err, context.Canceled) && cause != nil {
		err = cause
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return nil, &handlers.RejectedError{Never: true, Reason: fmt.Sprintf("the message has %d bytes with its headers, and the server takes %d: send fewer fields, or raise its max_payload", m.Size(), c.nc.MaxPayload())}
	}
	return nil, s.failed(ctx, c, m, err)
}
