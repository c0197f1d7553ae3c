package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
)

// instrument measures every request and gives each write to the client a
// deadline of its own: a client that stops reading is dropped, however long a
// stream or a list may take.
func (s *Server) instrument(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		out := &responseWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.WriteTimeout}
		s.metrics.inFlight.Inc()
		out.extend()
		defer func() {
			// What net/http still holds back leaves after the handler. A kept
			// connection also keeps its last deadline, long gone by then if the
			// handler wrote nothing, as for a 304.
			out.extend()
			s.metrics.inFlight.Dec()
			s.metrics.observe(routeOf(r), r, out.status(), time.Since(start))
		}()
		next.ServeHTTP(out, r)
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

// responseWriter is the writer nearest to the connection.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	code    int
}

func (w *responseWriter) status() string {
	if w.code == 0 {
		return "200"
	}
	return strconv.Itoa(w.code)
}

func (w *responseWriter) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Flush makes w an http.Flusher, which compression looks for.
func (w *responseWriter) Flush() {
	w.extend()
	_ = w.control.Flush() // the next write meets the same error
}

// FlushError is what an http.ResponseController prefers.
func (w *responseWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

func (w *responseWriter) extend() {
	// Recorders of tests have no deadlines.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
}

func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
