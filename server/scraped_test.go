package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestScrapesAreShared: an answer made of the metrics is given again for as long as it lasts, to
// those who ask for the same format, and an error is not.
func TestScrapesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		code := http.StatusOK
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(30 * time.Millisecond)
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			w.WriteHeader(code)
			fmt.Fprint(w, made.Add(1))
		})
		cache := newScrapeCache(time.Second)
		get := func(accept string) string {
			t.Helper()
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Header.Set("Accept", accept)
			a := cache.get(r, h)
			return fmt.Sprint(a.code, " ", a.body.String())
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got := get("text/plain"); got != "200 1" {
					t.Errorf("%s, want the answer made for the first", got)
				}
			})
		}
		wg.Wait()
		if got := get("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"); got != "200 2" {
			t.Errorf("another format: %s", got)
		}
		time.Sleep(time.Second)
		if got := get("text/plain"); got != "200 3" {
			t.Errorf("a second later: %s", got)
		}
		time.Sleep(time.Second)
		code = http.StatusInternalServerError
		for want := range 2 {
			if got := get("text/plain"); got != fmt.Sprint("500 ", 4+want) {
				t.Errorf("an error: %s", got)
			}
		}
		if len(cache.answers) != 0 {
			t.Errorf("%d answers are kept", len(cache.answers))
		}
		code = http.StatusOK
		cache = newScrapeCache(0) // without an age each is made anew
		for want := range 2 {
			if got := get("text/plain"); got != fmt.Sprint("200 ", 6+want) {
				t.Errorf("without an age: %s", got)
			}
		}
	})
}
