package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

// newKube makes the Kubernetes read API.
func (s *Server) newKube() *kubeapi.API {
	return kubeapi.New(kubeapi.Options{
		Caches:    kubeCaches{s.Caches},
		Upstream:  s.Upstream,
		Documents: s.Documents,
		Modes:     s.Modes,
		Timeout:   s.RequestTimeout,
		Admit:     s.admit,
		Freshness: setFreshness,
		TakeOver:  s.takeOver,
		Stopping:  s.stopping,
		Log:       s.log,
	})
}

// kubeRoutes are those of the Kubernetes read API. Its paths, parameters and
// methods are the API server's, so the middleware of our own API that judges them
// is left out.
func (s *Server) kubeRoutes(r chi.Router) {
	serve := s.handle(func(w http.ResponseWriter, r *http.Request) error { return kubeError(s.kube.Serve(w, r)) })
	r.Group(func(r chi.Router) {
		r.Use(s.compressReads, s.recoverPanics, secureHeaders, s.checkHost, limitURL, boundBody, s.followed, s.identify, s.shareProcessors)
		for _, prefix := range append([]string{kubeapi.ClustersPrefix}, kubeapi.Prefixes...) {
			r.Handle(prefix, serve)
			r.Handle(prefix+"/*", serve)
		}
	})
}

// compressReads leaves alone what streams or may take over the connection.
func (s *Server) compressReads(next http.Handler) http.Handler {
	compressed := s.compress(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" && !kubeapi.Streams(r) {
			compressed.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit bounds what goes on at once of each class.
func (s *Server) admit(ctx context.Context, c kubeapi.Class) (release func(), err error) {
	if c == kubeapi.Long || c == kubeapi.Short {
		if err := s.memoryLeft(); err != nil {
			return nil, err
		}
	}
	switch c {
	case kubeapi.Long:
		return s.takeStream(ctx, 1)
	case kubeapi.Passed:
		return take(ctx, s.passed, 1, "requests that the API server answers")
	case kubeapi.Single:
		return take(ctx, s.short, 1, "requests")
	}
	return take(ctx, s.requests, 1, "requests")
}

// kubeError is an error of the Kubernetes API in the words of this package.
func kubeError(err error) error {
	cut, ok := errors.AsType[*kubeapi.CutError](err)
	switch {
	case !ok:
		return err
	case cut.Client:
		return &abortError{&writeError{cut.Cause}}
	}
	return &abortError{cut.Cause}
}

// kubeCaches shows Caches to the Kubernetes API.
type kubeCaches struct{ Caches }

func (c kubeCaches) Resource(r cache.Resource) (kubeapi.Resource, bool) {
	return c.Caches.Resource(r)
}

func (c kubeCaches) Resources() []kubeapi.Resource {
	all := c.Caches.Resources()
	out := make([]kubeapi.Resource, len(all))
	for i, r := range all {
		out[i] = r
	}
	return out
}
