package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func isContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// failed says whose fault it is that a record was not written: the record's, or that of the
// topic, the brokers or the way to them, which would not take any other either.
func (s *Sink) failed(err error) error {
	s.well.Store(false)
	if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) {
		s.well.Store(true)
		return &handlers.RejectedError{Never: true, Reason: fmt.Sprintf("topic %s does not take so large a record: send fewer fields, or raise its max.message.bytes", s.topic)}
	}
	for _, its := range []error{kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.UnknownServerError} {
		if errors.Is(err, its) {
			return &handlers.RejectedError{Reason: sinkconf.Printable("Kafka did not take the record: " + err.Error())}
		}
	}
	if isUnknown(err) {
		// A topic of the same name that is made later is another one, and the client would
		// look for this one.
		s.client.PurgeTopicsFromProducing(s.topic)
	}
	return &handlers.DownError{Err: s.unwell(err)}
}

func isUnknown(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// unwell says what is the matter with a topic, the brokers or the way to them.
func (s *Sink) unwell(err error) error {
	dialled, failed := errors.AsType[*dialError](err)
	silent := isContext(err) || isTimeout(err) || errors.Is(err, kgo.ErrRecordTimeout) || errors.Is(err, kgo.ErrRecordRetries)
	if !failed && silent {
		dialled = s.dialer.trouble()
	}
	if dialled != nil {
		return s.unreachable(dialled)
	}
	who := "Kafka at " + s.names() + " "
	switch {
	case isUnknown(err):
		return fmt.Errorf("there is no topic %s in Kafka at %s: create it, or allow who logs in to describe it", s.topic, s.names())
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%sdoes not allow to write to topic %s: allow it to who logs in", who, s.topic)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("%sdoes not allow IdempotentWrite of the cluster: allow it to who logs in", who)
	case errors.Is(err, kerr.SaslAuthenticationFailed), s.loggedIn && errors.Is(err, io.EOF):
		return fmt.Errorf("%sdoes not take what is in userFile and passwordFile, or this mechanism: put what it takes into those files, or give another mechanism", who)
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("%sdoes not log in by this mechanism: give another", who)
	case silent:
		return fmt.Errorf("%sdid not acknowledge the record within %s", who, s.timeout)
	}
	if advice := sinkconf.TLSAdvice(err); advice != "" {
		return fmt.Errorf("%scannot be trusted or does not trust: %s", who, advice)
	}
	return fmt.Errorf("%sdid not take the record: %s", who, sinkconf.Printable(err.Error()))
}

// unreachable says why there is no connection to a broker, and what to do.
func (s *Sink) unreachable(e *dialError) error {
	who := "Kafka's broker at " + sinkconf.Printable(e.address) + " "
	if refused, is := errors.AsType[*guard.Refused](e.err); is {
		return fmt.Errorf("%sis not delivered to: %w", who, refused)
	}
	if advice := sinkconf.TLSAdvice(e.err); advice != "" {
		return fmt.Errorf("%scannot be trusted or does not trust: %s", who, advice)
	}
	if isContext(e.err) || isTimeout(e.err) {
		return fmt.Errorf("%sdid not answer within %s: it may not be there, or not speak TLS at this port", who, s.dialer.timeout)
	}
	return fmt.Errorf("%scannot be reached: %s", who, sinkconf.Printable(e.err.Error()))
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
