package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

// stream is a client of server-sent events.
type stream struct {
	t      *testing.T
	resp   *http.Response
	events chan sse
	cancel context.CancelFunc
}

type sse struct {
	name, id string
	data     struct {
		Type, Resource  string
		ResourceVersion string
		State, Reason   string
		Object          struct {
			Code     int
			Metadata metav1.ObjectMeta
			Spec     map[string]any
			Data     map[string]string
		}
	}
	raw string
}

// String is what most tests compare: the type, and the name or version.
func (e sse) String() string {
	switch e.name {
	case "BOOKMARK", "RESYNC":
		return e.name + " " + e.data.ResourceVersion
	case "STATE":
		return e.name + " " + e.data.State
	case "ERROR":
		return fmt.Sprintf("ERROR %d", e.data.Object.Code)
	}
	return e.name + " " + e.data.Object.Metadata.Name
}

const patient = 10 * time.Second

// open asks for a stream and wants to get one. Headers come in pairs.
func open(t *testing.T, url string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Content-Encoding") != "" {
		t.Fatalf("GET %s = %d %v", url, resp.StatusCode, resp.Header)
	}
	s := &stream{t: t, resp: resp, events: make(chan sse, 1000), cancel: cancel}
	go s.read()
	t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	s.resp.Body.Close()
}

func (s *stream) read() {
	defer close(s.events)
	lines := bufio.NewScanner(s.resp.Body)
	lines.Buffer(nil, 16<<20)
	var e sse
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.raw = value
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				s.t.Errorf("data %q: %v", value, err)
			}
		case "":
			if e.name == "" { // a comment
				e.name = "comment"
			} else if e.data.Type != e.name {
				s.t.Errorf("event %s has type %s", e.name, e.data.Type)
			}
			s.events <- e
			e = sse{}
		}
	}
}

// next is the next event that is no comment; the zero event at the end of the
// stream.
func (s *stream) next() sse {
	s.t.Helper()
	for {
		select {
		case e, ok := <-s.events:
			if !ok || e.name != "comment" {
				return e
			}
		case <-time.After(patient):
			s.t.Fatal("no event")
		}
	}
}

func (s *stream) want(events ...string) (last sse) {
	s.t.Helper()
	for _, want := range events {
		if last = s.next(); last.String() != want {
			s.t.Fatalf("event %s (%s), want %s", last, last.raw, want)
		}
	}
	return last
}

// until passes over events up to one of a name that holds text.
func (s *stream) until(name, text string) sse {
	s.t.Helper()
	for {
		e := s.next()
		if e.name == "" {
			s.t.Fatalf("the stream ended before %s with %s", name, text)
		}
		if e.name == name && strings.Contains(e.raw, text) {
			return e
		}
	}
}

func (s *stream) wantEnd() {
	s.t.Helper()
	if e := s.next(); e.name != "" {
		s.t.Fatalf("event %s, want the end", e)
	}
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w) + "/v1/resources/pods/objects?watch=true"
	s := open(t, url)
	if h := s.resp.Header; h.Get("Informerd-State") != "live" || h.Get("Cache-Control") != "no-store" || h.Get("ETag") != "" {
		t.Errorf("headers %v", h)
	}
	for _, name := range []string{"one", "two", "three"} {
		if e := s.want("ADDED " + name); e.id != "" || e.data.ResourceVersion != "" {
			t.Errorf("an initial object has the id %q", e.id)
		}
	}
	e := s.want("BOOKMARK 100")
	if e.id != "100" || e.data.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" || e.data.Object.Metadata.ResourceVersion != "100" {
		t.Errorf("bookmark %s", e.raw)
	}
	w.pods.apply(t, cache.Added, pod("a", "four", "web", "n1", 101))
	w.pods.apply(t, cache.Modified, pod("a", "four", "web", "n2", 102))
	w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 103))
	for i, want := range []string{"ADDED four", "MODIFIED four", "DELETED one"} {
		if e := s.want(want); e.id != fmt.Sprint(101+i) || e.data.ResourceVersion != e.id {
			t.Errorf("%s has the id %q", e, e.id)
		}
	}
}

