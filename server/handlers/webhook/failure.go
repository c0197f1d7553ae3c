package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// trace is how far a request came.
type trace struct{ connected, reused, answered atomic.Bool }

func (t *trace) follow(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			t.connected.Store(true)
			t.reused.Store(c.Reused)
		},
		GotFirstResponseByte: func() { t.answered.Store(true) },
	})
}

// failed is the error of a request without an answer. Errors of net/http have the whole URL,
// so only what is inside of them is told.
func (s *Sink) failed(ctx context.Context, t *trace, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		if !t.connected.Load() {
			return &handlers.DownError{Err: fmt.Errorf("%s cannot be reached: no connection within %s", s.host(), s.timeout)}
		}
		return &handlers.RejectedError{Reason: fmt.Sprintf("%s did not answer within %s", s.host(), s.timeout)}
	case t.answered.Load():
		return &handlers.RejectedError{Reason: sinkconf.Short(fmt.Sprintf("%s answered something that is no HTTP: %s", s.host(), sinkconf.Printable(s.mask(err.Error()))))}
	}
	return &handlers.DownError{Err: s.unreachable(err)}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// unreachable says why there is no connection and what to do.
func (s *Sink) unreachable(err error) error {
	if e, ok := errors.AsType[*guard.Refused](err); ok {
		return fmt.Errorf("%s is not delivered to: %w", s.host(), e)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%s does not speak TLS at this port: use the port that does", s.host())
	}
	if advice := sinkconf.TLSAdvice(err); advice != "" {
		return fmt.Errorf("%s cannot be trusted or does not trust: %s", s.host(), advice)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("%s cannot be reached: the name %s cannot be resolved: %s", s.host(), e.Name, e.Err)
	}
	return fmt.Errorf("%s cannot be reached: %s", s.host(), sinkconf.Printable(s.mask(err.Error())))
}
