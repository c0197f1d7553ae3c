package server

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
)

// routes is the contents page of the API: each route with the parameters it
// takes. docs/api.md describes every one of them, and a test compares the two.
func (s *Server) routes() http.Handler {
	root := chi.NewRouter()
	root.Use(s.instrument, own)
	s.kubeRoutes(root)
	root.Group(s.ownRoutes)
	return root
}

// ownRoutes are those of our own API, health and the page.
func (s *Server) ownRoutes(r chi.Router) {
	r.Use(s.compress, s.recoverPanics, secureHeaders, s.checkHost, limitURL, refuseBody, s.identify)
	r.NotFound(s.handle(noRoute))
	r.MethodNotAllowed(s.handle(readOnly))

	s.get(r, "/livez", s.livez)
	s.get(r, "/healthz", s.livez)
	s.get(r, "/readyz", s.readyz, "stale", "verbose")
	r.Get("/*", s.handle(s.page)) // the query is the page's own business
	r.Head("/*", s.handle(s.page))
	s.get(r.With(s.shareProcessors), "/metrics", mayRead(s.serveMetrics)) // health above waits for nobody

	// What is answered with one object or document has places of its own: lists that
	// take long, to be made or to be read, do not hold it up.
	r.Group(func(r chi.Router) {
		r.Use(s.shareProcessors, s.limitConcurrent(s.short), s.limitTime)
		s.get(r, "/v1/openapi.json", s.serveOpenAPI, "pretty")
		s.get(r, "/v1/resources", s.listResources, "cluster", "pretty")
		s.get(r, "/v1/resources/{resource}", s.getResource, "cluster", "pretty")
		s.get(r, "/v1/resources/{resource}/objects/{namespace}/{name}", s.getObject,
			"cluster", "pretty", "fields", "view", "resourceVersion", "timeout")
		s.get(r, "/v1/resources/{resource}/indexes", s.listIndexes, "cluster", "pretty")
		s.get(r, "/v1/resources/{resource}/columns", s.listColumns, "cluster", "pretty")
		s.handlerRoutes(r)
	})
	// A claim waits as a stream does, and has a place of a stream.
	s.post(r.With(s.spareMemory, s.shareProcessors), claimRoute, s.claim, "max", "lease", "wait")
	r.Group(func(r chi.Router) {
		r.Use(s.spareMemory, s.shareProcessors, s.limitConcurrent(s.requests), s.limitTime)
		s.get(r, "/v1/resources/{resource}/objects", s.listObjects, append(selection, "watch", "timeoutSeconds")...)
		s.get(r, "/v1/query", s.queryKinds, append(slices.DeleteFunc(slices.Clone(selection), ofOneVersion), "resources", "watch", "timeoutSeconds")...)
		s.get(r, "/v1/resources/{resource}/indexes/{index}", s.listIndexValues, "cluster", "pretty", "prefix", "limit", "continue")
		s.get(r, "/v1/resources/{resource}/indexes/{index}/*", s.listIndexed, append(selection, "watch", "timeoutSeconds")...)
		s.get(r, "/v1/search", s.find, "cluster", "pretty", "q", "limit", "highlights",
			"namespace", "labelSelector", "fieldSelector", "filter")
		s.get(r, "/v1/complete", s.complete, "cluster", "pretty", "for", "resource", "path", "prefix", "limit")
		s.get(r, "/v1/health", s.listHealth, "cluster", "pretty", "resources", "namespace", "labelSelector", "status", "all", "limit", "watch", "timeoutSeconds")
		s.get(r, "/v1/health/{resource}/{namespace}/{name}", s.getHealth, "cluster", "pretty", "limit")
		s.get(r, "/v1/drain/{node}", s.foreseeDrain, "cluster", "pretty")
		s.get(r, "/v1/graph/dangling", s.listDangling, "cluster", "pretty", "namespace", "kinds", "limit")
		s.get(r, "/v1/graph/{resource}/{namespace}/{name}", s.getGraph,
			"cluster", "pretty", "depth", "direction", "kinds", "edges", "through", "limit", "view", "output")
	})
}

// selection are the parameters of every route that answers with objects.
var selection = []string{
	"cluster", "namespace", "labelSelector", "fieldSelector", "filter", "index", "limit", "continue",
	"resourceVersion", "timeout", "fields", "view", "sort", "count", "output", "pretty",
	"groupBy", "agg", "facets", "explain",
}

// ofOneVersion tells the parameters that make no sense for many resources, each
// of which has a version of its own.
func ofOneVersion(parameter string) bool {
	return parameter == "resourceVersion" || parameter == "timeout"
}

// get registers a handler for GET and HEAD together with the parameters it
// knows; any other parameter is refused before the handler runs.
func (s *Server) get(r chi.Router, pattern string, h handler, parameters ...string) {
	s.parameters[pattern] = parameters
	served := s.handle(checkParameters(parameters, h))
	r.Get(pattern, served)
	r.Head(pattern, served)
}