// An object enters and leaves the result as the selection sees it.
func TestWatchAtTheEdgeOfTheSelection(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	for n, path := range []string{
		"/v1/resources/pods/objects?watch=true&labelSelector=app%3Dweb&namespace=a",
		"/v1/resources/pods/objects?watch=1&index=label:app%3Dweb&fieldSelector=metadata.namespace%3Da",
		"/v1/resources/pods/indexes/label/app%3Dweb?watch&namespace=a",
	} {
		v := 1000 * (n + 1)
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", v))
		w.pods.apply(t, cache.Modified, pod("a", "two", "db", "n2", v+1))
		s := open(t, base+path)
		s.want("ADDED one", fmt.Sprintf("BOOKMARK %d", v+1))
		w.pods.apply(t, cache.Modified, pod("a", "two", "web", "n2", v+2))   // enters
		w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n9", v+3)) // never in it
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n3", v+4))   // stays
		w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n4", v+5))    // leaves
		w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n5", v+6))    // stays out
		w.pods.apply(t, cache.Deleted, pod("a", "two", "web", "n2", v+7))
		s.want("ADDED two", "MODIFIED one")
		e := s.want("DELETED one")
		if e.id != fmt.Sprint(v+5) || e.data.Object.Spec["nodeName"] != "n3" {
			t.Errorf("%s: left as %s", path, e.raw)
		}
		s.want("DELETED two")
		s.close()
		w.pods.apply(t, cache.Added, pod("a", "two", "db", "n2", v+8))
	}
}

func TestWatchFields(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+"/v1/resources/pods/objects?watch=true&namespace=b&fields=metadata.name,spec.nodeName")
	if e := s.next(); e.raw != `{"type":"ADDED","object":{"metadata":{"name":"three"},"spec":{"nodeName":"n1"}}}` {
		t.Errorf("data %s", e.raw)
	}
}

func TestWatchResume(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w) + "/v1/resources/pods/objects?watch=true"
	for i := range 5 {
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101+i))
	}
	s := open(t, url, "Last-Event-ID", "103")
	for _, id := range []string{"104", "105"} {
		if e := s.want("MODIFIED one"); e.id != id {
			t.Errorf("id %q, want %q", e.id, id)
		}
	}
	s = open(t, url+"&resourceVersion=104")
	if e := s.want("MODIFIED one"); e.id != "105" {
		t.Errorf("id %q", e.id)
	}
	// The header is younger than the URL an EventSource goes on using.
	s = open(t, url+"&resourceVersion=101", "Last-Event-ID", "104")
	if e := s.want("MODIFIED one"); e.id != "105" {
		t.Errorf("id %q", e.id)
	}
	// resourceVersion=0 is any version: all there is.
	s = open(t, url+"&resourceVersion=0&namespace=b")
	s.want("ADDED three", "BOOKMARK 105")
}

func TestWatchFromThePast(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	const path = "/v1/resources/pods/objects?watch=true&namespace=a"
	wantStatus(t, w.get(t, path+"&resourceVersion=5"), 410, metav1.StatusReasonExpired, "too old")

	s := open(t, base+path, "Last-Event-ID", "5")
	// Who is cut off before the bookmark must not come back with the version it had.
	resync := s.want("RESYNC 100")
	open(t, base+path, "Last-Event-ID", resync.id).want("RESYNC 100", "ADDED one", "ADDED two", "BOOKMARK 100")
	s.want("ADDED one", "ADDED two", "BOOKMARK 100")
	w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 120))
	s.want("DELETED one")
	// Also when the URL names a version that is gone.
	s = open(t, base+path+"&resourceVersion=5", "Last-Event-ID", "6")
	s.want("RESYNC 120", "ADDED two", "BOOKMARK 120")
	wantStatus(t, w.get(t, path, "Last-Event-ID", "x"), 400, metav1.StatusReasonBadRequest, "Last-Event-ID")
}

