package server

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
)

// instrument measures every request and gives each write to the client a
// deadline of its own: a client that stops reading is dropped, however long a
// stream or a list may take.
func (s *Server) instrument(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		out := &responseWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.WriteTimeout, lifts: r.ProtoMajor >= 2}
		r = s.record(out, r.WithContext(context.WithValue(r.Context(), writerKey{}, out)))
		whole := false
		s.metrics.inFlight.Inc()
		defer func() {
			// What net/http still holds back leaves after the handler; of a
			// stream of HTTP/2 that is over, nothing does.
			if r.ProtoMajor < 2 || r.Context().Err() == nil {
				out.extend()
			}
			s.metrics.inFlight.Dec()
			s.metrics.observe(routeOf(r), r, out.status(), time.Since(start))
			out.record.End(cmp.Or(out.code, http.StatusOK), out.bytes, !whole)
			if out.ended != nil {
				out.ended()
			}
		}()
		next.ServeHTTP(out, r)
		whole = true
	})
}

// routeOf is the pattern of the route taken: names in paths must not become
// metric labels.
func routeOf(r *http.Request) string {
	if ctx := chi.RouteContext(r.Context()); ctx != nil {
		if pattern := ctx.RoutePattern(); pattern != "" {
			return pattern
		}
	}
	return "none"
}

// writerKey is where the context of a request has its responseWriter.
type writerKey struct{}

// responseWriter is the writer nearest to the connection.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	lifts   bool // a deadline must not outlast its write
	code    int
	bytes   int64
	record  *audit.Record   // nil: none is made
	asked   context.Context // with the turns of the request; nil: before it is known who asks
	ended   func()          // called when the handler has returned; nil: nobody waits for it
}

func (w *responseWriter) status() string {
	if w.code == 0 {
		return "200"
	}
	return strconv.Itoa(w.code)
}

func (w *responseWriter) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.begin(code)
	}
	if code < 200 { // it leaves at once
		w.extend()
		defer w.lift()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.begin(http.StatusOK)
	}
	w.extend()
	defer w.lift()
	n, err := w.write(p)
	w.bytes += int64(n)
	return n, err
}

// heldBack is what net/http holds back of an answer: writing less waits for nobody, mostly.
const heldBack = 4 << 10

// write waits for the client, perhaps, and not for a processor.
func (w *responseWriter) write(p []byte) (int, error) {
	if len(p) >= heldBack {
		defer w.pause()()
	}
	return w.ResponseWriter.Write(p)
}

func (w *responseWriter) pause() (resume func()) {
	if w.asked == nil {
		return func() {}
	}
	return cache.Pause(w.asked)
}

func (w *responseWriter) begin(code int) {
	w.code = code
	w.record.Begin(code)
}

// Hijack is for connections that are passed on to the API server, such as those into a
// workload. What goes over them then is not counted.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.control.Hijack()
	if err == nil && w.code == 0 {
		w.begin(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Flush makes w an http.Flusher, which compression looks for.
func (w *responseWriter) Flush() {
	_ = w.FlushError() // the next write meets the same error
}

// FlushError is what an http.ResponseController prefers.
func (w *responseWriter) FlushError() error {
	w.extend()
	defer w.lift()
	defer w.pause()()
	return w.control.Flush()
}

func (w *responseWriter) extend() {
	// Recorders of tests have no deadlines.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
}

// lift ends the deadline with the write it was for: HTTP/2 resets a stream whose
// deadline passes even if nothing is being written, as during a quiet watch. With
// HTTP/1.1 it says nothing until the next write, which sets another.
func (w *responseWriter) lift() {
	if w.lifts {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
