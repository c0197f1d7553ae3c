package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
)

// syncRelist runs informerd's cache within this program, behind a transport that
// can make the version of its watch expire when the bench wants it.
func syncRelist(ctx context.Context, rc *rest.Config) (*synced, error) {
	e := &expirer{}
	rc.Wrap(func(base http.RoundTripper) http.RoundTripper { e.base = base; return e })
	s, err := syncFactory(ctx, rc, []string{managedFields})
	if err != nil {
		return nil, err
	}
	informer, err := s.held.(*replica.Factory).Informer(cache.Resource{Cluster: "default", GVR: corev1.SchemeGroupVersion.WithResource("pods")})
	if err != nil {
		return nil, err
	}
	s.relist = func(ctx context.Context, how string) error {
		if how == "cut" {
			e.cut()
			return nil
		}
		before := informer.Status()
		e.expire(how == "full")
		for {
			now := informer.Status()
			if now.Relists+now.Compared > before.Relists+before.Compared {
				if how == "full" && now.Compared > before.Compared {
					return fmt.Errorf("metadata was compared")
				}
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
	return s, nil
}

// expirer is a transport that stands for an API server which has forgotten the
// past: it ends the watch, lets none begin for a while, and answers the next one
// with 410. What informerd asks of the past to judge the server's history by, one object
// at an exact version, gets through: without it no relist would begin.
type expirer struct {
	base http.RoundTripper

	mu       sync.Mutex // guards all below
	watch    io.Closer
	blocked  chan struct{} // closed when watches may begin; nil: they may
	expired  bool          // the next watch is answered with 410
	complete bool          // lists of present metadata are refused, so that all is listed
}

func (e *expirer) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.blocked = make(chan struct{})
	e.watch.Close()
}

func (e *expirer) expire(complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.blocked)
	e.blocked, e.expired, e.complete = nil, true, complete
}

func (e *expirer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watch, initial := query.Get("watch") == "true", query.Get("sendInitialEvents") == "true"
	if watch && !initial {
		if err := e.wait(r.Context()); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	refuse := 0
	switch {
	case watch && !initial && e.expired:
		e.expired, refuse = false, http.StatusGone
	case e.complete && strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") && query.Get("resourceVersionMatch") == "":
		refuse = http.StatusNotAcceptable
	}
	e.mu.Unlock()
	if refuse != 0 {
		return refusal(r, refuse), nil
	}
	resp, err := e.base.RoundTrip(r)
	if err == nil && watch {
		e.mu.Lock()
		e.watch = resp.Body
		e.mu.Unlock()
	}
	return resp, err
}

// wait returns when watches may begin.
func (e *expirer) wait(ctx context.Context) error {
	e.mu.Lock()
	blocked := e.blocked
	e.mu.Unlock()
	if blocked == nil {
		return nil
	}
	select {
	case <-blocked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func refusal(r *http.Request, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
