// Package server answers HTTP: the query API under /v1, health, metrics and the
// browser page. Everything it says comes from the stores and states of package
// cache; it knows no Kubernetes client and no bbolt.
//
// It refuses rather than approximates: what a query asks and cannot get exactly
// is an error that names the mistake, a resource without data is 503 and never
// an empty list, and a method that writes is 405. Errors are metav1.Status JSON.
package server
