package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/server/handlers"
)

// fakeHandlers are a handler "shop" that is claimed, and "hook", which has a sink. Keys are
// what a test puts into them.
type fakeHandlers struct {
	mu      sync.Mutex // guards all below
	keys    chan handlers.Claimed
	claimed handlers.ClaimOptions
	calls   []string
	good    []string // tokens
	paused  bool
	dead    []handlers.DeadLetter
}

func newFakeHandlers() *fakeHandlers { return &fakeHandlers{keys: make(chan handlers.Claimed, 10)} }

func (f *fakeHandlers) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fakeHandlers) noted() (calls []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls, f.calls = f.calls, nil
	return calls
}

func (f *fakeHandlers) Handlers() []handlers.Status {
	return []handlers.Status{{Name: "hook", Sink: "webhook", State: "down"}, {Name: "shop", Sink: "claim", State: "active", LastError: "a/secret-name"}}
}

func (f *fakeHandlers) Handler(name string) (handlers.Status, error) {
	for _, s := range f.Handlers() {
		if s.Name == name {
			s.Lines = []handlers.LineStatus{{Cluster: "default", Resource: "pods.v1", State: "following"}}
			return s, nil
		}
	}
	return handlers.Status{}, handlers.ErrUnknown
}

func (f *fakeHandlers) DeadLetters(name string, limit int, after string) ([]handlers.DeadLetter, string, error) {
	if _, err := f.Handler(name); err != nil {
		return nil, "", err
	}
	f.note("dead %s %d %q", name, limit, after)
	if len(f.dead) > limit {
		return f.dead[:limit], "next", nil
	}
	return f.dead, "", nil
}

func (f *fakeHandlers) Claim(ctx context.Context, name string, o handlers.ClaimOptions) ([]handlers.Claimed, error) {
	switch _, err := f.Handler(name); {
	case err != nil:
		return nil, err
	case name == "hook":
		return nil, handlers.ErrHasSink
	case o.Lease > time.Minute:
		return nil, fmt.Errorf("%w: at most 1m0s", handlers.ErrLease)
	}
	f.mu.Lock()
	f.claimed = o
	paused := f.paused
	f.mu.Unlock()
	select {
	case c := <-f.keys:
		return []handlers.Claimed{c}, nil
	case <-time.After(o.Wait):
		if paused {
			return nil, handlers.ErrPaused
		}
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeHandlers) each(name, owner, what string, tokens []string) ([]error, error) {
	if _, err := f.Handler(name); err != nil {
		return nil, err
	}
	f.note("%s %s by %q: %v", what, name, owner, tokens)
	errs := make([]error, len(tokens))
	for i, token := range tokens {
		if !slices.Contains(f.good, token) {
			errs[i] = handlers.ErrToken
		}
	}
	return errs, nil
}

func (f *fakeHandlers) Ack(_ context.Context, name, owner string, tokens []string) ([]error, error) {
	return f.each(name, owner, "ack", tokens)
}

func (f *fakeHandlers) Nack(_ context.Context, name, owner string, tokens []string, after *time.Duration, reason string) ([]error, error) {
	what := "nack " + reason
	if after != nil {
		what += " after " + after.String()
	}
	return f.each(name, owner, what, tokens)
}

func (f *fakeHandlers) Extend(_ context.Context, name, owner string, tokens []string, lease time.Duration) ([]error, error) {
	if lease > time.Minute {
		return nil, fmt.Errorf("%w: at most 1m0s", handlers.ErrLease)
	}
	return f.each(name, owner, "extend "+lease.String(), tokens)
}

func (f *fakeHandlers) Pause(_ context.Context, name string) error {
	f.note("pause %s", name)
	_, err := f.Handler(name)
	return err
}

func (f *fakeHandlers) Resume(_ context.Context, name string) error {
	f.note("resume %s", name)
	_, err := f.Handler(name)
	return err
}

func (f *fakeHandlers) Redrive(_ context.Context, name string, keys []handlers.KeyName) (int, error) {
	f.note("redrive %s %v", name, keys)
	_, err := f.Handler(name)
	return len(keys), err
}

var _ handlers.Surface = (*fakeHandlers)(nil)

func claimedPod(token string) handlers.Claimed {
	return handlers.Claimed{Token: token, Expires: then.Add(time.Minute), Delivery: handlers.Delivery{
		Handler: "shop", ID: "shop/u/7", Transition: handlers.Changes, Cluster: "default",
		GVR:  schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Kind: "Pod", Namespace: "a", Name: "one", UID: "u", ResourceVersion: "7", Object: json.RawMessage(`{"kind":"Pod","spec":{"x": 1}}`),
		Attempt: 2, Since: then, Sequence: 9,
	}}
}

func newHandlersWorld(t *testing.T, change ...func(*Options)) (*world, *fakeHandlers) {
	f := newFakeHandlers()
	return newWorld(t, append([]func(*Options){func(o *Options) { o.Handlers = f }}, change...)...), f
}

// post sends JSON. Headers come in pairs.
func (w *world) post(t testing.TB, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Host = "localhost:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, r)
	return rec
}
