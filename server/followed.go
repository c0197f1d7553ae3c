package server

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// followed refuses replicas that follow this one while it does not lead: what it has is then
// what they have, or will have, and two that follow each other would never learn anything.
func (s *Server) followed(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get(cache.ReplicaHeader) != "" && s.Leads != nil && !s.Leads() {
			return statusError(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "this replica does not lead, or not yet: do not follow it"))
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
