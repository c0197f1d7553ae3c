package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// serve runs the server on a free port until the test ends, and returns its
// URL.
func serve(t testing.TB, w *world) string {
	t.Helper()
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return "http://" + w.Addr()
}

func TestAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"":                "",
		"127.0.0.1:8080":  "",
		"127.8.9.1:0":     "",
		"localhost:8080":  "",
		"[::1]:8080":      "",
		":8080":           "every address of this machine",
		"0.0.0.0:8080":    "authenticating proxy",
		"[::]:8080":       "not a loopback address",
		"192.168.1.5:80":  "no authentication configured",
		"example.com:80":  "not a loopback address",
		"127.0.0.1":       "want host:port",
		"127.0.0.1:http":  "not a number",
		"127.0.0.1:99999": "not a number",
		"127.0.0.1:":      "not a number",
	} {
		_, err := New(Options{Addr: addr, Caches: &fakeCaches{}})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q is refused: %v", addr, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error = %v, want %q", addr, err, want)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("Caches are not required")
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := newWorld(t, func(o *Options) { o.Addr = l.Addr().String() })
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen: ") {
		t.Errorf("Run() = %v", err)
	}
}

func TestHost(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Hosts = []string{"Cache.Example.com"} })
	for host, code := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST:1": 200, "localhost.:80": 200, "127.0.0.1": 200,
		"127.1.2.3:8080": 200, "[::1]:8080": 200, "[::1]": 200, "[::ffff:127.0.0.1]:80": 200, "": 200,
		"cache.example.com:8080": 200,
		"evil.example":           403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"10.0.0.1:8080": 403, "0.0.0.0:8080": 403, "[::]:8080": 403,
	} {
		for _, path := range []string{"/v1/resources", "/", "/livez", "/metrics", "/v1/resources/pods/objects?watch=true&timeoutSeconds=x"} {
			rec := w.get(t, path, "Host", host)
			if code == 403 {
				wantStatus(t, rec, 403, metav1.StatusReasonForbidden, "Host header")
			} else if rec.Code == 403 {
				t.Errorf("Host %q is refused at %s", host, path)
			}
		}
	}
}

func TestForeignPages(t *testing.T) {
	w := newWorld(t)
	wantStatus(t, w.get(t, "/v1/resources", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, metav1.StatusReasonForbidden, "another site")
	follow := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	frame := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}
	if rec := w.get(t, "/?resource=pods", follow...); rec.Code != 200 {
		t.Errorf("a link to the page = %d", rec.Code)
	}
	for _, path := range []string{"/v1/resources", "/v1/resources/pods/objects?filter=true", "/api/v1/pods", "/metrics", "/livez", "/app.js", "/v1/"} {
		wantStatus(t, w.get(t, path, follow...), 403, metav1.StatusReasonForbidden, "another site")
		wantStatus(t, w.get(t, path, frame...), 403, metav1.StatusReasonForbidden, "another site")
	}
	wantStatus(t, w.get(t, "/", frame...), 403, metav1.StatusReasonForbidden, "another site")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, {"Sec-Fetch-Site", "none"},
	} {
		if rec := w.get(t, "/v1/resources", headers...); rec.Code != 200 {
			t.Errorf("%v = %d", headers, rec.Code)
		}
	}
	rec := w.get(t, "/v1/resources", "Origin", "https://evil.example")
	for name := range rec.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("answer has %s", name)
		}
	}
}

func TestPage(t *testing.T) {
	w := newWorld(t)
	for path, mediaType := range map[string]string{"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/?a=b": "text/html; charset=utf-8"} {
		rec := w.get(t, path)
		h := rec.Header()
		if rec.Code != 200 || h.Get("Content-Type") != mediaType || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("GET %s = %d %v", path, rec.Code, h)
		}
	}
	for _, path := range []string{"/../server.go", "/%2e%2e/server.go", "//etc/passwd", "/app.js/", "/."} {
		if rec := w.get(t, path); rec.Code != 404 {
			t.Errorf("GET %s = %d", path, rec.Code)
		}
	}
	for _, accept := range []string{"", "gzip"} {
		tag := w.get(t, "/app.js", "Accept-Encoding", accept).Header().Get("ETag")
		rec := w.get(t, "/app.js", "Accept-Encoding", accept, "If-None-Match", tag)
		if tag == "" || rec.Code != 304 || rec.Body.Len() != 0 {
			t.Errorf("the same file again (encoding %q, ETag %s) = %d with %d bytes, want 304 with none", accept, tag, rec.Code, rec.Body.Len())
		}
		if rec := w.get(t, "/", "Accept-Encoding", accept, "If-None-Match", tag); rec.Code != 200 {
			t.Errorf("another file with the ETag of /app.js = %d", rec.Code)
		}
	}
	none := newWorld(t, func(o *Options) { o.Web = nil })
	wantStatus(t, none.get(t, "/"), 404, metav1.StatusReasonNotFound, "/v1/resources")
}

func TestPanic(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.caches.resources = []*fakeResource{nil}
	wantStatus(t, w.get(t, "/v1/resources/pods", "Accept-Encoding", "gzip"), 500, metav1.StatusReasonInternalError, "its log says why")
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "helpers_test.go") || strings.Count(got, "\n") != 1 {
		t.Errorf("log: %s", got)
	}
}

