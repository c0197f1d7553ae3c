package server

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/reply"
)

// identify finds out who asks, before anything is read for them.
func (s *Server) identify(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		who := access.Everyone()
		if s.Access != nil {
			var err error
			if who, err = s.Access(r); err != nil {
				s.slowRefusal(r)
				return unauthorized(err)
			}
		}
		next.ServeHTTP(w, r.WithContext(noting(access.With(r.Context(), who))))
		return nil
	})
}

// unauthorized is what err says to the client, or what the API server says to whom it
// does not know; the cause is for the log.
func unauthorized(err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	status := statusError(reply.Failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
	return fmt.Errorf("%w: %w", status, err)
}

// mayRead refuses a path that is no resource to those who may not read it.
func mayRead(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := may(r, "get", r.URL.Path); err != nil {
			return err
		}
		return h(w, r)
	}
}
