package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/informerd/informerd/server/kubeapi"
)

// fakeUpstream answers GETs by their path; a path that is not there is a failure
// of the connection.
type fakeUpstream struct {
	mu      sync.Mutex // guards all below
	answers map[string]string
	asked   []string
}

func (u *fakeUpstream) Get(_ context.Context, uri string, header http.Header) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, uri)
	path, _, _ := strings.Cut(uri, "?")
	body, ok := u.answers[path]
	if !ok {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Etag": {`"1"`}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (u *fakeUpstream) Passthrough() (*url.URL, http.RoundTripper) { return nil, nil }

func (u *fakeUpstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string{}, u.asked...)
}

func (u *fakeUpstream) set(path, body string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answers == nil {
		u.answers = map[string]string{}
	}
	u.answers[path] = body
}

// TestCompleteFromOpenAPI: paths that no object has are proposed after those that
// some have, and the API server is asked once.
func TestCompleteFromOpenAPI(t *testing.T) {
	up := &fakeUpstream{}
	up.set("/openapi/v3/api/v1", `{"components":{"schemas":{"Pod":{"properties":{"spec":{"type":"object","properties":{"hostname":{"type":"string"},"nodeName":{"type":"string"}}}},
		"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}]}}}}`)
	w := newWorld(t, func(o *Options) { o.Upstream = func(string) kubeapi.Upstream { return up } })
	for range 3 {
		var got completionList
		w.getJSON(t, "/v1/complete?for=paths&resource=pods&prefix=spec.", &got)
		all := encoded(t, got.Items)
		if want := `{"value":"spec.nodeName","kind":"string","objects":3}`; !strings.Contains(all, want) {
			t.Errorf("%s is not among %s", want, all)
		}
		if want := `{"value":"spec.hostname","kind":"string","objects":0}]`; !strings.HasSuffix(all, want) {
			t.Errorf("%s is not last in %s", want, all)
		}
	}
	if asked := up.requests(); len(asked) != 1 {
		t.Errorf("the API server was asked %v", asked)
	}
}

// TestCompleteWithoutOpenAPI: while the API server does not answer there is what
// the objects have, and it is not asked at every letter.
func TestCompleteWithoutOpenAPI(t *testing.T) {
	up := &fakeUpstream{}
	w := newWorld(t, func(o *Options) { o.Upstream = func(string) kubeapi.Upstream { return up } })
	for range 3 {
		var got completionList
		w.getJSON(t, "/v1/complete?for=paths&resource=pods&prefix=spec.node", &got)
		if all := encoded(t, got.Items); all != `[{"value":"spec.nodeName","kind":"string","objects":3}]` {
			t.Errorf("proposals: %s", all)
		}
	}
	if asked := up.requests(); len(asked) != 1 {
		t.Errorf("the API server was asked %v", asked)
	}
}
