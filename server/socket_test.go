package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/websocket"
)

// headersOf are headers in pairs.
func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// TestForeignSockets: browsers let any page open a WebSocket to anywhere, and read what
// comes; they only say where the page is from.
func TestForeignSockets(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	for name, test := range map[string]struct {
		headers []string
		refused bool
	}{
		"a program":                         {nil, false},
		"our own page":                      {[]string{"Origin", base}, false},
		"a program that names the server":   {[]string{"Origin", base + "/clusters/default"}, false},
		"our own page, in capitals":         {[]string{"Origin", strings.ToUpper(base)}, false},
		"another site":                      {[]string{"Origin", "https://evil.example"}, true},
		"another port":                      {[]string{"Origin", "http://127.0.0.1:1"}, true},
		"another name of this machine":      {[]string{"Origin", strings.Replace(base, "127.0.0.1", "localhost", 1)}, true},
		"a page without a site":             {[]string{"Origin", "null"}, true},
		"nothing that could be a site":      {[]string{"Origin", "http://[::1"}, true},
		"the name as a part":                {[]string{"Origin", base + ".evil.example"}, true},
		"the name as a user":                {[]string{"Origin", base + "@evil.example"}, true},
		"another site, if the browser says": {[]string{"Origin", base, "Sec-Fetch-Site", "cross-site"}, true},
		"another site that knows a token": {[]string{"Origin", "https://evil.example",
			"Sec-WebSocket-Protocol", "a, base64url.bearer.authorization.k8s.io.YWJj"}, true},
		"another site with a password":   {[]string{"Origin", "https://evil.example", "Authorization", "Basic YTpi"}, true},
		"another site without a token":   {[]string{"Origin", "https://evil.example", "Authorization", "Bearer "}, true},
		"a program that passes a page's": {[]string{"Origin", "https://headlamp.example.com", "Authorization", "Bearer any"}, false},
		"a program that passes all":      {[]string{"Origin", "null", "Sec-Fetch-Site", "cross-site", "Authorization", "bearer any"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := websocket.Dial(t.Context(), base+"/api/v1/pods?watch=1", nil, headersOf(test.headers...))
			if err == nil {
				_ = c.Close()
			}
			refused, _ := errors.AsType[*websocket.RefusedError](err)
			switch {
			case !test.refused && err != nil:
				t.Error(err)
			case test.refused && (refused == nil || refused.Code != http.StatusForbidden || !strings.Contains(refused.Body, "another site")):
				t.Errorf("answer is %v", err)
			}
		})
	}
	// A page may be sent on to what it asks for, and frames ask for it by themselves.
	follow := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Authorization", "Bearer any"}
	if rec := w.get(t, "/api/v1/pods", follow...); rec.Code != http.StatusOK {
		t.Errorf("a program that passes on what a page asks gets %d", rec.Code)
	}
}

// TestSocketEndsAtShutdown: net/http does not know that a WebSocket is still there, but
// Run does, and tells its client that it ends.
func TestSocketEndsAtShutdown(t *testing.T) {
	w := newWorld(t)
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	c, _, err := websocket.Dial(t.Context(), "http://"+w.Addr()+"/api/v1/nodes?watch=1&resourceVersion=100", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop()
	if err := <-done; err != nil || w.watches.Taken() != 0 {
		t.Errorf("Run() = %v with %d watches", err, w.watches.Taken())
	}
	if _, message, err := c.ReadMessage(); !websocket.Ended(err) {
		t.Errorf("the last is %q, %v", message, err)
	}
}

// TestStuckSockets: a WebSocket may be silent for longer than a write may take; whoever
// does not read is dropped after that.
func TestStuckSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := dialPipe(t, w.Handler())
		_, err := io.WriteString(conn, "GET /api/v1/pods?watch=1&resourceVersion=100 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"+
			"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		time.Sleep(10 * w.WriteTimeout)
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 150))
		if message, err := in.ReadString('\n'); err != nil || !strings.Contains(message, `{"type":"MODIFIED"`) {
			t.Fatalf("%q, %v", message, err)
		}
		start := time.Now()
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 151))
		for w.watches.Taken() > 0 {
			time.Sleep(time.Millisecond)
		}
		if passed := time.Since(start); passed < w.WriteTimeout || passed > w.WriteTimeout+time.Second {
			t.Errorf("dropped after %v", passed)
		}
	})
}
