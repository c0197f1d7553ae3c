package replica

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

// The API server of a cluster may be another informerd. What it answers is as old as
// it says: a list in headers, a bookmark in an annotation. So the age of a copy of a
// copy counts from the API server's proof.
//
// Nor is its version that of etcd: started again with what it saved last, it is behind
// what it told before, and catches up. Only what it answers to a consistent read, for
// which it asks its own API server, proves that etcd went back.

// answer takes the headers of the answer to a request.
type answer struct {
	mu     sync.Mutex // guards header
	header http.Header
}

type answerKey struct{}

// withAnswer has the request under the returned context note its answer's headers.
func withAnswer(ctx context.Context) (context.Context, *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), a
}

type consistentKey struct{}

// consistently has the request under the returned context be a consistent read, which
// an API server takes it for anyway.
func consistently(ctx context.Context) context.Context {
	return context.WithValue(ctx, consistentKey{}, true)
}

// tierTransport is what is between this informerd and one that is its API server.
type tierTransport struct{ http.RoundTripper }

func (t tierTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(consistentKey{}) != nil {
		r = r.Clone(r.Context())
		r.Header.Set(cache.ReadsHeader, cache.ConsistentReads)
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	noteAnswer(r, resp)
	return resp, err
}

// WrappedRoundTripper lets utilnet.CloseIdleConnectionsFor find the transport.
func (t tierTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// noteAnswer keeps the headers for who asked for them.
func noteAnswer(r *http.Request, resp *http.Response) {
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok && resp != nil {
		a.mu.Lock()
		a.header = resp.Header
		a.mu.Unlock()
	}
}

// ofReplica reports whether another informerd answered.
func (a *answer) ofReplica() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.header.Get(cache.StateHeader) != ""
}

// proof is when the server's own copy was proven current, of an answer to a request
// of a moment; zero if it does not know. An API server's is of that moment.
func (a *answer) proof(asked time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.header.Get(cache.StateHeader) == "" {
		return asked
	}
	seconds, err := strconv.ParseFloat(a.header.Get(cache.AgeHeader), 64)
	if err != nil {
		return time.Time{}
	}
	return asked.Add(-time.Duration(seconds * float64(time.Second)))
}

// toldAge reads the annotation of a bookmark; 0 if it has none, and more than any lease
// if the server does not know.
func toldAge(annotations map[string]string) time.Duration {
	told, ok := annotations[cache.AgeAnnotation]
	if !ok {
		return 0
	}
	seconds, err := strconv.ParseFloat(told, 64)
	if err != nil || seconds < 0 {
		return 24 * time.Hour
	}
	return time.Duration(seconds * float64(time.Second))
}
