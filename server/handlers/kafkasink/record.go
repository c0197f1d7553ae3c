package kafkasink

import (
	"context"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
)

// keyOf names the object: main/deployments.apps/shop/web, or main/nodes/n1.
func keyOf(d *handlers.Delivery) string { return d.Cluster + "/" + cloudevent.Subject(d) }

// record is the record of a delivery.
func (s *Sink) record(ctx context.Context, d *handlers.Delivery) (*kgo.Record, error) {
	e, err := cloudevent.New(d)
	r := &kgo.Record{Key: []byte(keyOf(d))}
	if err == nil {
		err = encode(ctx, r, e, s.mode)
	}
	if err != nil {
		return nil, &handlers.RejectedError{Reason: err.Error()}
	}
	if n := sizeOf(r); n > s.maxBytes {
		return nil, &handlers.RejectedError{Never: true, Reason: fmt.Sprintf("the record has %d bytes, of at most %d: send fewer fields, or raise maxMessageBytes, and max.message.bytes of the topic with it", n, s.maxBytes)}
	}
	return r, nil
}

// encode puts an event into a record as CloudEvents' Kafka binding says. Its headers have
// values as they are.
func encode(ctx context.Context, r *kgo.Record, e *event.Event, mode cloudevent.Mode) (err error) {
	header := func(name, value string) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	if mode != cloudevent.ModeBinary {
		header("content-type", event.ApplicationCloudEventsJSON+"; charset=UTF-8")
		r.Value, err = e.MarshalJSON()
		return err
	}
	attributes, err := cloudevent.Attributes(ctx, e)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		if a.Name == "datacontenttype" {
			header("content-type", a.Value)
		} else {
			header("ce_"+a.Name, a.Value)
		}
	}
	r.Value = e.Data()
	return nil
}

// sizeOf is about as many bytes as a record has; the client knows exactly.
func sizeOf(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
