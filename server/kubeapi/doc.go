// Package kubeapi serves the Kubernetes read API from the caches: discovery,
// get, list and watch under /api and /apis, so that kubectl and every informer
// work with informerd as their server. Paths, parameters, answers and errors are
// those of the API server; docs/kubernetes-api.md lists what differs.
//
// The package asks an API server only through Upstream: for what no copy of
// objects can answer (OpenAPI, printed columns, the current resourceVersion), and
// to pass requests on with the caller's own credentials. It has no client of its
// own, no authentication and no limits: its server brings them.
package kubeapi
