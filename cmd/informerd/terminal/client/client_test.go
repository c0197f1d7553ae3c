package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

func newClient(tb testing.TB, server string) (*Client, *[]string) {
	tb.Helper()
	var warned []string
	c, err := New(&rest.Config{Host: server}, "--server", func(text string) { warned = append(warned, text) })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c, &warned
}

func serve(tb testing.TB, handle http.HandlerFunc) string {
	s := httptest.NewServer(handle)
	tb.Cleanup(s.Close)
	return s.URL
}

// TestTokensStaySecret: no token goes over a network in the clear, nor where a server sends
// its clients.
func TestTokensStaySecret(t *testing.T) {
	for server, ok := range map[string]bool{
		"http://127.0.0.1:1": true, "localhost:1": true, "https://informerd.example": true, "http://[::1]:8080": true,
		"http://informerd.example": false, "informerd.example:80": false, "http://10.0.0.1": false,
	} {
		_, err := New(&rest.Config{Host: server, BearerToken: "secret"}, "", nil)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", server, err)
		}
	}
	var asked atomic.Int32
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	c, _ := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }))
	if err := c.JSON(t.Context(), "/v1/x", nil, &struct{}{}); err == nil || asked.Load() > 0 {
		t.Errorf("%v, and %d requests elsewhere", err, asked.Load())
	}
}

func TestAddresses(t *testing.T) {
	for _, server := range []string{"", "ftp://x", "http://", "http://a b", "http://u:p@host", "http://x?y=1"} {
		if c, err := New(&rest.Config{Host: server}, "", nil); err == nil {
			t.Errorf("%q is taken for %s", server, c.Server)
		}
	}
}

// TestErrorsTeach: what was asked, and what can be done.
func TestErrorsTeach(t *testing.T) {
	status := func(code int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`, message, code)
		}
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   []string
	}{
		"unauthorized": {status(401, "Unauthorized"), []string{"Unauthorized", "--token-file"}},
		"forbidden":    {status(403, "pods is forbidden"), []string{"pods is forbidden", "kubectl auth can-i"}},
		"no data":      {status(503, "pods is syncing"), []string{"pods is syncing", "in 7 s", "/readyz?verbose"}},
		"not found":    {status(404, "unknown resource"), []string{"unknown resource"}},
		"a page":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, []string{"not as informerd does", "200 OK text/html", "--server"}},
		"another":      {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, []string{"not as informerd does", "404", "--server"}},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"a":`)
		}, []string{"the answer broke off"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := newClient(t, serve(t, c.handle))
			err := client.JSON(t.Context(), "/v1/x", nil, &struct{}{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in %q", part, err)
				}
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	client, _ := newClient(t, gone.URL)
	err := client.JSON(t.Context(), "/v1/x", nil, nil)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), gone.URL+" (--server)") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

func TestWarnings(t *testing.T) {
	h := http.Header{}
	h.Set("Warning", `110 informerd "pods is stale, \"x\""`)
	h.Set("Informerd-Unanswered", "events")
	if got := Warnings(h); !slices.Equal(got, []string{`pods is stale, "x"`, "not in this answer: events"}) {
		t.Errorf("%q", got)
	}
	if got := Warnings(http.Header{"Informerd-State": {"live"}}); got != nil {
		t.Errorf("%q", got)
	}
	if got := Warnings(http.Header{"Informerd-State": {"warm"}}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestFollowGoesOn: where the stream broke off, by the id of the last whole event.
func TestFollowGoesOn(t *testing.T) {
	var asked []string
	c, warned := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(asked) {
		case 1:
			_, _ = io.WriteString(w, "id: 4\nevent: ADDED\ndata: one\n\nid: 5\ndata: cut")
		case 2:
			_, _ = io.WriteString(w, "event: ERROR\ndata: {\"object\":{\"message\":\"too slow\",\"code\":410}}\n\n")
		case 3:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"starting","code":503}`)
		default:
			_, _ = io.WriteString(w, "id: 6\nevent: ADDED\ndata: two\n\n")
		}
	}))
	var told []string
	done := errors.New("done")
	err := c.Follow(t.Context(), "/v1/query", url.Values{"resources": {"pods"}}, func(e Event) error {
		if e.Type == Opened {
			told = append(told, "after "+e.ID)
			return nil
		}
		told = append(told, string(e.Data))
		if string(e.Data) == "two" {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) || !slices.Equal(told, []string{"after ", "one", "after 4", "after 4", "two"}) || !slices.Equal(asked, []string{"", "4", "4", "4"}) {
		t.Errorf("%v, told %q, asked with %q", err, told, asked)
	}
	if len(*warned) != 3 || !strings.Contains((*warned)[0], "ended the stream") || !strings.Contains((*warned)[1], "too slow") {
		t.Errorf("warned %q", *warned)
	}
}

// TestFollowEnds: what is refused is not asked again, nor is a server that never answered.
func TestFollowEnds(t *testing.T) {
	for code, want := range map[int]int{400: 1, 403: 1, 404: 1, 503: 1} {
		asked := 0
		c, _ := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","message":"no","code":%d}`, code)
		}))
		err := c.Follow(t.Context(), "/v1/query", nil, func(Event) error { return nil })
		var refused *StatusError
		if !errors.As(err, &refused) || int(refused.Code) != code || asked != want {
			t.Errorf("%d: %v after %d requests", code, err, asked)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	if err := c.Follow(ctx, "/v1/query", nil, func(e Event) error {
		if e.Type != Opened {
			cancel()
		}
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestSecrets: none goes over a network in the clear, wherever it is from.
func TestSecrets(t *testing.T) {
	for name, config := range map[string]rest.Config{
		"token":    {BearerToken: "x"},
		"password": {Username: "me", Password: "x"},
		"plugin":   {ExecProvider: &api.ExecConfig{Command: "x", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode}},
	} {
		for host, allowed := range map[string]bool{"http://informerd.informerd.svc": false, "informerd:8080": false, "http://127.0.0.1:8080": true, "https://informerd": true} {
			config.Host = host
			if _, err := New(&config, "--server", func(string) {}); allowed != (err == nil) {
				t.Errorf("%s to %s: %v", name, host, err)
			}
		}
	}
}
