package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
)

// message is what is posted for one delivery.
type message struct {
	header http.Header
	body   []byte
}

func (m *message) setBody(r *http.Request) {
	r.ContentLength = int64(len(m.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.body)), nil }
	r.Body, _ = r.GetBody()
}

func (s *Sink) message(ctx context.Context, d *handlers.Delivery) (*message, error) {
	e, err := cloudevent.New(d)
	if err != nil {
		return nil, &handlers.RejectedError{Reason: err.Error()}
	}
	m := &message{header: http.Header{"User-Agent": {"informerd"}}}
	if err := m.encode(ctx, e, s.mode); err != nil {
		return nil, &handlers.RejectedError{Reason: err.Error()}
	}
	// Files of ours: no key is to blame.
	if err := s.headers.set(m.header); err != nil {
		return nil, &handlers.DownError{Err: err}
	}
	if err := m.sign(s.signer, cloudevent.HeaderValue(d.ID), time.Now()); err != nil {
		return nil, &handlers.DownError{Err: err}
	}
	return m, nil
}

// encode puts an event into a message as CloudEvents' HTTP binding says.
func (m *message) encode(ctx context.Context, e *event.Event, mode string) (err error) {
	if mode == Structured {
		m.header.Set("Content-Type", event.ApplicationCloudEventsJSON)
		m.body, err = e.MarshalJSON()
		return err
	}
	attributes, err := cloudevent.Attributes(ctx, e)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		name := "Ce-" + a.Name
		if a.Name == "datacontenttype" {
			name = "Content-Type"
		}
		m.header.Set(name, cloudevent.HeaderValue(a.Value))
	}
	m.body = e.Data()
	return nil
}

// sign adds the headers of Standard Webhooks. The id and the time are there without a secret,
// too: receivers know a delivery that they had before by its id.
func (m *message) sign(s *signer, id string, at time.Time) error {
	signature, err := s.sign(id, at, m.body)
	if err != nil {
		return err
	}
	m.header.Set("Webhook-Id", id)
	m.header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	if signature != "" {
		m.header.Set("Webhook-Signature", signature)
	}
	return nil
}
