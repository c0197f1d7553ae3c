package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// Discreet is err as who asks may read it. Why a cluster does not tell its resources, or
// its API server does not answer, says where it is and as whom it is asked: that is for a
// server without authentication, the log and /readyz/verbose.
func Discreet(ctx context.Context, err error) error {
	if access.From(ctx) == access.Everyone() {
		return err
	}
	if unknown, ok := errors.AsType[*cache.NotDiscoveredError](err); ok {
		return &discreetError{strings.TrimSuffix(err.Error(), ": "+unknown.Why), err}
	}
	if silent, ok := errors.AsType[*noUpstreamError](err); ok {
		return noAnswer(silent.cluster, "")
	}
	return err
}

// discreetError has less to say than its cause.
type discreetError struct {
	text  string
	cause error
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.cause }

// noUpstreamError is that the API server of a cluster is needed and cannot be asked, with
// the reason.
type noUpstreamError struct {
	cluster string
	status  error
}

func (e *noUpstreamError) Error() string { return e.status.Error() }
func (e *noUpstreamError) Unwrap() error { return e.status }

func errNoUpstream(cluster string, cause error) error {
	why := "it was not reached yet"
	if cause != nil {
		why = cause.Error()
	}
	return &noUpstreamError{cluster, noAnswer(cluster, ": "+why)}
}

func noAnswer(cluster, why string) error {
	return statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the API server of cluster %q does not answer%s", cluster, why)
}
