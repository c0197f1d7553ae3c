package server

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"golang.org/x/sync/singleflight"

	"github.com/informerd/informerd/cache"
)

// scrapeCache holds the answers made of the metrics lately, by format. It is safe for concurrent
// use.
type scrapeCache struct {
	lasts  time.Duration
	making singleflight.Group

	mu      sync.Mutex                       // guards answers
	answers map[expfmt.Format]*scrapedAnswer // few: so are the formats
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
func (s *scrapeCache) get(r *http.Request, h http.Handler) *scrapedAnswer {
	format := expfmt.Negotiate(r.Header)
	if a := s.recent(format); a != nil {
		return a
	}
	// Whoever waits for another's answer needs no processor, and whoever makes it has no turn
	// meanwhile: it could not be interrupted, and comes once a second.
	defer cache.Pause(r.Context())()
	a, _, _ := s.making.Do(string(format), func() (any, error) {
		a := &scrapedAnswer{header: http.Header{}, code: http.StatusOK, made: time.Now()}
		h.ServeHTTP(a, r)
		s.keep(format, a)
		return a, nil
	})
	return a.(*scrapedAnswer)
}

func (s *scrapeCache) keep(f expfmt.Format, a *scrapedAnswer) {
	if a.code != http.StatusOK || s.lasts <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[f] = a
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

// Header, WriteHeader and Write are http.ResponseWriter.
func (a *scrapedAnswer) Header() http.Header            { return a.header }
func (a *scrapedAnswer) WriteHeader(code int)           { a.code = code }
func (a *scrapedAnswer) Write(data []byte) (int, error) { return a.body.Write(data) }
