package natssink

import (
	"context"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
)

// message is the message of a delivery, without its id.
func (s *Sink) message(ctx context.Context, d *handlers.Delivery) (*nats.Msg, error) {
	m := nats.NewMsg(s.subject.of(d))
	if n := len(m.Subject); n > maxSubject {
		return nil, &handlers.RejectedError{Never: true, Reason: fmt.Sprintf("its subject has %d bytes, of at most %d: leave names out of subject", n, maxSubject)}
	}
	e, err := cloudevent.New(d)
	if err == nil {
		err = encode(ctx, m, e, s.mode)
	}
	if err != nil {
		return nil, &handlers.RejectedError{Reason: err.Error()}
	}
	return m, nil
}

// encode puts an event into a message as CloudEvents' NATS binding says: Content-Type says
// that it is structured, and in binary mode datacontenttype is a header like all others.
func encode(ctx context.Context, m *nats.Msg, e *event.Event, mode cloudevent.Mode) (err error) {
	if mode != cloudevent.ModeBinary {
		m.Header.Set("Content-Type", event.ApplicationCloudEventsJSON)
		m.Data, err = e.MarshalJSON()
		return err
	}
	attributes, err := cloudevent.Attributes(ctx, e)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		m.Header.Set("ce-"+a.Name, cloudevent.HeaderValue(a.Value))
	}
	m.Data = e.Data()
	return nil
}

// identify sets the id by which a stream knows a message that it has stored.
func identify(m *nats.Msg, id string) {
	m.Header.Set(jetstream.MsgIDHeader, cloudevent.HeaderValue(id))
}
