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

	mu      sync.Mutex                       // guards all below
	answers map[expfmt.Format]*scrapedAnswer // few: so are the formats
	making  chan struct{}                    // closed when the answer is made that is being made; nil: none is
}

// scrapedAnswer is what a handler wrote. It is not changed any more.
type scrapedAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	made   time.Time
}

func newScrapeCache(lasts time.Duration) *scrapeCache {
	return &scrapeCache{lasts: lasts, answers: map[expfmt.Format]*scrapedAnswer{}}
}

// get is the answer of h to r, or one that it gave a moment ago to somebody else who asked for
// the same format.
func (s *scrapeCache) get(r *http.Request, h http.Handler) (*scrapedAnswer, error) {
	format := expfmt.Negotiate(r.Header)
	for {
		s.mu.Lock()
		a, making := s.recentLocked(format), s.making
		if a == nil && making == nil {
			s.making = make(chan struct{})
			s.mu.Unlock()
			return s.make(format, r, h), nil
		}
		s.mu.Unlock()
		if a != nil {
			return a, nil
		}
		if err := await(r.Context(), making); err != nil {
			return nil, err
		}
	}
}

// await waits for an answer that is being made, without a processor.
func await(ctx context.Context, made <-chan struct{}) error {
	defer cache.Pause(ctx)()
	select {
	case <-made:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// make makes an answer, which no other is made beside.
func (s *scrapeCache) make(f expfmt.Format, r *http.Request, h http.Handler) *scrapedAnswer {
	a := &scrapedAnswer{header: http.Header{}, code: http.StatusOK, made: time.Now()}
	done := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.making)
		s.making = nil
		if done && a.code == http.StatusOK && s.lasts > 0 {
			s.answers[f] = a
		}
	}()
	h.ServeHTTP(a, r)
	done = true
	return a
}

func (s *scrapeCache) recentLocked(f expfmt.Format) *scrapedAnswer {
	for format, a := range s.answers {
		if time.Since(a.made) >= s.lasts {
			delete(s.answers, format) // it is a megabyte
		}
	}
	return s.answers[f]
}

// Header, WriteHeader and Write are http.ResponseWriter.
func (a *scrapedAnswer) Header() http.Header            { return a.header }
func (a *scrapedAnswer) WriteHeader(code int)           { a.code = code }
func (a *scrapedAnswer) Write(data []byte) (int, error) { return a.body.Write(data) }
