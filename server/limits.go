package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/reply"
)

const (
	// maxURL is about what proxies and API servers accept.
	maxURL = 8 << 10
	// patience is how long a request waits for its turn before it is refused.
	patience = time.Second
	// bodyTimeout bounds the reading of a body nobody wants.
	bodyTimeout = 5 * time.Second
)

// semaphore counts what is going on; its capacity is the limit.
type semaphore chan struct{}

func (s semaphore) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// acquire waits a little.
func (s semaphore) acquire(ctx context.Context, wait time.Duration) bool {
	if s.tryAcquire() {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case s <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (s semaphore) release() { <-s }

// take waits a little for a place among what there may be.
func take(ctx context.Context, places semaphore, what string) (release func(), err error) {
	if !places.acquire(ctx, patience) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, tooMany(what, cap(places))
	}
	return places.release, nil
}

// limitConcurrent bounds the requests being answered at once. Watches have a
// limit of their own.
func (s *Server) limitConcurrent(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if isWatch(r) {
			next.ServeHTTP(w, r)
			return nil
		}
		release, err := take(r.Context(), s.requests, "requests")
		if err != nil {
			return err
		}
		defer release()
		next.ServeHTTP(w, r)
		return nil
	})
}

func tooMany(what string, limit int) error {
	return statusError(retryAfter(reply.Failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		fmt.Sprintf("informerd is serving %d %s already, its limit: try again", limit, what)), 1))
}

// limitTime bounds the whole of a request that is not a watch.
func (s *Server) limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.RequestTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// isWatch says whether a request asks for an event stream, if anything that
// serves streams gets it. A malformed query is no watch: it is refused later.
func isWatch(r *http.Request) bool {
	if !strings.Contains(r.URL.RawQuery, "watch") {
		return false
	}
	watch, err := params{r.URL.Query()}.flag("watch")
	return watch && err == nil
}

func limitURL(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURL {
			writeStatus(w, reply.Failure(http.StatusRequestURITooLong, metav1.StatusReason("RequestURITooLong"),
				fmt.Sprintf("the URL has %d bytes; at most %d are accepted", len(r.RequestURI), maxURL)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseBody refuses a GET with a body: nothing here takes one, and reading it
// away would let a slow sender hold a connection.
func refuseBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		w.Header().Set("Connection", "close")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		writeStatus(w, reply.Failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			"a GET takes no body here: put what you ask into the URL"))
	})
}

// boundBody bounds the reading of a body that a GET of the Kubernetes API may
// have, or a write that is refused. What is passed on lifts the bound.
func boundBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
