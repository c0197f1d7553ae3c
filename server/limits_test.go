package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestStreamsWeigh: a stream about many resources costs as much as one about each of
// them, so it counts as much.
func TestStreamsWeigh(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxWatches = 8 })
	base := serve(t, w)
	s := open(t, base+"/v1/query?resources=pods,nodes&watch=true")
	s.next()
	if n := w.watches.Taken(); n != 2 {
		t.Errorf("a stream of two resources counts %d", n)
	}
	s.close()
	for w.watches.Taken() > 0 {
		runtime.Gosched()
	}
}

// TestAccountsOfANamespaceAreOne: whoever may edit a namespace has as many service accounts
// as they like, and no more places for it.
func TestAccountsOfANamespaceAreOne(t *testing.T) {
	owners := map[string]bool{}
	for _, name := range []string{"system:serviceaccount:mine:a", "system:serviceaccount:mine:b", "jane"} {
		owners[ownerOf(access.With(t.Context(), accesstest.NewUser(name)))] = true
	}
	if len(owners) != 2 {
		t.Errorf("two of a namespace and jane are %d: %v", len(owners), owners)
	}
}

// TestScrapesAreBounded: each answer with the metrics takes megabytes, and anybody may
// ask for them.
func TestScrapesAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range maxScrapes {
		release, err := w.scrapes.Take(t.Context(), fmt.Sprint("owner", i), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	wantStatus(t, w.get(t, "/metrics"), 429, metav1.StatusReasonTooManyRequests, "scrapes")
	if rec := w.get(t, "/livez"); rec.Code != http.StatusOK {
		t.Errorf("GET /livez = %d", rec.Code)
	}
}

// TestShortOfMemory: what may need much is refused, what keeps the process alive and
// known is not.
func TestShortOfMemory(t *testing.T) {
	w := newWorld(t)
	limit := int64(1 << 20)
	w.memory.limit = func() int64 { return limit }
	for _, path := range []string{"/v1/resources/pods/objects", "/v1/resources/pods/objects?watch=true", "/api/v1/pods", "/api/v1/pods?watch=true", "/v1/query?resources=pods", "/v1/search?q=a"} {
		wantStatus(t, w.get(t, path), 429, metav1.StatusReasonTooManyRequests, "short of memory")
	}
	for _, path := range []string{"/livez", "/metrics", "/v1/resources", "/v1/resources/pods/objects/a/one", "/api/v1/namespaces/a/pods/one", "/apis"} {
		if rec := w.get(t, path); rec.Code != http.StatusOK {
			t.Errorf("GET %s = %d %s", path, rec.Code, rec.Body)
		}
	}
	limit = math.MaxInt64
	if rec := w.get(t, "/api/v1/pods"); rec.Code != http.StatusOK {
		t.Errorf("with memory again: %d", rec.Code)
	}
}

// TestNestedIsNotIndented: nor does a question whose answer is mostly spaces take
// gigabytes.
func TestNestedIsNotIndented(t *testing.T) {
	w := newWorld(t)
	const depth = 4_500 // of two levels each
	deep := strings.Repeat(`{"a":[`, depth) + "1" + strings.Repeat("]}", depth)
	w.pods.apply(t, "ADDED", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"deep","namespace":"a","uid":"deep","resourceVersion":"150"},"spec":`+deep+`}`)
	for _, path := range []string{
		"/v1/resources/pods/objects?pretty=true", "/v1/resources/pods/objects/a/deep?pretty=true", "/api/v1/pods?pretty=true",
		"/api/v1/namespaces/a/pods/deep?pretty=true",
	} {
		rec := w.get(t, path)
		if rec.Code != http.StatusOK || rec.Body.Len() > 1<<20 || !strings.Contains(rec.Body.String(), deep) {
			t.Errorf("GET %s: %d, %d bytes", path, rec.Code, rec.Body.Len())
		}
	}
	began := time.Now()
	rec := w.get(t, "/v1/resources/pods/objects?output=yaml")
	wantStatus(t, rec, 422, metav1.StatusReasonInvalid, "too deeply")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v to refuse", took)
	}
}

// TestLargeIsForgotten: a stream in which nothing happens does not hold on to the memory
// that a large object took it once.
func TestLargeIsForgotten(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("x", 1<<20)
	o := w.pods.decode(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"large","namespace":"a","uid":"large","resourceVersion":"150","annotations":{"x":"`+large+`"}}}`)
	for name, v := range map[string]view{"whole": {}, "metadata": partialView} {
		rec := httptest.NewRecorder()
		e := newEventWriter(rec, httptest.NewRequest(http.MethodGet, "/", nil), v)
		if err := errors.Join(e.object("ADDED", o, "150"), e.flush()); err != nil || !strings.Contains(rec.Body.String(), large) {
			t.Fatalf("%s: %v, %d bytes", name, err, rec.Body.Len())
		}
		if n := cap(e.buf) + cap(e.enc.raw); n > 2*keptBuffer {
			t.Errorf("%s: it holds %d bytes", name, n)
		}
	}
}
