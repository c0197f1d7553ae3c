package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

// passingUpstream is an API server that what is passed on reaches.
type passingUpstream func(r *http.Request) (*http.Response, error)

func (u passingUpstream) RoundTrip(r *http.Request) (*http.Response, error) { return u(r) }

func (u passingUpstream) Get(context.Context, string, http.Header) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

func (u passingUpstream) Passthrough() (*url.URL, http.RoundTripper) {
	return &url.URL{Scheme: "https", Host: "upstream"}, u
}

// passing is a world that passes everything on to up.
func passing(t *testing.T, up passingUpstream, change ...func(*Options)) *world {
	t.Helper()
	return newWorld(t, append(change, func(o *Options) {
		o.Upstream = func(string) kubeapi.Upstream { return up }
		o.Modes = func() kubeapi.Modes { return kubeapi.Modes{Passthrough: kubeapi.PassAll} }
	})...)
}

func created() *http.Response {
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("done"))}
}

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

const (
	onePod    = "/api/v1/namespaces/a/pods"
	longWatch = "/apis/coordination.k8s.io/v1/leases?watch=1"
	longLog   = onePod + "/one/log?follow=t"
)

// start asks in the background.
func (w *world) start(t *testing.T, method, target string) <-chan *httptest.ResponseRecorder {
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() { answered <- w.do(t, method, target) }()
	synctest.Wait()
	return answered
}

// TestSilentAPIServer: it holds up what it is to answer, for a while, and nothing
// else.
func TestSilentAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := passing(t, silent, func(o *Options) { o.MaxConcurrent, o.MaxPassed = 1, 4 })
		start := time.Now()
		write, read := w.start(t, "POST", onePod), w.start(t, "GET", onePod+"/one/status")
		watch, log := w.start(t, "GET", longWatch), w.start(t, "GET", longLog)
		for _, target := range []string{onePod, "/api", "/v1/resources"} {
			if rec := w.get(t, target); rec.Code != 200 {
				t.Errorf("GET %s = %d %s", target, rec.Code, rec.Body)
			}
		}
		wantStatus(t, w.do(t, "POST", onePod), 429, metav1.StatusReasonTooManyRequests, "4 requests that the API server answers")
		for _, answered := range []<-chan *httptest.ResponseRecorder{write, read} {
			wantStatus(t, <-answered, 504, metav1.StatusReasonTimeout, "has not begun to answer")
		}
		if waited := time.Since(start); waited != 90*time.Second || w.passed.Taken() > 0 {
			t.Errorf("waited %v, %d places taken", waited, w.passed.Taken())
		}
		time.Sleep(time.Hour)
		if len(watch)+len(log) > 0 || w.watches.Taken() != 2 {
			t.Errorf("%d long requests go on, want 2", w.watches.Taken())
		}
		w.stop()
		<-watch
		<-log
	})
}

// TestStoppingEndsLongRequests: and no others that are passed on.
func TestStoppingEndsLongRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		w := passing(t, func(r *http.Request) (*http.Response, error) {
			select {
			case <-finish:
				return created(), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		write, watch, log := w.start(t, "POST", onePod), w.start(t, "GET", longWatch), w.start(t, "GET", longLog)
		w.stop()
		<-watch
		<-log
		synctest.Wait()
		close(finish)
		if rec := <-write; rec.Code != 201 || rec.Body.String() != "done" {
			t.Errorf("the write is answered %d %s", rec.Code, rec.Body)
		}
	})
}

// TestNotReadable: clients of Kubernetes ask again and again where they are told
// when to, which only helps while data is on its way.
func TestNotReadable(t *testing.T) {
	for state, want := range map[cache.State]struct{ again, message string }{
		cache.Syncing:   {"1", "pods is syncing in informerd: there is no data yet: because"},
		cache.Forbidden: {"", "pods is forbidden in informerd: because"},
		cache.Failed:    {"", "pods is failed in informerd: because"},
	} {
		w := newWorld(t)
		w.pods.set(state, "because")
		rec := w.get(t, onePod)
		wantStatus(t, rec, 503, metav1.StatusReasonServiceUnavailable, want.message)
		if got := rec.Header().Get("Retry-After"); got != want.again {
			t.Errorf("%s: Retry-After is %q, want %q", state, got, want.again)
		}
	}
}

// TestSlowBodies: one that is refused is not waited for, one that is passed on only as
// long as it comes.
func TestSlowBodies(t *testing.T) {
	const post = "POST " + onePod + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nbegun"
	answer := func(t *testing.T, conn net.Conn) *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := dialPipe(t, w.Handler())
		start := time.Now()
		_, _ = io.WriteString(conn, post)
		if resp := answer(t, conn); resp.StatusCode != 405 || time.Since(start) != bodyTimeout {
			t.Errorf("refused with %s after %v", resp.Status, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var body []byte
		w := passing(t, func(r *http.Request) (_ *http.Response, err error) {
			body, err = io.ReadAll(r.Body)
			return created(), err
		})
		conn := dialPipe(t, w.Handler())
		_, _ = io.WriteString(conn, post)
		time.Sleep(9 * time.Second)
		_, _ = io.WriteString(conn, "ended")
		if resp := answer(t, conn); resp.StatusCode != 201 || string(body) != "begunended" {
			t.Errorf("passed on %q, answered %s", body, resp.Status)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		over := make(chan error, 1)
		w := passing(t, func(r *http.Request) (*http.Response, error) {
			_, err := io.ReadAll(r.Body)
			over <- err
			return nil, err
		})
		conn := dialPipe(t, w.Handler())
		start := time.Now()
		_, _ = io.WriteString(conn, post)
		if err := <-over; err == nil || time.Since(start) > 11*time.Second {
			t.Errorf("a body that stops was waited for %v: %v", time.Since(start), err)
		}
		_, _ = io.Copy(io.Discard, conn) // the connection ends, with an answer or without
		if w.passed.Taken() != 0 {
			t.Error("it still holds a place")
		}
	})
}
