package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
	"github.com/informerd/informerd/server/reply"
)

// handler answers a request or says why it cannot. Once it has written to w it
// must return nil or an *abortError.
type handler func(w http.ResponseWriter, r *http.Request) error

// abortError ends an answer that has begun: the connection is cut, so that the
// client cannot take what it got for the whole.
type abortError struct{ cause error }

func (e *abortError) Error() string { return e.cause.Error() }
func (e *abortError) Unwrap() error { return e.cause }

// statusClientClosed is what is counted when the client left before it got an
// answer.
const statusClientClosed = 499

// handle is the only place where errors meet clients and the log.
func (s *Server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// fail renders err and logs its cause once.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if aborted, ok := errors.AsType[*abortError](err); ok {
		s.logFailure(r, http.StatusOK, aborted.cause)
		panic(http.ErrAbortHandler)
	}
	if errors.Is(r.Context().Err(), context.Canceled) {
		w.WriteHeader(statusClientClosed) // nobody reads it; metrics count it
		return
	}
	status := statusOf(kubeapi.Discreet(r.Context(), err))
	s.logFailure(r, int(status.Code), err)
	writeStatus(w, status)
}

func (s *Server) logFailure(r *http.Request, code int, err error) {
	level := slog.LevelDebug
	switch {
	case r.Context().Err() != nil: // the client's or the time limit's doing
	case isStatus(err): // an answer that was meant
	case code == http.StatusInternalServerError, code == http.StatusOK && isInternal(err):
		level = slog.LevelError
	}
	args := []any{"method", r.Method, "path", r.URL.Path, "code", code, "err", err}
	if p, ok := errors.AsType[*panicError](err); ok {
		args = append(args, "stack", string(p.stack))
	}
	s.log.Log(r.Context(), level, "request failed", args...)
}

// isStatus reports whether err was made for the client.
func isStatus(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

// isInternal tells our own faults from a client that went away.
func isInternal(err error) bool {
	_, write := errors.AsType[*writeError](err)
	return !write
}

// writeError is a failure to write to the client.
type writeError struct{ cause error }

func (e *writeError) Error() string { return "write: " + e.cause.Error() }
func (e *writeError) Unwrap() error { return e.cause }

// statusOf is what a client is told of err: a stable code and reason, and the
// cause only where it is the client's business.
func statusOf(err error) metav1.Status {
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return known.Status()
	}
	if invalid, ok := errors.AsType[*cache.InvalidError](err); ok {
		return badParameter(invalid)
	}
	if cost, ok := errors.AsType[*cache.CostError](err); ok {
		return withCause(reply.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, cost.Error()),
			"TooExpensive", cost.Parameter)
	}
	switch {
	case errors.Is(err, reply.ErrTooDeep):
		return reply.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	case errors.Is(err, cache.ErrNotWatched):
		return withCause(reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			err.Error()), "NotWatched", "")
	case errors.Is(err, cache.ErrUnknownResource), errors.Is(err, cache.ErrNotFound):
		return reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, err.Error())
	case errors.Is(err, cache.ErrExpired):
		return reply.Failure(http.StatusGone, metav1.StatusReasonExpired, err.Error()+": start again without it")
	case errors.Is(err, cache.ErrTooNew):
		return retryAfter(withCause(reply.Failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, err.Error()),
			metav1.CauseTypeResourceVersionTooLarge, "Too large resource version"), 1)
	case errors.Is(err, cache.ErrNotSynced), errors.Is(err, cache.ErrStopped):
		return retryAfter(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error()), 1)
	case errors.Is(err, context.Canceled): // the client's own cancellation never gets here
		return retryAfter(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "informerd is stopping"), 1)
	case errors.Is(err, context.DeadlineExceeded):
		return reply.Failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the answer took too long: ask for less, or for pages with limit=")
	}
	return reply.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"informerd failed to answer; its log says why")
}

func badParameter(e *cache.InvalidError) metav1.Status {
	return withCause(reply.Failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, e.Error()),
		metav1.CauseTypeFieldValueInvalid, e.Parameter)
}

// invalid is a mistake in one parameter.
func invalid(parameter, format string, args ...any) error {
	return &cache.InvalidError{Parameter: parameter, Message: fmt.Sprintf(format, args...)}
}

func withCause(s metav1.Status, cause metav1.CauseType, field string) metav1.Status {
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause, Message: s.Message, Field: field}}}
	if cause == metav1.CauseTypeResourceVersionTooLarge { // clients look for the message, too
		s.Details.Causes[0] = metav1.StatusCause{Type: cause, Message: field}
	}
	return s
}

func retryAfter(s metav1.Status, seconds int32) metav1.Status {
	if s.Details == nil {
		s.Details = &metav1.StatusDetails{}
	}
	s.Details.RetryAfterSeconds = seconds
	return s
}

func statusError(s metav1.Status) error { return &apierrors.StatusError{ErrStatus: s} }

func notFound(format string, args ...any) error {
	return statusError(reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf(format, args...)))
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := reply.JSON(status, false)
	if err != nil {
		panic(err) // strings and numbers only
	}
	h := w.Header()
	h.Del("ETag")
	h.Del("Content-Length")
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(append(body, '\n')) // a client that left needs no answer
}

func noRoute(w http.ResponseWriter, r *http.Request) error {
	return notFound("nothing is served at %s; the API begins at /v1/resources", r.URL.Path)
}

func readOnly(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Allow", "GET, HEAD")
	return statusError(reply.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("%s is not allowed: informerd is a read replica and answers GET and HEAD", r.Method)))
}
