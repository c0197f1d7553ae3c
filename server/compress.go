package server

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// compressor makes the middleware that compresses answers for clients that
// accept gzip. Event streams stay plain: each event must leave at once. ETags
// are weak, so one serves both forms.
func compressor() (func(http.Handler) http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.EnableZstd(false),
		gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.ContentTypes([]string{
			"application/json", "text/plain", "text/html", "text/css", "text/javascript",
			"application/javascript", "image/svg+xml",
			"application/yaml", "text/csv", "application/x-ndjson", typeDOT,
		}),
	)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler { return wrap(next) }, nil
}
