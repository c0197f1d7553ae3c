package kubeapi

import (
	"context"
	"net/http"
	"net/url"
)

// Upstream is the API server of one cluster. Implementations are safe for
// concurrent use.
type Upstream interface {
	// Get asks, with informerd's own credentials, for a path with its query.
	// Every answer of the API server, whatever its code, is no error.
	Get(ctx context.Context, uri string, header http.Header) (*http.Response, error)
	// Passthrough is where requests of others are passed on to, and a transport
	// that adds no credentials to them.
	Passthrough() (*url.URL, http.RoundTripper)
}
