package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/fair"
	"github.com/informerd/informerd/server/reply"
)

const (
	// maxURL is about what proxies and API servers accept.
	maxURL = 8 << 10
	// patience is how long a request waits for its turn before it is refused.
	patience = time.Second
	// turnPatience is how long it waits for a processor to begin with.
	turnPatience = 10 * time.Second
	// bodyTimeout bounds the reading of a body nobody wants.
	bodyTimeout = 5 * time.Second
)

type ownerKey struct{}

// ownerOf tells requests of different people apart, for what they share. Where nobody
// has to say who they are that is the connection.
func ownerOf(ctx context.Context) string {
	if name := access.From(ctx).Name(); name != "" {
		return "user " + access.OwnerOf(name)
	}
	name, _ := ctx.Value(ownerKey{}).(string)
	return name
}

// own notes whose request it is.
func own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownerKey{}, r.RemoteAddr)))
	})
}

// take waits a little for places among what there may be.
func take(ctx context.Context, places *fair.Places, weight int, what string) (release func(), err error) {
	if release, err = places.Take(ctx, ownerOf(ctx), weight, 0); errors.Is(err, fair.ErrFull) {
		resume := cache.Pause(ctx)
		release, err = places.Take(ctx, ownerOf(ctx), weight, patience)
		resume()
	}
	if errors.Is(err, fair.ErrFull) {
		return nil, tooMany(what, places.Limit())
	}
	return release, err
}

// takeStream is take of a place for a stream that follows so many resources. It does
// not wait: whoever follows comes again.
func (s *Server) takeStream(ctx context.Context, resources int) (release func(), err error) {
	release, err = s.watches.Take(ctx, ownerOf(ctx), resources, 0)
	if errors.Is(err, fair.ErrFull) {
		return nil, tooMany("watches", s.watches.Limit())
	}
	if err == nil {
		boundSendBuffer(ctx)
		audit.From(ctx).Streams()
	}
	return release, err
}

// limitConcurrent bounds the requests being answered at once. Watches have a
// limit of their own.
func (s *Server) limitConcurrent(places *fair.Places) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return s.handle(func(w http.ResponseWriter, r *http.Request) error {
			if isWatch(r) {
				next.ServeHTTP(w, r)
				return nil
			}
			release, err := take(r.Context(), places, 1, "requests")
			if err != nil {
				return err
			}
			defer release()
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// shareProcessors makes a request wait for its turns, from when it is known who asks:
// while it is answered it has one, but for when it waits for something else, such as its
// client or an API server. So nobody's question is answered at the cost of another's who
// had less. Watches are questions like any other.
func (s *Server) shareProcessors(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		q := s.turns.Ask(ownerOf(r.Context()))
		defer q.Done()
		patience := turnPatience
		if r.ContentLength != 0 {
			patience = bodyTimeout / 2 // its body has to arrive meanwhile, and to be read
		}
		if err := begin(r.Context(), q, patience); err != nil {
			return err
		}
		ctx := cache.WithTurns(r.Context(), q)
		if out, ok := ctx.Value(writerKey{}).(*responseWriter); ok {
			out.asked = ctx
		}
		next.ServeHTTP(w, r.WithContext(ctx))
		return nil
	})
}

// slowRefusal makes an address wait that is refused again and again before it is known who
// asks, while others wait for what that takes.
func (s *Server) slowRefusal(r *http.Request) {
	s.turns.Refuse(r.Context(), "address "+access.AddressOf(r.RemoteAddr))
}

// begin waits for the first turn of a question.
func begin(ctx context.Context, q *fair.Question, patience time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := q.Begin(soon)
	if err != nil && ctx.Err() == nil {
		return statusError(retryAfter(reply.Failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
			"informerd has more to do than it can, for you or for all: try again"), 1))
	}
	return err
}

func tooMany(what string, limit int) error {
	return statusError(retryAfter(reply.Failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		fmt.Sprintf("informerd serves at most %d %s at once, and to one client no more than are free: try again", limit, what)), 1))
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
// away would let a slow sender hold a connection. A POST has little time to send one;
// readBody gives it its connection back.
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
