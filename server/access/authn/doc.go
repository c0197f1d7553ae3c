// Package authn says who made a request, for one cluster, as its API server would:
// by a client certificate, by a bearer token that the API server reviews, or by the
// word of a front proxy that has the right certificate.
//
// It believes nothing else. What it cannot find out now is an Unavailable error, and
// never somebody: whoever cannot be told from an impostor is not let in.
package authn
