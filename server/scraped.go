package server

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/informerd/informerd/cache"
)

// scrapeCache holds the answers made of the metrics lately, by format. It is safe for concurrent
// use.
type scrapeCache struct {
	lasts time.Duration

	turn chan struct{} // holds one: whoever has it makes an answer

	mu      sync.Mutex // guards answers, which are few: so are the formats
	answers map[expfmt.Format]*scrapedAnswer
}

// scrapedAnswer is what a handler wrote. It is not changed any more.
type scrapedAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	made   time.Time
}

func newScrapeCache(lasts time.Duration) *scrapeCache {
	return &scrapeCache{lasts: lasts, turn: make(chan struct{}, 1), answers: map[expfmt.Format]*scrapedAnswer{}}
}

// get is the answer of h to r, or one that it gave a moment ago to somebody else who asked for
// the same format.
func (s *scrapeCache) get(r *http.Request, h http.Handler) (*scrapedAnswer, error) {
	format := expfmt.Negotiate(r.Header)
	if a := s.recent(format); a != nil {
		return a, nil
	}
	if err := s.lock(r.Context()); err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	if a := s.recent(format); a != nil {
		return a, nil
	}
	a := &scrapedAnswer{header: http.Header{}, code: http.StatusOK, made: time.Now()}
	h.ServeHTTP(a, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.code == http.StatusOK {
		s.answers[format] = a
	}
	return a, nil
}

func (s *scrapeCache) recent(f expfmt.Format) *scrapedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for format, a := range s.answers {
		if time.Since(a.made) >= s.lasts {
			delete(s.answers, format) // it is a megabyte
		}
	}
	return s.answers[f]
}

func (s *scrapeCache) lock(ctx context.Context) error {
	defer cache.Pause(ctx)()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Header, WriteHeader and Write are http.ResponseWriter.
func (a *scrapedAnswer) Header() http.Header            { return a.header }
func (a *scrapedAnswer) WriteHeader(code int)           { a.code = code }
func (a *scrapedAnswer) Write(data []byte) (int, error) { return a.body.Write(data) }
