package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/handlers"
)

func TestClaim(t *testing.T) {
	w, f := newHandlersWorld(t)
	f.keys <- claimedPod("t1")
	rec := w.post(t, "/v1/handlers/shop/claim?max=5&lease=10s&wait=2", "")
	const want = `{"kind":"ClaimList","apiVersion":"informerd/v1","metadata":{},"items":[{"token":"t1","expires":"2026-01-02T03:05:05Z","id":"shop/u/7",` +
		`"transition":"changes","cluster":"default","group":"","version":"v1","resource":"pods","kind":"Pod","namespace":"a","name":"one","uid":"u","resourceVersion":"7",` +
		`"attempt":2,"since":"2026-01-02T03:04:05Z","sequence":9,"object":{"kind":"Pod","spec":{"x": 1}}}]}` + "\n"
	if rec.Code != 200 || rec.Body.String() != want {
		t.Errorf("%d %s, want %s", rec.Code, rec.Body, want)
	}
	if f.claimed != (handlers.ClaimOptions{Max: 5, Lease: 10 * time.Second, Wait: 2 * time.Second}) {
		t.Errorf("asked for %+v", f.claimed)
	}
	var described any
	decode(t, rec.Body, &described)
	checkShape(t, "claim", described, schemas["ClaimList"])
	gone := claimedPod("t2")
	gone.Object = nil
	f.keys <- gone
	if rec := w.post(t, "/v1/handlers/shop/claim", "{}"); !strings.Contains(rec.Body.String(), `"object":null}`) {
		t.Errorf("of what is gone: %s", rec.Body)
	}
	if f.claimed != (handlers.ClaimOptions{Max: 1, Wait: 30 * time.Second}) {
		t.Errorf("by default: %+v", f.claimed)
	}
	if rec := w.post(t, "/v1/handlers/shop/claim?wait=0", ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"items":[]`) {
		t.Errorf("of nothing: %d %s", rec.Code, rec.Body)
	}
	f.paused = true
	s := wantStatus(t, w.post(t, "/v1/handlers/shop/claim?wait=0", ""), 503, metav1.StatusReasonServiceUnavailable, "paused")
	if s.Details.RetryAfterSeconds == 0 || s.Details.Causes[0].Type != "Paused" {
		t.Errorf("paused: %+v", s.Details)
	}
}

func TestBadClaims(t *testing.T) {
	w, _ := newHandlersWorld(t)
	for target, want := range map[string]struct {
		code    int
		reason  metav1.StatusReason
		message string
	}{
		"none/claim":                   {404, metav1.StatusReasonNotFound, `no handler "none"`},
		"hook/claim":                   {409, metav1.StatusReasonConflict, "has a sink"},
		"shop/claim?lease=2m":          {400, metav1.StatusReasonBadRequest, "lease: the lease is longer than the handler allows: at most 1m0s"},
		"shop/claim?lease=1ms":         {400, metav1.StatusReasonBadRequest, "lease:"},
		"shop/claim?wait=61s":          {400, metav1.StatusReasonBadRequest, "wait:"},
		"shop/claim?wait=-1s":          {400, metav1.StatusReasonBadRequest, "wait:"},
		"shop/claim?max=0":             {400, metav1.StatusReasonBadRequest, "max:"},
		"shop/claim?max=1001":          {400, metav1.StatusReasonBadRequest, "max:"},
		"shop/claim?leese=1s":          {400, metav1.StatusReasonBadRequest, "did you mean lease?"},
		"shop/ack":                     {400, metav1.StatusReasonBadRequest, `{"tokens":["..."]}`},
		"shop/ack?token=":              {400, metav1.StatusReasonBadRequest, "empty"},
		"shop/ack?token=x":             {409, metav1.StatusReasonConflict, "stands for no claim of yours"},
		"none/ack?token=x":             {404, metav1.StatusReasonNotFound, `no handler "none"`},
		"shop/nack?token=x&after=":     {400, metav1.StatusReasonBadRequest, "after:"},
		"shop/extend?token=x&lease=2m": {400, metav1.StatusReasonBadRequest, "at most 1m0s"},
		"shop/nack?token=x&reason=" + strings.Repeat("a", 1<<10+1): {400, metav1.StatusReasonBadRequest, "reason:"},
		"none/pause":   {404, metav1.StatusReasonNotFound, `no handler "none"`},
		"none/redrive": {404, metav1.StatusReasonNotFound, `no handler "none"`},
	} {
		t.Run(target, func(t *testing.T) {
			wantStatus(t, w.post(t, "/v1/handlers/"+target, ""), want.code, want.reason, want.message)
		})
	}
}

// TestTokens: each has a result of its own, and the request is refused if none is good.
func TestTokens(t *testing.T) {
	w, f := newHandlersWorld(t)
	f.good = []string{"good"}
	for _, test := range []struct{ target, body, call string }{
		{"ack?token=good&token=bad", "", `ack shop by "": [good bad]`},
		{"ack", `{"tokens":["good","bad"]}`, `ack shop by "": [good bad]`},
		{"nack?after=5s&reason=busy", `{"tokens":["good","bad"]}`, `nack busy after 5s shop by "": [good bad]`},
		{"nack?after=0", `{"tokens":["good","bad"]}`, `nack  after 0s shop by "": [good bad]`},
		{"nack", `{"tokens":["good","bad"]}`, `nack  shop by "": [good bad]`},
		{"extend?lease=7", `{"tokens":["good","bad"]}`, `extend 7s shop by "": [good bad]`},
	} {
		rec := w.post(t, "/v1/handlers/shop/"+test.target, test.body)
		const want = `{"results":[{"token":"good","ok":true},{"token":"bad","ok":false,"reason":"the token stands for no claim`
		if calls := f.noted(); rec.Code != 200 || !strings.HasPrefix(rec.Body.String(), want) || !slices.Equal(calls, []string{test.call}) {
			t.Errorf("%s: %d %s %q", test.target, rec.Code, rec.Body, calls)
		}
	}
	s := wantStatus(t, w.post(t, "/v1/handlers/shop/ack?token=a&token=b", ""), 409, metav1.StatusReasonConflict, "none of 2 tokens")
	if len(s.Details.Causes) != 2 || s.Details.Causes[1].Field != "b" {
		t.Errorf("causes: %+v", s.Details.Causes)
	}
}

// TestClaimWaits: a claim has a place of a stream, ends with the server and with the right.
func TestClaimWaits(t *testing.T) {
	type outcome struct {
		code    int
		message string
	}
	for name, test := range map[string]struct {
		end  func(w *world, u *pathUser, f *fakeHandlers, cancel func())
		want outcome
	}{
		"a key":   {func(_ *world, _ *pathUser, f *fakeHandlers, _ func()) { f.keys <- claimedPod("t") }, outcome{200, `"token":"t"`}},
		"stop":    {func(w *world, _ *pathUser, _ *fakeHandlers, _ func()) { w.stop() }, outcome{503, "informerd is stopping"}},
		"revoked": {func(_ *world, u *pathUser, _ *fakeHandlers, _ func()) { u.set("post /v1/handlers/shop/claim", false) }, outcome{403, `cannot post path`}},
		"time":    {func(*world, *pathUser, *fakeHandlers, func()) { time.Sleep(time.Minute) }, outcome{200, `"items":[]`}},
		"left":    {func(_ *world, _ *pathUser, _ *fakeHandlers, cancel func()) { cancel() }, outcome{499, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				user := newPathUser("post /v1/handlers/shop/claim")
				w, f := newHandlersWorld(t, func(o *Options) {
					o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				rec, done := httptest.NewRecorder(), make(chan struct{})
				go func() {
					defer close(done)
					r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/handlers/shop/claim?wait=60s", nil)
					r.Host = "localhost:8080"
					w.Handler().ServeHTTP(rec, r)
				}()
				time.Sleep(20 * time.Second)
				if n, short := w.watches.Taken(), w.short.Taken(); n != 1 || short != 0 {
					t.Errorf("it takes %d places of streams and %d of requests", n, short)
				}
				test.end(w, user, f, cancel)
				<-done
				if rec.Code != test.want.code || !strings.Contains(rec.Body.String(), test.want.message) {
					t.Errorf("%d %s, want %+v", rec.Code, rec.Body, test.want)
				}
				if n := w.watches.Taken(); n != 0 {
					t.Errorf("%d places are not given back", n)
				}
			})
		})
	}
}

func TestClaimsAreBounded(t *testing.T) {
	w, _ := newHandlersWorld(t, func(o *Options) { o.MaxWatches = 2 })
	release, err := w.watches.Take(t.Context(), "somebody", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.watches.Take(t.Context(), "else", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, w.post(t, "/v1/handlers/shop/claim?wait=0", ""), 429, metav1.StatusReasonTooManyRequests, "watches and claims")
	release()
	other()
	if rec := w.post(t, "/v1/handlers/shop/claim?wait=0", ""); rec.Code != 200 {
		t.Errorf("with places: %d", rec.Code)
	}
}

// TestPostKeepsConnection: a body that was read does not cost the connection, nor does its
// deadline end what is asked over it later.
func TestPostKeepsConnection(t *testing.T) {
	w, f := newHandlersWorld(t)
	f.good = []string{"x"}
	base := serve(t, w)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for _, body := range []string{`{"tokens":["x"]}`, ""} {
		resp, err := client.Post(base+"/v1/handlers/shop/ack?"+map[bool]string{true: "token=x"}[body == ""], "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != 200 || resp.Close {
			t.Errorf("%q: %v, %s, closed: %v", body, err, resp.Status, resp.Close)
		}
	}
}

func TestClaimsAreRecorded(t *testing.T) {
	f := newFakeHandlers()
	f.good = []string{"t1"}
	f.keys <- claimedPod("t1")
	w, end := recording(t, func(o *Options) { o.Handlers = f })
	w.post(t, "/v1/handlers/shop/claim", "")
	w.post(t, "/v1/handlers/shop/ack?token=t1", "")
	w.post(t, "/v1/handlers/shop/pause", "")
	w.get(t, "/v1/handlers/shop")
	var got []string
	for _, r := range end() {
		got = append(got, r.about()+" "+r.RequestURI)
	}
	want := []string{"claim [pods] 1 /v1/handlers/shop/claim", "post /v1/handlers/shop/ack?token=REDACTED", "post /v1/handlers/shop/pause", "get /v1/handlers/shop"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
