package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passTimeout is how long an API server may take to begin its answer to what is
// passed on: longer than the minute it gives itself.
const passTimeout = 90 * time.Second

// errNotBegun: the API server was given up after passTimeout.
var errNotBegun = errors.New("no answer has begun")

// impatient gives up requests whose answers do not begin. Once begun they may
// take their time.
type impatient struct{ http.RoundTripper }

func (t impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // which ends with the request
	defer time.AfterFunc(passTimeout, func() { cancel(errNotBegun) }).Stop()
	resp, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil && context.Cause(ctx) == errNotBegun {
		return nil, errNotBegun
	}
	return resp, err
}

// errSilent: nobody knows what became of the request.
func errSilent(cluster string) error {
	return statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		"the API server of cluster %q has not begun to answer for %v; what was asked of it may have been done", cluster, passTimeout)
}