func TestWatchFromTheFuture(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	const path = "/v1/resources/pods/objects?watch=true&namespace=b"
	wantStatus(t, w.get(t, path+"&resourceVersion=500&timeout=1ms"), 504, metav1.StatusReasonTimeout, "Too large resource version: 500")

	// A copy that is behind will catch up, also a live one: nothing is sent twice
	// until then.
	for n, state := range []cache.State{cache.Live, cache.Warm} {
		w.pods.set(state, "")
		id := fmt.Sprint(500 + 100*n)
		s := open(t, base+path+"&resourceVersion=500&timeout=1ms", "Last-Event-ID", id)
		if state == cache.Warm {
			s.want("STATE warm")
		}
		w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n1", 400+100*n))
		w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n1", 501+100*n))
		if e := s.want("MODIFIED three"); e.id != fmt.Sprint(501+100*n) {
			t.Errorf("id %q", e.id)
		}
	}
}

// at is an API server whose objects are at a version; at "" it does not answer.
type at struct{ version atomic.Value }

func (u *at) Get(context.Context, string, http.Header) (*http.Response, error) {
	version, _ := u.version.Load().(string)
	if version == "" {
		return nil, errors.New("connection refused")
	}
	body := fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, version)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (u *at) Passthrough() (*url.URL, http.RoundTripper) { return nil, nil }

// TestWatchFromAnotherFuture: the API server says whether a version that the copy
// has not reached ever was. If not, its reader begins anew.
func TestWatchFromAnotherFuture(t *testing.T) {
	upstream := &at{}
	w := newWorld(t, func(o *Options) {
		o.Upstream = func(string) kubeapi.Upstream { return upstream }
		o.Bookmarks = 10 * time.Millisecond
	})
	base := serve(t, w)
	const path = "/v1/resources/pods/objects?watch=true&namespace=b&resourceVersion=500&timeout=1ms"
	const kinds = "/v1/query?resources=pods&watch=true&namespace=b"
	for _, state := range []cache.State{cache.Live, cache.Stale} {
		w.pods.set(state, "")
		upstream.version.Store("100")
		s := open(t, base+path, "Last-Event-ID", "500")
		if state == cache.Stale {
			s.want("STATE stale")
		}
		s.want("RESYNC 100", "ADDED three", "BOOKMARK 100")
	}
	w.pods.set(cache.Live, "")
	if rec := w.get(t, "/api/v1/pods?watch=true&resourceVersion=500"); !strings.Contains(rec.Body.String(), `"code":410`) {
		t.Errorf("a watch of the Kubernetes API is answered with %s", rec.Body)
	}
	if rec := w.get(t, path); rec.Code != http.StatusGone {
		t.Errorf("a watch from a version that never was is answered with %d: %s", rec.Code, rec.Body)
	}

	// It lags: the API server is further on. Then it turns out that it went back.
	upstream.version.Store("600")
	s := open(t, base+path, "Last-Event-ID", "500")
	many := open(t, base+kinds, "Last-Event-ID", "pods=500")
	many.want("BOOKMARK ")
	time.Sleep(50 * time.Millisecond) // several times o.Bookmarks
	upstream.version.Store("100")
	e := s.next() // and no BOOKMARK 500 before it: nobody has proven that
	if !strings.Contains(e.raw, `"code":410`) {
		t.Fatalf("event %s, want ERROR 410", e.raw)
	}
	s.wantEnd()
	open(t, base+path, "Last-Event-ID", e.id).want("RESYNC 100", "ADDED three", "BOOKMARK 100")
	for {
		if e := many.next(); strings.Contains(e.raw, "RESYNC") {
			break
		}
	}
	for { // it may be told, by bookmarks of no version, that there is nothing yet
		if e := many.next(); !strings.Contains(e.raw, "BOOKMARK") {
			if !strings.Contains(e.raw, "ADDED") || !strings.Contains(e.raw, `"three"`) {
				t.Errorf("event %s, want ADDED three", e.raw)
			}
			break
		}
	}
}