// What happened to us is logged once at Error; what clients do at Debug.
func TestErrorsAreLoggedOnce(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.get(t, "/v1/resources/pots")
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=DEBUG") || !strings.Contains(got, "code=404") {
		t.Errorf("log: %s", got)
	}
	log.Reset()
	rec := httptest.NewRecorder()
	w.handle(func(http.ResponseWriter, *http.Request) error { return errors.New("secret detail") })(rec, httptest.NewRequest("GET", "/", nil))
	wantStatus(t, rec, 500, metav1.StatusReasonInternalError, "log says why")
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "secret detail") {
		t.Errorf("log: %s", got)
	}
}

func TestStatusOfCacheErrors(t *testing.T) {
	for err, code := range map[error]int{
		cache.ErrNotFound: 404, cache.ErrNotWatched: 404, cache.ErrUnknownResource: 404, cache.ErrNotSynced: 503,
		cache.ErrExpired: 410, cache.ErrTooNew: 504, cache.ErrStopped: 503, &cache.InvalidError{Parameter: "a", Message: "b"}: 400,
		context.DeadlineExceeded: 504, context.Canceled: 503, io.EOF: 500,
	} {
		if s := statusOf(err); int(s.Code) != code || s.Message == "" || s.Reason == "" {
			t.Errorf("%v: %+v, want %d", err, s, code)
		}
	}
}

func TestTooManyRequests(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxConcurrent = 1 })
	release, err := w.short.Take(t.Context(), "somebody", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	rec := w.get(t, "/v1/resources")
	wantStatus(t, rec, 429, metav1.StatusReasonTooManyRequests, "1 requests")
	if rec.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After = %q", rec.Header().Get("Retry-After"))
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/"} {
		if rec := w.get(t, path); rec.Code >= 429 && rec.Code != 503 {
			t.Errorf("GET %s = %d", path, rec.Code)
		}
	}
	release()
	if rec := w.get(t, "/v1/resources"); rec.Code != 200 || w.short.Taken() != 0 {
		t.Errorf("code %d, %d requests left", rec.Code, w.short.Taken())
	}
}

func TestRequestTimeout(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.RequestTimeout = 20 * time.Millisecond })
	wantStatus(t, w.get(t, "/v1/resources/pods/objects?resourceVersion=1000"), 504, metav1.StatusReasonTimeout, "took too long")
}

func TestShutdownWaitsForRequests(t *testing.T) {
	w := newWorld(t)
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()

	answered := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + w.Addr() + "/v1/resources/pods/objects?resourceVersion=150&timeout=20s")
		if err == nil {
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != 200 {
				err = errors.New(resp.Status)
			}
		}
		answered <- err
	}()
	for w.requests.Taken() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-w.stopping.Done()
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 150))
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// A kept connection must not inherit the write deadline of the answer before.
func TestKeptConnectionGetsANewDeadline(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.WriteTimeout = 50 * time.Millisecond })
	serve(t, w)
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	ask := func(method, headers string) int {
		fmt.Fprintf(conn, "%s /v1/resources/pods/objects HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, headers)
		resp, err := http.ReadResponse(answers, &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	ask("GET", "")
	time.Sleep(2 * w.WriteTimeout) // real time: the deadline is the kernel's business
	if code := ask("GET", "If-None-Match: *\r\n"); code != 304 {
		t.Errorf("code %d", code)
	}
	time.Sleep(2 * w.WriteTimeout)
	if code := ask("HEAD", ""); code != 200 {
		t.Errorf("code %d", code)
	}
}

// lateContext ends after it was asked a few times.
type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Err() error {
	if c.asked--; c.asked >= 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// An answer that fails on its way is cut off; before its first byte it is an
// ordinary error.
func TestBrokenAnswer(t *testing.T) {
	w := newWorld(t)
	var objects []string
	long := `"status":{"message":"` + strings.Repeat("long ", 4*reply.Whole/500/5) + `",`
	for i := range 500 {
		o := pod("a", fmt.Sprintf("pod-%d", i), "web", "n1", i+1)
		objects = append(objects, strings.Replace(o, `"status":{`, long, 1))
	}
	w.pods.replace(t, "600", objects...)
	page, err := w.pods.store.Page(t.Context(), cache.Query{}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for asked, begun := range map[int]bool{0: false, 1: false, 7: true} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil).WithContext(&lateContext{Context: t.Context(), asked: asked})
		err := writeList(rec, r, objectList(t.Context(), &cache.View{Spec: w.pods.spec}, page, view{}), view{})
		_, aborted := errors.AsType[*abortError](err)
		if !errors.Is(err, context.DeadlineExceeded) || aborted != begun || (rec.Body.Len() > 0) != begun {
			t.Errorf("asked %d times: error %v, aborted %v, %d bytes", asked, err, aborted, rec.Body.Len())
		}
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	w.recoverPanics(w.handle(func(http.ResponseWriter, *http.Request) error {
		return &abortError{io.ErrUnexpectedEOF}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}
