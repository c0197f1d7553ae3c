package cache

import "time"

// Document is what an API server said about itself, such as its OpenAPI. It is
// kept for the server's outages.
type Document struct {
	DocumentKey
	ContentType, ETag string
	// Fetched is when the server said it, to the second.
	Fetched time.Time
	// Data is the document, gzip.
	Data []byte
}

// DocumentKey names a document: where it is at the API server, and the media
// types it was asked for as.
type DocumentKey struct{ Cluster, URI, Accept string }