// TestWatchFromAnotherFuturePassed: a version that never was is found out before the new
// history passes it, which may be while the client waits for it.
func TestWatchFromAnotherFuturePassed(t *testing.T) {
	for path, last := range map[string]string{"/v1/resources/pods/objects?": "500", "/v1/query?resources=pods&": "pods=500"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			upstream := &at{}
			upstream.version.Store("100")
			w := newWorld(t, func(o *Options) { o.Upstream = func(string) kubeapi.Upstream { return upstream } })
			base := serve(t, w)
			passed := time.AfterFunc(8*kubeapi.SuspectAfter, func() {
				upstream.version.Store("600")
				w.pods.store.Bookmark("", "600")
			})
			defer passed.Stop()
			s := open(t, base+path+"watch=true&namespace=b", "Last-Event-ID", last)
			if e := s.next(); !strings.Contains(e.raw, "RESYNC") {
				t.Errorf("event %s, want RESYNC", e.raw)
			}
		})
	}
}

// TestWatchFromAnotherFutureAway: while the API server is away nobody can tell whether a
// version ever was. It is asked when it is back, before the new history passes the version.
func TestWatchFromAnotherFutureAway(t *testing.T) {
	for path, last := range map[string]string{
		"/v1/resources/pods/objects?":             "500",
		"/v1/query?resources=pods&":               "pods=500",
		"/api/v1/namespaces/b/pods?":              "",
		"/v1/resources/pods/objects?namespace=b&": "500",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			upstream := &at{}
			w := newWorld(t, func(o *Options) { o.Upstream = func(string) kubeapi.Upstream { return upstream } })
			w.caches.away.Store(true)
			base := serve(t, w)
			back := time.AfterFunc(8*kubeapi.SuspectAfter, func() {
				upstream.version.Store("100")
				w.caches.away.Store(false)
			})
			defer back.Stop()
			passed := time.AfterFunc(16*kubeapi.SuspectAfter, func() {
				upstream.version.Store("600")
				w.pods.store.Bookmark("", "600")
			})
			defer passed.Stop()
			if last == "" {
				rec := w.get(t, path+"watch=true&resourceVersion=500&timeoutSeconds=20")
				if !strings.Contains(rec.Body.String(), `"code":410`) {
					t.Errorf("answered with %s, want 410", rec.Body)
				}
				return
			}
			s := open(t, base+path+"watch=true", "Last-Event-ID", last)
			e := s.next()
			for !strings.Contains(e.raw, "RESYNC") && !strings.Contains(e.raw, "410") {
				if strings.Contains(e.raw, "600") {
					t.Fatalf("event %s before RESYNC or 410", e.raw)
				}
				e = s.next()
			}
		})
	}
}

// TestWatchFromAnotherFutureUnanswered: the API server tells what happens, and does not
// answer whether a version ever was, until the copy has passed it. Then nobody can tell
// any more, and the client begins anew.
func TestWatchFromAnotherFutureUnanswered(t *testing.T) {
	for path, last := range map[string]string{
		"/v1/resources/pods/objects?":                                 "500",
		"/v1/query?resources=pods&":                                   "pods=500",
		"/api/v1/namespaces/b/pods?":                                  "",
		"/v1/resources/pods/objects?namespace=b&":                     "500",
		"/v1/resources/pods/objects?resourceVersion=500&timeout=1ms&": "500",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			upstream := &at{}
			w := newWorld(t, func(o *Options) { o.Upstream = func(string) kubeapi.Upstream { return upstream } })
			base := serve(t, w)
			passed := time.AfterFunc(8*kubeapi.SuspectAfter, func() { w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n2", 600)) })
			defer passed.Stop()
			if last == "" {
				rec := w.get(t, path+"watch=true&resourceVersion=500&timeoutSeconds=20")
				if !strings.Contains(rec.Body.String(), `"code":410`) {
					t.Errorf("answered with %s, want 410", rec.Body)
				}
				return
			}
			s := open(t, base+path+"watch=true", "Last-Event-ID", last)
			e := s.next()
			for !strings.Contains(e.raw, "RESYNC") && !strings.Contains(e.raw, "410") {
				if strings.Contains(e.raw, "600") {
					t.Fatalf("event %s before RESYNC or 410", e.raw)
				}
				e = s.next()
			}
		})
	}
}

