package server

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// panicError carries a panic to where errors are rendered.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recoverPanics turns a panic into a 500: one bad request must not end the
// process. An aborted answer stays aborted.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.fail(w, r, &panicError{v, debug.Stack()})
		}()
		next.ServeHTTP(w, r)
	})
}
