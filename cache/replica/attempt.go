package replica

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// attempt is one opening of a watch. client-go's Request.Watch answers an EOF, a
// reset and a time-out with a watch that is empty and no error, after trying again
// behind its caller's back: a dead API server would look like one with nothing to
// say, and a restored etcd would hide between two of the tries. So the transport
// tries once, keeps the error for its caller, and shows client-go one that it does
// not try again after (rest/request.go, Watch; rest/with_retry.go, IsNextRetry).
type attempt struct {
	mu  sync.Mutex // guards err
	err error      // of the transport
}

type attemptKey struct{}

// errAttemptFailed stands for the error that the attempt has.
var errAttemptFailed = errors.New("the watch was not opened")

// withAttempt makes the request under the returned context an attempt.
func withAttempt(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// failure is why the transport failed, nil if it did not.
func (a *attempt) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// attemptTransport keeps client-go from repeating attempts.
type attemptTransport struct{ http.RoundTripper }

func (t attemptTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	a, ok := r.Context().Value(attemptKey{}).(*attempt)
	if !ok {
		return resp, err
	}
	if err != nil {
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		return nil, errAttemptFailed
	}
	// The seconds are in the Status, too, where the caller finds them.
	resp.Header.Del("Retry-After")
	return resp, nil
}

// WrappedRoundTripper lets utilnet.CloseIdleConnectionsFor find the transport.
func (t attemptTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