// TestTooLargeVersion: a read at a version that the copy does not reach is answered
// as by the API server.
func TestTooLargeVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, target := range []string{"/api/v1/pods?resourceVersion=500", "/api/v1/namespaces/a/pods/one?resourceVersion=500"} {
			rec := w.get(t, target)
			s := wantStatus(t, rec, 504, metav1.StatusReasonTimeout, "Too large resource version: 500, current: 100")
			if rec.Header().Get("Retry-After") != "1" || len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
				t.Errorf("GET %s: Retry-After %q, %+v", target, rec.Header().Get("Retry-After"), s.Details)
			}
		}
	})
}

func TestWatchTellsStates(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+"/v1/resources/nodes/objects?watch=true")
	s.want("ADDED n1", "BOOKMARK 100")
	w.nodes.set(cache.Stale, "the watch is down")
	if e := s.want("STATE stale"); e.data.Reason != "the watch is down" || e.id != "" {
		t.Errorf("state %s", e.raw)
	}
	w.nodes.set(cache.Live, "")
	s.want("STATE live")
}

func TestWatchHeartbeatAndBookmarks(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Heartbeat, o.Bookmarks = 20*time.Millisecond, 30*time.Millisecond })
	s := open(t, serve(t, w)+"/v1/resources/pods/objects?watch=true&namespace=none")
	s.want("BOOKMARK 100")
	for comments := 0; comments < 3; {
		if e := <-s.events; e.name == "comment" {
			comments++
		} else {
			t.Fatalf("event %s although nothing happened", e)
		}
	}
	w.pods.store.Bookmark("", "150")
	if e := s.want("BOOKMARK 150"); e.id != "150" || e.data.Object.Metadata.Annotations != nil {
		t.Errorf("bookmark %s", e.raw)
	}
	// Events outside the selection move the stream on as well.
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 160))
	s.want("BOOKMARK 160")
}

func TestWatchEndsInTime(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+"/v1/resources/nodes/objects?watch=true&timeoutSeconds=1")
	s.want("ADDED n1", "BOOKMARK 100")
	w.nodes.store.Bookmark("", "170")
	s.want("BOOKMARK 170") // the last word
	s.wantEnd()
}

func TestWatchEndsAtShutdown(t *testing.T) {
	w := newWorld(t)
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	s := open(t, "http://"+w.Addr()+"/v1/resources/nodes/objects?watch=true")
	s.want("ADDED n1", "BOOKMARK 100")
	start := time.Now()
	stop()
	s.wantEnd()
	if err := <-done; err != nil || time.Since(start) > w.ShutdownTimeout/2 {
		t.Errorf("Run() = %v after %v", err, time.Since(start))
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestWatchEndsWithTheInformer(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+"/v1/resources/nodes/objects?watch=true")
	s.want("ADDED n1", "BOOKMARK 100")
	w.nodes.store.Close()
	s.want("ERROR 503")
	s.wantEnd()
}

// A stream whose store was replaced is not resumed on the new one, although that
// is at the same version: it may hold another selection.
func TestWatchOfReplaced(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w) + "/v1/resources/nodes/objects?watch=true"
	s := open(t, url)
	s.want("ADDED n1", "BOOKMARK 100")
	next := newResource(t, w.nodes.spec, cache.Live)
	next.replace(t, "100", `{"metadata":{"name":"n2","uid":"n2","resourceVersion":"5"}}`)
	old := w.nodes.store
	w.nodes.mu.Lock()
	w.nodes.store = next.store
	w.nodes.mu.Unlock()
	old.Close()
	last := s.want("ERROR 503")
	s.wantEnd()
	open(t, url, "Last-Event-ID", last.id).want("RESYNC 100", "ADDED n2", "BOOKMARK 100")
}

