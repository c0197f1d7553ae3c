package natssink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Codes of JetStream's API that the client has no constant for.
const (
	codeOtherStream    jetstream.ErrorCode = 10060
	codeStoreFailed    jetstream.ErrorCode = 10077
	codeHeaderTooLarge jetstream.ErrorCode = 10097
	codeSealed         jetstream.ErrorCode = 10109
)

func down(format string, args ...any) error {
	return &handlers.DownError{Err: errors.New(sinkconf.Printable(fmt.Sprintf(format, args...)))}
}

// failed says whose fault it is that m was not stored: the message's, or that of the stream,
// the server or the way to it, which would not take any other either.
func (s *Sink) failed(ctx context.Context, c *connection, m *nats.Msg, err error) error {
	if api, is := errors.AsType[*jetstream.APIError](err); is {
		return s.refused(api)
	}
	if e, is := errors.AsType[*forbidden](err); is {
		if c.stands() {
			return s.ofSubject(e.what)
		}
		return down("%s", e.what)
	}
	switch {
	case !c.nc.IsConnected():
		return down("the connection to NATS at %s was lost before the message was acknowledged", s.connector.names())
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return s.unanswered(ctx, c, m.Subject)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return down("NATS at %s did not acknowledge the message within %s", s.connector.names(), s.timeout)
	case errors.Is(err, jetstream.ErrInvalidJSAck):
		return s.ofSubject(fmt.Sprintf("what answers for the subject %s is no stream: store it in a stream, and have nobody else answer", m.Subject))
	}
	return &handlers.RejectedError{Reason: sinkconf.Printable("NATS did not take the message: " + err.Error())}
}

// ofSubject is the error of a subject: of all messages, if they have the same.
func (s *Sink) ofSubject(reason string) error {
	if s.subject.same {
		return down("%s", reason)
	}
	return &handlers.RejectedError{Reason: sinkconf.Printable(reason)}
}

// refused is the error of a stream that answered.
func (s *Sink) refused(api *jetstream.APIError) error {
	reason := "JetStream did not store the message: " + sinkconf.Printable(api.Description)
	switch {
	case api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return &handlers.RejectedError{Never: true, Reason: "the stream does not take so large a message: send fewer fields, or raise its max_msg_size"}
	case api.ErrorCode == codeHeaderTooLarge:
		return &handlers.RejectedError{Never: true, Reason: reason}
	case api.ErrorCode == codeOtherStream:
		return s.ofSubject("the subject is stored by another stream than " + s.stream + ": correct stream or subject")
	case api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "per subject"):
		return s.ofSubject(reason) // of discard_new_per_subject
	case api.Code >= 500, api.ErrorCode == codeSealed:
		return down("%s", reason)
	}
	return &handlers.RejectedError{Reason: reason}
}

// unanswered is the error of a subject for which no stream answers. It may be that there is no
// stream, that it has no leader now, or that it stores other subjects of this handler: then
// those must not wait.
func (s *Sink) unanswered(ctx context.Context, c *connection, subject string) error {
	const advice = "create one that has it"
	if s.subject.same {
		return down("no stream of NATS answers for the subject %s: %s, or see whether it has a leader and JetStream is enabled", subject, advice)
	}
	own, err := s.streams(ctx, c, subject)
	switch {
	case err == nil && own:
		return down("the stream of the subject %s does not answer: it may have no leader", subject)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return down("JetStream is not enabled in NATS at %s, or not for this account", s.connector.names())
	}
	if others, err := s.streams(ctx, c, s.subject.all); err == nil && !others {
		return down("no stream of NATS has subjects such as %s: %s", s.subject.all, advice)
	}
	return &handlers.RejectedError{Reason: sinkconf.Printable(fmt.Sprintf("no stream of NATS answers for the subject %s: %s", subject, advice))}
}

// streams reports whether there is a stream that has subject, or some of the subjects that it
// stands for. Who logs in may not be allowed to ask.
func (s *Sink) streams(ctx context.Context, c *connection, subject string) (bool, error) {
	told, done := c.listen(ctx, "$JS.API.STREAM.NAMES")
	defer done()
	names := c.js.StreamNames(told, jetstream.WithStreamListSubject(subject))
	found := false
	for range names.Name() {
		found = true
	}
	if err := names.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return false, err
	}
	return found, nil
}