func TestTooManyWatches(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxWatches = 1; o.MaxConcurrent = 1 })
	base := serve(t, w)
	s := open(t, base+"/v1/resources/nodes/objects?watch=true")
	s.want("ADDED n1", "BOOKMARK 100")
	rec := w.get(t, "/v1/resources/pods/objects?watch=true")
	wantStatus(t, rec, 429, metav1.StatusReasonTooManyRequests, "1 watches")
	if rec.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if rec := w.get(t, "/v1/resources/pods/objects"); rec.Code != 200 {
		t.Errorf("a watch takes the place of a request: %d", rec.Code)
	}
	s.close()
	for w.watches.Taken() > 0 {
		runtime.Gosched()
	}
}

func TestWatchWithoutData(t *testing.T) {
	w := newWorld(t)
	wantStatus(t, w.get(t, "/v1/resources/secrets/objects?watch=true"), 503, metav1.StatusReasonServiceUnavailable, "secrets is forbidden")
}

// A client that does not read is dropped after WriteTimeout, or told that it
// was too slow; it holds up nobody.
func TestWatchOfAStuckClient(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.WriteTimeout = 200 * time.Millisecond })
	base := serve(t, w)
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/resources/pods/objects?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
	reader := open(t, base+"/v1/resources/pods/objects?watch=true&fields=metadata.name,metadata.resourceVersion")
	reader.want("ADDED one", "ADDED two", "ADDED three", "BOOKMARK 100")
	for w.watches.Taken() < 2 {
		runtime.Gosched()
	}
	deadline := time.Now().Add(patient)
	for v := 101; w.watches.Taken() > 1; v++ {
		if time.Now().After(deadline) {
			t.Fatal("the client is still being served")
		}
		w.pods.apply(t, cache.Added, configMap(fmt.Sprintf("big-%d", v%20), v, 64<<10))
		if e := reader.next(); e.id != fmt.Sprint(v) {
			t.Fatalf("the other client got %s, want id %d", e.raw, v)
		}
	}
}

// Events are never lost silently.
func TestWatchOfASlowClient(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.WriteTimeout = 2 * time.Minute })
	serve(t, w)
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/resources/pods/objects?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for w.watches.Taken() < 1 {
		runtime.Gosched()
	}
	// Far more than the buffers between us hold, and than the ring does: noise
	// cannot be compressed.
	noise := make([]byte, 128<<10)
	for v := range 300 {
		_, _ = rand.Read(noise)
		w.pods.apply(t, cache.Modified, fmt.Sprintf(
			`{"metadata":{"name":"big","namespace":"a","uid":"big","resourceVersion":"%d"},"data":{"k":"%x"}}`, 101+v, noise))
	}
	var ids []string
	var last string
	lines := bufio.NewScanner(bufio.NewReaderSize(conn, 1<<20))
	lines.Buffer(nil, 16<<20)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			last = data
			if strings.Contains(data, `"type":"ERROR"`) {
				break
			}
		}
	}
	if !strings.Contains(last, `"type":"ERROR"`) {
		t.Fatalf("the stream ends with %.200s after %d events", last, len(ids))
	}
	if !strings.Contains(last, `"code":410`) || !strings.Contains(last, "too slowly") {
		t.Errorf("error %s", last)
	}
	if len(ids) == 0 || !slices.IsSortedFunc(ids, func(a, b string) int { return len(a) - len(b) }) {
		t.Errorf("ids %v", ids)
	}
}
